"""The memory of a model on several GPUs that all of them reach, and what each rank's launches take of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from toolchain.contract.entry import cdiv
from toolchain.runtime import DeviceBuffer
from toolchain.runtime.peers import Peers
from toolchain.runtime.peers.channel import Channel

from .config import GPTConfig, vocabulary_part
from .model import PART
from .share import Share


class Room:
    """Where the ranks put their parts of a sum: two buffers that take turns. One is written again only after the
    meeting in the other, when every rank has read it. And where they put their likeliest tokens: between two writes
    there are the meetings of all layers. Launches that run beside each other have a room each, and a channel."""

    def __init__(self, peers: Peers, channel: Channel, config: GPTConfig, dtype: str) -> None:
        """`config`: of the whole model. `dtype`: the model's."""
        self._peers, self._channel, self._config = peers, channel, config
        self._storage = "f32" if dtype == "tf32" else dtype
        self._parts = cdiv(vocabulary_part(config.vocab_size, peers.ranks), PART)
        self._rows = 0
        self._buffers: Sequence[Sequence[DeviceBuffer]] = ()  # of each turn and rank (R, rows, C)
        self._likeliest: dict[int, Sequence[tuple[DeviceBuffer, DeviceBuffer]]] = {}

    def share(self, index: int) -> Share:
        """What the model of one of the peers' executors has of the whole."""
        peers = self._peers
        return Share(
            peers.numbers[index], peers.ranks, self._config.vocab_size, self._channel.arguments(index),
            self._of(index), lambda rows: self._likeliest_of(rows)[index],
        )  # fmt: skip

    def reserve(self, rows: int) -> None:
        """Makes room for sums over so many rows. What was taken before stays as it is."""
        if rows <= self._rows:
            return
        width = self._config.n_embd
        heap = self._peers.heap(2 * (4 * rows * width + 256))
        self._buffers = [heap.empty((rows, width), self._storage) for _ in range(2)]
        self._rows = rows

    def _of(self, index: int) -> Callable[[int, int], DeviceBuffer]:
        return lambda turn, rows: self._buffers[turn][index].slice(1, 0, rows)

    def _likeliest_of(self, rows: int) -> Sequence[tuple[DeviceBuffer, DeviceBuffer]]:
        """For the launches of each rank the largest of each part of the logits, and its index, (R, M, Z)."""
        if rows not in self._likeliest:
            heap = self._peers.heap(2 * (4 * rows * self._parts + 256))
            values, indices = (heap.empty((rows, self._parts), dtype) for dtype in ("f32", "i32"))
            self._likeliest[rows] = list(zip(values, indices, strict=True))
        return self._likeliest[rows]
