"""The launches of some layers of a pass of a GPT-2 whose rows are shared out to ranks: their arguments, the entries
that fit them, and ways to launch them again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import ml_dtypes
import numpy as np

from gpt.parallel import ParallelGPT
from gpt.parameters.spread import ATTENTION, OPS, OWN, TO, Spread
from toolchain.bundles.bundle import Bundle, BundleEntry
from toolchain.contract.expressions import cdiv
from toolchain.errors import UsageError
from toolchain.runtime import DeviceBuffer, Launcher
from toolchain.runtime.launch import EntryLauncher, check_layouts

Args = Mapping[str, "DeviceBuffer | float"]
Entry = tuple[Bundle, BundleEntry]
LAUNCHES = ("queries, keys, values", "attention", "attention's projection", "GELU", "MLP's projection")
ENDS = ("embedding", "last product", "last sum", "logits")  # of a pass
DTYPE = "bf16"
LAYERS = 4  # with weights of their own, in turns
PERIOD = 1_000_003  # numbers that are drawn; an operand repeats them, and no row begins as another


class Turns(Protocol):
    """Launches something some times, and tells how often. `first`: nothing was launched before in this graph."""

    def __call__(self, *, first: bool) -> int: ...


class _Listed(Launcher):
    """Launches nothing, and lists what is asked for."""

    def __init__(self, like: Launcher) -> None:
        super().__init__(like.bundle, like.source, like.executor, like.target, borrows_from=like.borrows_from)
        self.calls: list[tuple[str, Args]] = []

    def __call__(self, op: str, dtype: str, /, **args: DeviceBuffer | float) -> None:
        del dtype
        self.calls.append((op, args))


class Layers:
    """Of each launch the arguments of all ranks. `calls`: those of LAYERS layers, one launch after the other, and the
    ENDS of a pass. `start`: the residual stream before the first."""

    def __init__(self, model: ParallelGPT, bundles: Sequence[Bundle], rows: int) -> None:
        self.peers, self._bundles, self.rows = model.peers, bundles, rows
        self._launcher = model.ranks[0].launcher
        length = min(rows, model.config.n_ctx)
        if rows % length or not model.spreads(rows, length):
            raise UsageError(f"{rows} rows cannot be shared out here", hint="see gpt/parameters/spread.py")
        model.reserve(rows)
        listed = [_Listed(rank.launcher) for rank in model.ranks]
        self._kept: list[object] = []
        with model.spreading(on=True):
            for rank, launcher in zip(model.ranks, listed, strict=True):
                work, out = rank.new_workspace(rows // length, length), rank.new_logits(rows)
                first = np.zeros((rows // length, length), np.int32)
                rank.place(work, first, first[:, 0])  # the embedding reads the rows that tokens name
                rank.launched_by(launcher).passes.forward(work, rows // length, length, out)
                self._kept.append((work, out))
        count, every = len(OPS), [list(calls) for calls in zip(*(each.calls for each in listed), strict=True)]
        self.calls = every[1 + count : 1 + count * (1 + LAYERS)]  # behind the embedding and the first layer
        if [calls[0][0] for calls in self.calls] != [*OPS] * LAYERS:
            raise UsageError("a layer is not of the launches that are known here")
        self.calls += [every[0], *every[-3:]]
        self.ranks, self._width = len(listed), model.config.n_embd
        self.spreads = [_spread(own[1], to[1]) for own, to in zip(self.calls[2], self.calls[4], strict=True)]
        self._launch = [EntryLauncher(executor) for executor in self.peers.executors]
        both = zip(*(each.squares for each in self.spreads), strict=True)
        self._squares: dict[int, Sequence[DeviceBuffer]] = {each[0].shape[1]: each for each in both}
        drawn = np.random.default_rng(1).standard_normal(PERIOD, np.float32).astype(ml_dtypes.bfloat16)
        self._drawn = drawn
        self._taken: dict[tuple[int, int], Entry] = {}
        self.start = np.resize(drawn, (rows, self._width))

    def entries(self, number: int) -> list[Entry]:
        """All that fit a launch of all ranks, but the one that a pass takes."""
        op, found = OPS[number], list[Entry]()
        for bundle in self._bundles:
            for entry in bundle.entries_of("cute", op, DTYPE):
                every = [self.args(args, self.parts(entry)) for _, args in self.calls[number]]
                if not any(entry.spec.unmet(*check_layouts(op, op, DTYPE, args)) for args in every):
                    found.append((bundle, entry))
        taken = self._launcher.select(op, DTYPE, **self.calls[number][0][1]).spec
        return [each for each in found if (each[0], each[1].spec) != (self._bundles[0], taken)]

    def parts(self, entry: BundleEntry) -> int:
        """Parts of the squares that an entry sums up; 0 for as many as a pass has."""
        summed = entry.spec.constants.get("SUMMED", 0)
        return cdiv(self._width, summed) if summed else 0

    def args(self, args: Args, parts: int) -> Args:
        """The arguments of a launch, with so many parts of squares."""
        if "squares" not in args or not parts:
            return args
        if parts not in self._squares:
            heap = self.peers.heap(4 * parts * self.rows + 512)
            self._squares[parts] = list(heap.empty((parts, self.rows), "f32"))
        rank = args["rank"]
        assert isinstance(rank, int)
        return {**args, "squares": self._squares[parts][rank]}

    def run(self, number: int, entry: Entry | None, parts: int, *, sends: int | None = None) -> None:
        """One launch of all ranks. `sends`: whether it sends rows, else as in a pass."""
        for rank, (op, args) in enumerate(self.calls[number]):
            given = self.args(args, parts)
            if sends is not None and "sends" in given:
                given = {**given, "sends": sends}
            if not entry and (number, rank) not in self._taken:
                self._taken[number, rank] = self._launcher.bundle, self._launcher.select(op, DTYPE, **args)
            self._launch[rank](*(entry or self._taken[number, rank]), given)

    def turns(self, last: int, entries: Mapping[int, Entry] | None = None, *, copies: bool | None = None) -> Turns:
        """What launches layers that end with the launch `last`. The result: how many."""
        copies = self.spreads[0].copies if copies is None else copies
        entries = entries or {}
        parts = {of: self.parts(entries[to][1]) if to in entries else 0 for of, to in ((0, 4), (2, 2), (3, 2), (4, 4))}
        # Rows are counted as often as they are made: by a launch of each of the two products that read them
        made = {0: last in (2, 4), 3: last >= 3}

        def run(*, first: bool) -> int:
            for layer in range(LAYERS):
                for number in range(last + 1):
                    # The first product reads rows that all ranks have
                    sends = made.get(number, False) and not copies and not (first and layer == number == 0)
                    at = layer * len(OPS) + number
                    self.run(at, entries.get(number), parts.get(number, 0), sends=int(sends))
                    if number in (2, 4) and copies:
                        for each in self.spreads:
                            each.send()
            return LAYERS

        return run

    def again(self, number: int, entry: Entry | None, parts: int) -> Turns:
        def turns(*, first: bool) -> int:
            del first
            for layer in range(LAYERS):
                in_layer = layer * len(OPS) + number
                self.run(in_layer if number < len(OPS) else number, entry, parts, sends=0)
            return LAYERS

        return turns

    def reset(self) -> None:
        """The residual stream as it was, with squares that are those of its rows but for a few percent."""
        for rank, each in enumerate(self.spreads):
            each.stream.select(0, rank).copy_from(self.start)
            for parts, squares in self._squares.items():
                squares[rank].select(0, rank).copy_from(np.full((parts, self.rows), self._width / parts, np.float32))
        for executor in self.peers.executors:
            executor.synchronize()

    def fill(self, number: int) -> None:
        """What a launch reads that one of a layer would have made."""
        for rank, (_, args) in enumerate(self.calls[number]):
            reads = {ATTENTION: ("q", "k", "v"), OWN: ("x",), TO: ("x",)}
            for name in reads.get(OPS[number], ()):
                buffer = self.own(number, rank) if name == "x" else args[name]
                assert isinstance(buffer, DeviceBuffer)
                buffer.copy_from(np.resize(np.roll(self._drawn, 7 * rank + len(name)), buffer.shape))

    def own(self, number: int, rank: int) -> Any:
        """What a rank reads as x."""
        x: Any = self.calls[number][rank][1]["x"]
        return x.select(0, rank) if OPS[number] == OWN else x


def _spread(own: Mapping[str, Any], to: Mapping[str, Any]) -> Spread:
    """That of the products that add to the residual stream."""
    flags = {name: to[name] for name in ("flags", "ended", "state", "rank")}
    return Spread(to["out"], (own["squares"], to["squares"]), own["x"], to["arrived"], flags)
