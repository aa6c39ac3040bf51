"""A GPT that several GPUs run together: each rank is a model of its own with a share of the weights (see share.py).

Every call captures the launches of all ranks, then starts them on rank after rank. Ranks wait for each other on the
device, in the collectives; so nothing may wait on the host in between. The first launch of a kernel would: it loads it,
and a driver loads nothing beside a kernel that spins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from toolchain.errors import UsageError
from toolchain.runtime import DeviceBuffer, Executor, Launcher
from toolchain.runtime.peers import LOADING_S, Peers

from .config import GPTConfig
from .graphs import Decode, Forward, Session, Steps
from .model import GPT, KVCache, Tokens
from .share import Share
from .weights import Weights, check


class ParallelGPT:
    """`ranks`: the models of the ranks. Logits are whole on each rank, and the same bits."""

    def __init__(
        self, config: GPTConfig, weights: Weights, launchers: Sequence[Launcher], peers: Peers, dtype: str = "bf16"
    ) -> None:
        """`launchers`: one a rank, on the executors of `peers`. Raises UsageError for weights that do not fit the
        config, and for heads that the ranks cannot share."""
        check(config, weights, "weights")
        parts = [config.part(rank, peers.ranks) for rank in peers.numbers]
        if [launcher.executor for launcher in launchers] != list(peers.executors):
            raise UsageError("a parallel model takes one launcher for each of its peers, in their order")
        self.config, self.dtype, self.peers = config, dtype, peers
        peers.agree("the bundle", lambda: launchers[0].bundle.digest)
        peers.agree("the model's sizes and dtype", lambda: f"{dtype} {config}")
        self._room = _Room(peers, config.n_embd, "f32" if dtype == "tf32" else dtype)
        self._running: ParallelForward | None = None
        shares = [self._share(index) for index in range(len(parts))]
        self.ranks: tuple[GPT, ...] = tuple(
            GPT(part, share.weights(config, weights), launcher, dtype, share=share)
            for part, share, launcher in zip(parts, shares, launchers, strict=True)
        )

    @property
    def executor(self) -> Executor:
        """That of the first rank, whose logits are read."""
        return self.ranks[0].executor

    @property
    def nbytes(self) -> int:
        """Bytes of the weights on all devices."""
        return sum(model.nbytes for model in self.ranks)

    def reserve(self, rows: int) -> None:
        """Makes room for passes over so many rows. Graphs captured before keep theirs."""
        self._room.reserve(rows)

    def forward(self, tokens: Tokens) -> DeviceBuffer:
        """Logits (B, T, V) at every position of tokens (B, T), on the first rank."""
        batch, length = self.ranks[0].check_tokens(tokens)
        passes = ParallelForward(self, batch, length)
        passes.set_tokens(tokens)
        passes.run()
        self._running = passes  # its graphs and memory last until the next call
        return passes.logits

    def _share(self, index: int) -> Share:
        peers = self.peers
        return Share(peers.numbers[index], peers.ranks, peers.arguments(index), self._room.of(index))


class _Room:
    """Where the ranks put their parts: two buffers that take turns. One is written again only after the meeting in the
    other, when every rank has read it."""

    def __init__(self, peers: Peers, width: int, storage: str) -> None:
        self._peers, self._width, self._storage = peers, width, storage
        self._rows = 0
        self._buffers: Sequence[Sequence[DeviceBuffer]] = ()  # of each turn and rank (R, rows, C)

    def reserve(self, rows: int) -> None:
        if rows <= self._rows:
            return
        heap = self._peers.heap(2 * (4 * rows * self._width + 256))
        self._buffers = [heap.empty((rows, self._width), self._storage) for _ in range(2)]
        self._rows = rows

    def of(self, index: int) -> Callable[[int, int], DeviceBuffer]:
        return lambda turn, rows: self._buffers[turn][index].slice(1, 0, rows)


class ParallelForward:
    """`Forward` of every rank: one graph each. `logits` (B, T, V): those of the first rank."""

    def __init__(self, model: ParallelGPT, batch: int, length: int, *, graph: bool = True) -> None:
        model.reserve(batch * length)
        self.ranks = [Forward(each, batch, length, graph=graph) for each in model.ranks]
        model.peers.barrier("a forward pass", LOADING_S)
        self.logits = self.ranks[0].logits

    def set_tokens(self, tokens: Tokens) -> None:
        for rank in self.ranks:
            rank.set_tokens(tokens)

    def run(self) -> None:
        for rank in self.ranks:
            rank.run()


class ParallelDecode:
    """`Decode` of every rank, each over the cache of its heads: one graph each. `logits` (B, V), `tokens` (B) i32:
    those of the first rank, which are every rank's."""

    def __init__(self, model: ParallelGPT, caches: Sequence[KVCache], *, graph: bool = True) -> None:
        model.reserve(caches[0].batch)
        self.ranks = [Decode(each, cache, graph=graph) for each, cache in zip(model.ranks, caches, strict=True)]
        model.peers.barrier("decoding steps", LOADING_S)
        self.logits, self.tokens = self.ranks[0].logits, self.ranks[0].tokens

    def reset(self, tokens: Tokens) -> None:
        for rank in self.ranks:
            rank.reset(tokens)

    def feed(self, tokens: Tokens) -> None:
        for rank in self.ranks:
            rank.feed(tokens)

    def run(self) -> None:
        for rank in self.ranks:
            rank.run()

    def likeliest(self) -> Tokens:
        return self.ranks[0].likeliest()


class ParallelSession:
    """A `Session` of every rank."""

    def __init__(self, model: ParallelGPT, batch: int, positions: int) -> None:
        self._model = model
        self._ranks = [Session(each, batch, positions) for each in model.ranks]
        self._running: Sequence[tuple[Callable[[], object], DeviceBuffer]] = ()

    def prefill(self, index: int, tokens: Tokens) -> DeviceBuffer:
        self._model.reserve(tokens.size)
        captured = [rank.captured_prefill(index, tokens) for rank in self._ranks]
        self._model.peers.barrier(f"prompt {index}: {tokens.reshape(-1)[:8].tolist()}", LOADING_S)
        for run, _ in captured:
            run()
        self._running = captured  # graphs last until the next call
        return captured[0][1]

    def argmax(self, logits: DeviceBuffer) -> Tokens:
        return self._ranks[0].argmax(logits)

    def steps(self) -> Steps:
        return ParallelDecode(self._model, [rank.cache for rank in self._ranks])


AnyGPT = GPT | ParallelGPT


def open_session(model: AnyGPT, batch: int, positions: int) -> Session | ParallelSession:
    """The texts of one batch on a model of one device or of several. Raises UsageError for sizes that do not fit."""
    if isinstance(model, ParallelGPT):
        return ParallelSession(model, batch, positions)
    return Session(model, batch, positions)
