"""The memory of a model on several GPUs that all of them reach, and what each rank's launches take of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from toolchain.contract.expressions import cdiv
from toolchain.contract.op import ops
from toolchain.runtime import DeviceBuffer
from toolchain.runtime.peers import Peers
from toolchain.runtime.peers.channel import Channel

from .config import GPTConfig, vocabulary_part
from .model import PART
from .parameters.share import Share
from .parameters.spread import OPS, Spread, parts


class Room:
    """Where the ranks put their parts of a sum: two buffers that take turns. One is written again only after the
    meeting in the other, when every rank has read it. And where they put their likeliest tokens: between two writes
    there are the meetings of all layers. Launches that run beside each other have a room each, and a channel."""

    def __init__(
        self, peers: Peers, channel: Channel, config: GPTConfig, dtype: str,
        spreads: Callable[[int], bool] = lambda rows: False,  # noqa: ARG005
    ) -> None:  # fmt: skip
        """`config`: of the whole model. `dtype`: the model's. `spreads`: whether the residual stream of a pass of so
        many rows is shared out."""
        self._peers, self._channel, self._config = peers, channel, config
        self._storage = "f32" if dtype == "tf32" else dtype
        self._parts = cdiv(vocabulary_part(config.vocab_size, peers.ranks), PART)
        self._rows = self._spread_rows = 0
        self.spreading = False  # whether launches share out rows now
        self._spreads, self._spread = spreads, list[Spread]()  # one a rank, of the largest pass
        self._buffers: Sequence[Sequence[DeviceBuffer]] = ()  # of each turn and rank (R, rows, C)
        self._likeliest: dict[int, Sequence[tuple[DeviceBuffer, DeviceBuffer]]] = {}

    def share(self, index: int) -> Share:
        """What the model of one of the peers' executors has of the whole."""
        peers = self._peers
        return Share(
            peers.numbers[index], peers.ranks, self._config.vocab_size, self._channel.arguments(index),
            self._of(index), lambda rows: self._likeliest_of(rows)[index], lambda rows: self._spread_of(index, rows),
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
            count = max(parts(self._config, many) for many in (0, rows))
            heap = self._peers.heap(2 * 2 * rows * width + 4 * count * rows + 3 * 512)
            stream, squares = heap.empty((rows, width), self._storage), heap.empty((count, rows), "f32")
            arrived = heap.empty((ranks, rows // ranks, width), self._storage)
            flags = [self._channel.arguments(number, ops()[OPS[0]]) for number in range(len(stream))]
            self._spread = [Spread(*each) for each in zip(stream, squares, arrived, flags, strict=True)]
            self._spread_rows = rows
        whole = self._spread[index]
        squares = whole.squares.slice(1, 0, parts(self._config, rows)).slice(2, 0, rows)
        return replace(
            whole, stream=whole.stream.slice(1, 0, rows), squares=squares,
            arrived=whole.arrived.slice(2, 0, rows // ranks),
        )  # fmt: skip

    def _of(self, index: int) -> Callable[[int, int], DeviceBuffer]:
        return lambda turn, rows: self._buffers[turn][index].slice(1, 0, rows)

    def _likeliest_of(self, rows: int) -> Sequence[tuple[DeviceBuffer, DeviceBuffer]]:
        """For the launches of each rank the largest of each part of the logits, and its index, (R, M, Z)."""
        if rows not in self._likeliest:
            heap = self._peers.heap(2 * (4 * rows * self._parts + 256))
            values, indices = (heap.empty((rows, self._parts), dtype) for dtype in ("f32", "i32"))
            self._likeliest[rows] = list(zip(values, indices, strict=True))
        return self._likeliest[rows]
