"""The memory of a model on several GPUs that all of them reach, and what each rank's launches take of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from toolchain.contract.expressions import cdiv
from toolchain.contract.op import ops
from toolchain.runtime import DeviceBuffer
from toolchain.runtime.peers import Peers
from toolchain.runtime.peers.channel import Channel

from .config import GPTConfig, vocabulary_part
from .families.one_launch import words_met
from .model import PART
from .parameters.share import Share
from .parameters.spread import OWN, Spread, parts


class Room:
    """Where the ranks put their parts of a sum: two buffers that take turns. One is written again only after the
    meeting in the other, when every rank has read it. And where they put their likeliest tokens: between two writes
    there are the meetings of all layers. Launches that run beside each other have a room each, and a channel."""

    def __init__(
        self, peers: Peers, channel: Channel, config: GPTConfig, dtype: str,
        spreads: Callable[[int], bool] = lambda _: False,
        takes_step: Callable[[int], bool] = lambda _: False,
    ) -> None:  # fmt: skip
        """`config`: of the whole model. `dtype`: the model's. `spreads`: whether the residual stream of a pass of so
        many rows is shared out. `takes_step`: whether a decoding step over a cache of so many positions is one launch
        on each rank."""
        self._peers, self._channel, self._config = peers, channel, config
        self._storage = "f32" if dtype == "tf32" else dtype
        self._parts = cdiv(vocabulary_part(config.vocab_size, peers.ranks), PART)
        self._rows = self._spread_rows = 0
        self.spreading = False  # whether launches share out rows now
        self._spreads, self._spread = spreads, list[Spread]()  # one a rank, of the largest pass
        self._buffers: Sequence[Sequence[DeviceBuffer]] = ()  # of each turn and rank (R, rows, C)
        self._likeliest: dict[tuple[int, int], Sequence[tuple[DeviceBuffer, DeviceBuffer]]] = {}
        self._takes_step, self._met = takes_step, list[DeviceBuffer]()  # one a rank

    def share(self, index: int) -> Share:
        """What the model of one of the peers' executors has of the whole."""
        peers = self._peers
        return Share(
            peers.numbers[index], peers.ranks, self._config.vocab_size, self._channel.arguments(index),
            self._of(index), lambda rows, count: self._likeliest_of(rows, count)[index],
            lambda rows: self._spread_of(index, rows), lambda positions: self._step_of(index, positions),
        )  # fmt: skip

    def reserve(self, rows: int) -> None:
        """Makes room for sums over so many rows. What was taken before stays as it is."""
        if rows <= self._rows:
            return
        width = self._config.n_embd
        heap = self._peers.heap(2 * (4 * rows * width + 256))
        self._buffers = [heap.empty((rows, width), self._storage) for _ in range(2)]
        self._rows = rows

    def _spread_of(self, index: int, rows: int) -> Spread | None:
        """For one rank. What was taken before stays as it is."""
        if not self.spreading or not self._spreads(rows):
            return None
        ranks, width = self._peers.ranks, self._config.n_embd
        if rows > self._spread_rows:
            count = max(*parts(self._config, 0), *parts(self._config, rows))
            attended, piece = self._config.n_head * self._config.head_size, rows // ranks
            heap = self._peers.heap(2 * (2 * rows * width + piece * attended) + 4 * count * rows + 4 * 512)
            stream, squares = heap.empty((rows, width), self._storage), heap.empty((count, rows), "f32")
            gathered = heap.empty((piece, attended), self._storage)
            arrived = heap.empty((ranks, piece, width), self._storage)
            flags = [self._channel.arguments(number, ops()[OWN]) for number in range(len(stream))]
            self._spread = [
                Spread(each, (sums, sums), own, parts_of, taken)
                for each, sums, own, parts_of, taken in zip(stream, squares, gathered, arrived, flags, strict=True)
            ]
            self._spread_rows = rows
        return self._spread[index].first(rows, parts(self._config, rows))

    def _of(self, index: int) -> Callable[[int, int], DeviceBuffer]:
        return lambda turn, rows: self._buffers[turn][index].slice(1, 0, rows)

    def _likeliest_of(self, rows: int, count: int) -> Sequence[tuple[DeviceBuffer, DeviceBuffer]]:
        """For the launches of each rank the largest of each part of the logits, and its index, (R, M, Z)."""
        key = rows, count or self._parts
        if key not in self._likeliest:
            heap = self._peers.heap(2 * (4 * rows * key[1] + 256))
            values, indices = (heap.empty(key, dtype) for dtype in ("f32", "i32"))
            self._likeliest[key] = list(zip(values, indices, strict=True))
        return self._likeliest[key]

    def _step_of(self, index: int, positions: int) -> DeviceBuffer | None:
        """For the steps of one rank the words that ranks tell each other, (R, Q), zeros before the first."""
        if not self._takes_step(positions):
            return None
        if not self._met:
            count = words_met(self._peers.ranks, self._config.n_embd)
            self._met = list(self._peers.heap(8 * count + 256).empty((count,), "i64"))
            for rank, each in zip(self._peers.numbers, self._met, strict=True):
                each.select(0, rank).copy_from(np.zeros(count, np.int64))
            for executor in self._peers.executors:
                executor.synchronize()
            self._peers.barrier("words that are zero")
        return self._met[index]
