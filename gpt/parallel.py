"""A GPT that several GPUs run together: each rank is a model of its own with a share of the weights (see
parameters/share.py).

Every call captures the launches of all ranks, then starts them on rank after rank. Ranks wait for each other on the
device, in the collectives; so nothing may wait on the host in between. The first launch of a kernel would: it loads it,
and a driver loads nothing beside a kernel that spins.

A forward pass of many rows shares out the rows of the residual stream too (parameters/spread.py), where the bundle has
products for that. Else it is two halves of its sequences beside each other. Each has flags of its own, and its
collectives have at most half as many blocks as a GPU has multiprocessors. So those of both find room at once, even one
to a multiprocessor. All other blocks end by themselves, for none starts ahead of a collective that it would wait for
(`capture(beside=True)`). So neither half keeps the blocks of the other from starting for good.

The ranks may be processes. Then each makes the same calls, with the same arguments, and gets the same results.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.contract.expressions import cdiv
from toolchain.errors import UsageError
from toolchain.runtime import DeviceBuffer, Executor, Launcher
from toolchain.runtime.peers import LOADING_S, Peers

from .config import GPTConfig
from .families.one_launch import has_step_of_ranks
from .graphs import CapturedPrompt, Decode, Forward, Session, Steps, Texts
from .model import GPT, KVCache, Tokens
from .parameters.one_by_one import OneByOne, Zeros
from .parameters.quantize import is_quantized
from .parameters.spread import can_spread, may_spread
from .parameters.weights import check
from .room import Room

BESIDE_ROWS = 4096  # of a forward pass that is two halves
SPREAD_ROWS = 1024  # from which on rows are shared out: there GPT-2 XL takes 4.9 ms, and 5.5 as a whole
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
        self._launcher = launchers[0]
        self._steps = peers.apart and has_step_of_ranks(launchers[0], config, peers.ranks, dtype, 1)
        spreading = peers.apart and may_spread(launchers[0], config, dtype)
        self._folded = self._steps or spreading
        folded = self._folded and not isinstance(weights, Zeros)  # nobody reads those
        self._room = Room(peers, peers.channel, config, dtype, self.spreads, self.takes_step)
        self._halves: Sequence[tuple[Room, Sequence[GPT]]] = ()
        self._running: ParallelForward | None = None
        shares = [self._room.share(index) for index in range(len(parts))]
        own_weights = [share.weights(config, weights, dtype, folded=folded, whole=spreading) for share in shares]
        self.ranks: tuple[GPT, ...] = tuple(
            GPT(part, own, launcher, dtype, share=share)
            for part, own, launcher, share in zip(parts, own_weights, launchers, shares, strict=True)
        )

    @property
    def executor(self) -> Executor:
        """That of the first rank here."""
        return self.ranks[0].executor

    @property
    def nbytes(self) -> int:
        """Bytes of the weights on the devices of this process."""
        return sum(model.nbytes for model in self.ranks)

    def spreads(self, rows: int, length: int = 0) -> bool:
        """True if the ranks share out the residual stream of a pass over so many rows, of sequences of some `length`
        (see parameters/spread.py)."""
        return self._folded and can_spread(self._launcher, self.config, self.peers.ranks, rows, self.dtype, length)

    def takes_step(self, positions: int) -> bool:
        """True if a decoding step of one text over a cache of so many positions is one launch on each rank."""
        config, ranks = self.config, self.peers.ranks
        return self._steps and has_step_of_ranks(self._launcher, config, ranks, self.dtype, positions)

    @contextmanager
    def spreading(self, *, on: bool) -> Generator[None]:
        """Graphs that are captured inside share out the rows, if they can, or do not."""
        before, self._room.spreading = self._room.spreading, on
        try:
            yield
        finally:
            self._room.spreading = before

    @contextmanager
    def stepping(self, *, on: bool) -> Generator[None]:
        """Steps that are made inside are one launch on each rank, if they can be, or are not."""
        before, self._steps = self._steps, on and self._steps
        try:
            yield
        finally:
            self._steps = before

    def reserve(self, rows: int) -> None:
        """Makes room for passes over so many rows. Graphs captured before keep theirs."""
        self._room.reserve(rows)

    def halves(self, rows: int) -> Sequence[Sequence[GPT]]:
        """The models of the ranks for either half of a pass, of at most so many rows each. They have the weights of
        `ranks`."""
        if not self._halves:
            blocks = max(self.executor.sms // 2, 1)
            rooms = [Room(self.peers, self.peers.new_channel(blocks), self.config, self.dtype) for _ in range(2)]
            self._halves = [
                (room, [rank.beside(room.share(index)) for index, rank in enumerate(self.ranks)]) for room in rooms
            ]
        for room, _ in self._halves:
            room.reserve(rows)
        return [models for _, models in self._halves]

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
            for rank in self.ranks:
                rank.check_waits(1)
            self.peers.synchronize()


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


class ParallelForward:
    """`Forward` of every rank: a graph each, or two of half the sequences that run beside each other: while the ranks
    exchange the sums of one half, they multiply in the other. `logits` (B, T, V)."""

    def __init__(
        self, model: ParallelGPT, batch: int, length: int, *, graph: bool = True, halves: bool | None = None,
        spread: bool | None = None,
    ) -> None:  # fmt: skip
        """`spread`: whether rows are shared out too, by default if they are many and can be, and no halves are asked
        for. `halves`: by default if they are worth it. Raises UsageError where either is asked for and cannot be:
        halves of one sequence, without graphs, and for two ranks on one GPU, where each could keep from starting what
        the other waits for."""
        rows = batch * length
        if spread and (halves or not model.spreads(rows, length)):
            raise UsageError(f"{rows} rows cannot be shared out here", hint="see gpt/parameters/spread.py")
        if spread is None:
            spread = not halves and rows >= SPREAD_ROWS and model.spreads(rows, length)
        possible = batch > 1 and graph and model.peers.apart
        if halves and not possible:
            raise UsageError("halves are graphs of at least 2 sequences, on a GPU for each rank")
        if halves is None:
            halves = possible and rows >= BESIDE_ROWS and not spread
        self._model, self._sizes = model, (batch, length)
        if halves:
            self._cuts = [0, cdiv(batch, 2), batch]  # the sequences at which a part begins, and the end
            parts = model.halves(self._cuts[1] * length)
        else:
            self._cuts, parts = [0, batch], [model.ranks]
            model.reserve(batch * length)
        outs = [rank.new_logits(batch * length) for rank in model.ranks]

        def passes(models: Sequence[GPT], first: int, stop: int) -> list[Forward]:
            """Those of some sequences on every rank."""
            own = [out.slice(0, first * length, stop * length) for out in outs]
            return [
                Forward(each, stop - first, length, graph=graph, out=out, beside=halves)
                for each, out in zip(models, own, strict=True)
            ]

        with model.spreading(on=spread):
            self._parts = [passes(models, *cut) for models, cut in zip(parts, pairwise(self._cuts), strict=True)]
        model.peers.barrier("a forward pass", LOADING_S)
        logits = [rank.visible(out).unflatten(0, batch, length) for rank, out in zip(model.ranks, outs, strict=True)]
        self.logits = SharedLogits(model, logits)

    def set_tokens(self, tokens: Tokens) -> None:
        """The tokens (B, T) of the next runs. Raises UsageError."""
        if self._model.ranks[0].check_tokens(tokens) != self._sizes:
            raise UsageError(
                f"these graphs are of {self._sizes[0]} x {self._sizes[1]} tokens, not {list(tokens.shape)}"
            )
        for passes, (first, stop) in zip(self._parts, pairwise(self._cuts), strict=True):
            for each in passes:
                each.set_tokens(tokens[first:stop])

    def run(self) -> None:
        """Starts one forward pass: the first part on every rank before the second on any, so that no rank is without
        what another one waits for."""
        self.logits.started_s = time.monotonic()
        first, *later = self._parts
        with ExitStack() as beside:
            starts = [beside.enter_context(each.model.executor.beside()) for each in first] if later else []
            for each in first:
                each.run()
            for passes in later:
                for start, each in zip(starts, passes, strict=True):
                    each.run_by(start)


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
