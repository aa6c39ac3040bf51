"""A GPT that several GPUs run together: each rank is a model of its own with a share of the weights (see share.py).

Every call captures the launches of all ranks, then starts them on rank after rank. Ranks wait for each other on the
device, in the collectives; so nothing may wait on the host in between. The first launch of a kernel would: it loads it,
and a driver loads nothing beside a kernel that spins.

The ranks may be processes. Then each makes the same calls, with the same arguments, and gets the same results.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.contract.entry import cdiv
from toolchain.errors import UsageError
from toolchain.runtime import DeviceBuffer, Executor, Launcher
from toolchain.runtime.peers import LOADING_S, Peers

from .config import GPTConfig, vocabulary_part
from .graphs import CapturedPrompt, Decode, Forward, Session, Steps, Texts
from .model import GPT, PART, KVCache, Tokens
from .one_by_one import OneByOne
from .quantize import is_quantized
from .share import Share
from .weights import check

SLOW_S = 0.5  # a step that takes longer may have given up waiting for a rank


class ParallelGPT:
    """`ranks`: the models of the ranks, in this process."""

    def __init__(
        self, config: GPTConfig, weights: Mapping[str, NDArray[Any]], launchers: Sequence[Launcher], peers: Peers,
        dtype: str = "bf16",
    ) -> None:  # fmt: skip
        """`weights`: each tensor is taken once for each rank here, and its part copied to the device. `launchers`: one
        a rank, on the executors of `peers`. Raises UsageError for weights that do not fit the config, and for a model
        that the ranks cannot share."""
        if is_quantized(weights):
            raise UsageError("a quantized model runs on one device", hint="share the one that is not quantized")
        if not isinstance(weights, OneByOne):  # those are checked as they are read
            check(config, weights, "weights")
        parts = [config.part(rank, peers.ranks) for rank in peers.numbers]
        if [launcher.executor for launcher in launchers] != list(peers.executors):
            raise UsageError("a parallel model takes one launcher for each of its peers, in their order")
        self.config, self.dtype, self.peers = config, dtype, peers
        peers.agree("the bundle", lambda: launchers[0].bundle.digest)
        peers.agree("the model's sizes and dtype", lambda: f"{dtype} {config}")
        self._room = _Room(peers, config, "f32" if dtype == "tf32" else dtype)
        self._running: ParallelForward | None = None
        shares = [self._share(index) for index in range(len(parts))]
        self.ranks: tuple[GPT, ...] = tuple(
            GPT(part, share.weights(config, weights, dtype), launcher, dtype, share=share)
            for part, share, launcher in zip(parts, shares, launchers, strict=True)
        )

    @property
    def executor(self) -> Executor:
        """That of the first rank here."""
        return self.ranks[0].executor

    @property
    def nbytes(self) -> int:
        """Bytes of the weights on the devices of this process."""
        return sum(model.nbytes for model in self.ranks)

    def reserve(self, rows: int) -> None:
        """Makes room for passes over so many rows. Graphs captured before keep theirs."""
        self._room.reserve(rows)

    def forward(self, tokens: Tokens) -> SharedLogits:
        """Logits (B, T, V) at every position of tokens (B, T)."""
        batch, length = self.ranks[0].check_tokens(tokens)
        passes = ParallelForward(self, batch, length)
        passes.set_tokens(tokens)
        passes.run()
        self._running = passes  # its graphs and memory last until the next call
        return passes.logits

    def check(self, started_s: float) -> None:
        """Raises DeviceError if a rank has ended, or was waited for in vain since then. What all have computed is
        known."""
        if self.peers.world is not None:
            self.peers.world.check()
        if time.monotonic() - started_s > SLOW_S:
            self.peers.synchronize()

    def _share(self, index: int) -> Share:
        peers, room = self.peers, self._room
        return Share(
            peers.numbers[index], peers.ranks, self.config.vocab_size, peers.arguments(index), room.of(index),
            lambda rows: room.likeliest(rows)[index],
        )  # fmt: skip


class SharedLogits:
    """Logits (..., V) of which each rank has some columns (see Share.tokens)."""

    def __init__(self, model: ParallelGPT, parts: Sequence[DeviceBuffer]) -> None:
        self._model, self.parts = model, parts
        self.started_s = time.monotonic()  # when the launches that write them began

    @property
    def shape(self) -> tuple[int, ...]:
        return (*self.parts[0].shape[:-1], self._model.config.vocab_size)

    def numpy(self) -> NDArray[Any]:
        """Those of all ranks, on the host."""
        own = [part.numpy() for part in self.parts]
        self._model.check(self.started_s)
        return np.concatenate(self._model.peers.gather("logits", own), axis=-1)


class _Room:
    """Memory that all ranks reach.

    Where the ranks put their parts of a sum: two buffers that take turns. One is written again only after the meeting
    in the other, when every rank has read it. And where they put their likeliest tokens: between two writes there are
    the meetings of all layers.
    """

    def __init__(self, peers: Peers, config: GPTConfig, storage: str) -> None:
        self._peers, self._width, self._storage = peers, config.n_embd, storage
        self._parts = cdiv(vocabulary_part(config.vocab_size, peers.ranks), PART)
        self._rows = 0
        self._buffers: Sequence[Sequence[DeviceBuffer]] = ()  # of each turn and rank (R, rows, C)
        self._likeliest: dict[int, Sequence[tuple[DeviceBuffer, DeviceBuffer]]] = {}

    def reserve(self, rows: int) -> None:
        if rows <= self._rows:
            return
        heap = self._peers.heap(2 * (4 * rows * self._width + 256))
        self._buffers = [heap.empty((rows, self._width), self._storage) for _ in range(2)]
        self._rows = rows

    def of(self, index: int) -> Callable[[int, int], DeviceBuffer]:
        return lambda turn, rows: self._buffers[turn][index].slice(1, 0, rows)

    def likeliest(self, rows: int) -> Sequence[tuple[DeviceBuffer, DeviceBuffer]]:
        """For the launches of each rank the largest of each part of the logits, and its index, (R, M, Z)."""
        if rows not in self._likeliest:
            heap = self._peers.heap(2 * (4 * rows * self._parts + 256))
            values, indices = (heap.empty((rows, self._parts), dtype) for dtype in ("f32", "i32"))
            self._likeliest[rows] = list(zip(values, indices, strict=True))
        return self._likeliest[rows]


class ParallelForward:
    """`Forward` of every rank: one graph each. `logits` (B, T, V)."""

    def __init__(self, model: ParallelGPT, batch: int, length: int, *, graph: bool = True) -> None:
        model.reserve(batch * length)
        self.ranks = [Forward(each, batch, length, graph=graph) for each in model.ranks]
        model.peers.barrier("a forward pass", LOADING_S)
        self.logits = SharedLogits(model, [rank.logits for rank in self.ranks])

    def set_tokens(self, tokens: Tokens) -> None:
        for rank in self.ranks:
            rank.set_tokens(tokens)

    def run(self) -> None:
        self.logits.started_s = time.monotonic()
        for rank in self.ranks:
            rank.run()


class ParallelDecode:
    """`Decode` of every rank, each over the cache of its heads: one graph each. `logits` (B, V); `tokens` (B) i32:
    those of the first rank here, which are every rank's."""

    def __init__(self, model: ParallelGPT, caches: Sequence[KVCache], *, graph: bool = True) -> None:
        model.reserve(caches[0].batch)
        self._model = model
        self.ranks = [Decode(each, cache, graph=graph) for each, cache in zip(model.ranks, caches, strict=True)]
        model.peers.barrier("decoding steps", LOADING_S)
        self.logits = SharedLogits(model, [rank.logits for rank in self.ranks])
        self.tokens = self.ranks[0].tokens

    def reset(self, tokens: Tokens, lengths: NDArray[np.integer[Any]] | None = None) -> None:
        for rank in self.ranks:
            rank.reset(tokens, lengths)

    def feed(self, tokens: Tokens) -> None:
        for rank in self.ranks:
            rank.feed(tokens)

    def run(self) -> None:
        self.logits.started_s = time.monotonic()
        for rank in self.ranks:
            rank.run()

    def likeliest(self) -> Tokens:
        """See Decode.likeliest. Each rank knows whether its own logits are finite."""
        found = [rank.likeliest() for rank in self.ranks]
        self._model.check(self.logits.started_s)
        return found[0]


class ParallelSession:
    """A `Session` of every rank."""

    def __init__(self, model: ParallelGPT, batch: int, positions: int) -> None:
        self._model = model
        self._ranks = [Session(each, batch, positions) for each in model.ranks]
        self._running: _Prompted | None = None

    def prefill(self, index: int, tokens: Tokens) -> _Prompted:
        model = self._model
        model.reserve(tokens.size)
        captured = [rank.captured_prefill(index, tokens) for rank in self._ranks]
        model.peers.barrier(f"prompt {index}: {tokens.reshape(-1)[:8].tolist()}", LOADING_S)
        prompted = self._running = _Prompted(model, captured)  # graphs last until the next call
        for each in captured:
            each.run()
        return prompted

    def steps(self) -> Steps:
        return ParallelDecode(self._model, [rank.cache for rank in self._ranks])


class _Prompted(SharedLogits):
    """A prompt on every rank."""

    def __init__(self, model: ParallelGPT, captured: Sequence[CapturedPrompt]) -> None:
        super().__init__(model, [each.logits for each in captured])
        self._captured = captured

    def likeliest(self) -> Tokens:
        found = [each.likeliest() for each in self._captured]
        self._model.check(self.started_s)
        return found[0]


AnyGPT = GPT | ParallelGPT


def open_session(model: AnyGPT, batch: int, positions: int) -> Texts:
    """The texts of one batch on a model of one device or of several. Raises UsageError for sizes that do not fit."""
    if isinstance(model, ParallelGPT):
        return ParallelSession(model, batch, positions)
    return Session(model, batch, positions)
