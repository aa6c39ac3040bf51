"""A layer of a GPT-2 whose rows are shared out to ranks, on as many GPUs: what each launch takes, and what a layer does
with other entries.

`alone`: one launch again and again, on numbers of its own. Nobody sends rows then, and no rank waits for another one
but in products that add to the residual stream. `up to`: layers that end with a launch, so that the difference of two
of them is what the last one adds in its place. `layer`: whole layers, with the entries that a pass takes, or with
another one for one launch.

Before it is timed, each entry's result is compared with a product on the host, and a layer's with that of the entries
that a pass takes. No rank ends before the others have come, so of each sample the rank with the shortest time counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.results.stats import median
from gpt.config import GPTConfig
from gpt.parallel import ParallelGPT
from gpt.parameters.spread import ATTENTION, OF, OPS, OWN, TO
from gpt.parameters.weights import random_weights
from toolchain.bundles.bundle import Bundle
from toolchain.errors import ConformanceError, DeviceError, TilestackError
from toolchain.runtime import DeviceBuffer, Launcher
from toolchain.runtime.peers import Peers

from .cases import WARM_UP
from .layers import DTYPE, ENDS, LAUNCHES, LAYERS, Entry, Layers, Turns

F32 = NDArray[np.float32]
SAMPLES, SAMPLE_US = 9, 4000.0
ROWS = 8  # at either end of a piece that are compared
RELATIVE = 3e-2  # of the largest magnitude


@dataclass(frozen=True)
class LayerRow:
    """µs of one launch or layer: the median, and its 95 % interval. `launch`: which one of LAUNCHES; `variant`: its
    entry, empty for that of a pass. `error`: why there is no time."""

    rows: int
    what: str
    launch: str
    variant: str
    us: float = 0.0
    low: float = 0.0
    high: float = 0.0
    error: str = ""


def measure(
    config: GPTConfig, bundles: Sequence[Bundle], source: str, borrows_from: str, peers: Peers, lengths: Sequence[int],
    say: Callable[[LayerRow], object] = print,
) -> list[LayerRow]:  # fmt: skip
    """Rows of passes over so many rows, in texts of as many tokens as the model takes. `bundles`: of a pass, and of
    more entries for it. Raises UsageError for a bundle or sizes whose rows cannot be shared out."""
    config = replace(config, n_layer=LAYERS + 2)
    launchers = [Launcher(bundles[0], source, each, borrows_from=borrows_from) for each in peers.executors]
    model = ParallelGPT(config, random_weights(config, 1).astype(DTYPE), launchers, peers, DTYPE)
    made: list[LayerRow] = []
    for rows in lengths:
        for row in _Measured(Layers(model, bundles, rows)).measure():
            made.append(row)
            say(row)
    return made


class _Measured:
    """Layers that are timed on all ranks."""

    def __init__(self, layers: Layers) -> None:
        self._layers, self._peers = layers, layers.peers
        self._weights: dict[tuple[int, int], F32] = {}
        self._wanted: F32 | None = None

    def measure(self) -> Iterator[LayerRow]:
        for number, launch in enumerate(LAUNCHES):
            for entry in [None, *self._layers.entries(number)]:
                yield self._row("alone", launch, entry, lambda n=number, e=entry: self._alone(n, e))
        for number, launch in enumerate(ENDS, LAYERS * len(LAUNCHES)):
            yield self._row("alone", launch, None, lambda n=number: self._time(self._layers.again(n, None, 0)))
        for last in range(len(LAUNCHES) - 1):
            yield self._row("up to", LAUNCHES[last], None, lambda n=last: self._time(self._layers.turns(n)))
        yield self._row("layer", "", None, lambda: self._layer({}))
        for number, launch in enumerate(LAUNCHES):
            for entry in self._layers.entries(number):
                yield self._row("layer", launch, entry, lambda n=number, e=entry: self._layer({n: e}))
        yield self._row("layer", "", None, lambda: self._layer({}))
        yield self._row(
            "layer, others send", "", None, lambda: self._layer({}, copies=not self._layers.spreads[0].copies)
        )

    def _row(self, what: str, launch: str, entry: Entry | None, found: Callable[[], list[float]]) -> LayerRow:
        variant = entry[1].spec.symbol if entry else ""
        try:
            time = median(found())
        except DeviceError:
            raise
        except TilestackError as error:
            return LayerRow(self._layers.rows, what, launch, variant, error=f"{type(error).__name__}: {error.args[0]}")
        return LayerRow(
            self._layers.rows, what, launch, variant, round(time.value, 3), round(time.low, 3), round(time.high, 3)
        )

    def _alone(self, number: int, entry: Entry | None) -> list[float]:
        parts = self._layers.parts(entry[1]) if entry else 0
        self._layers.fill(number)
        if OPS[number] != ATTENTION:
            self._check_one(number, entry, parts)
        return self._time(self._layers.again(number, entry, parts))

    def _weight(self, number: int, rank: int) -> F32:
        if (number, rank) not in self._weights:
            self._weights[number, rank] = _numpy(self._layers.calls[number][rank][1]["weight"])
        return self._weights[number, rank]

    def _check_one(self, number: int, entry: Entry | None, parts: int) -> None:
        """Some rows of each rank's result. Raises ConformanceError."""
        self._layers.reset()
        op = OPS[number]
        calls = [self._layers.args(args, parts) for _, args in self._layers.calls[number]]
        piece = self._layers.rows // self._layers.ranks
        own = [np.r_[r * piece : r * piece + ROWS, (r + 1) * piece - ROWS : (r + 1) * piece] for r in range(2)]
        with self._peers.capture() as graphs:
            self._layers.run(number, entry, parts, sends=0)
        self._once(graphs)
        self._peers.synchronize()
        for rank, args in enumerate(calls):
            start = self._layers.start.astype(np.float32)
            if op in (OWN, TO):
                rows = own[rank]
                wanted = start[rows] + _numpy(args["bias"])
                for other in [rank] if op == OWN else range(self._layers.ranks):
                    of_x = rows - rank * piece if op == OWN else rows
                    wanted = wanted + _numpy(self._layers.own(number, other), of_x) @ self._weight(number, other)
                got = _numpy(args["out"].select(0, rank), rows)  # pyright: ignore[reportAttributeAccessIssue]
                squares = args["squares"].select(0, rank).numpy().sum(axis=0)[rows]  # pyright: ignore[reportAttributeAccessIssue]
                _near(squares, (wanted**2).sum(axis=1), f"squares of rank {rank}")
            else:
                rows = np.r_[own[0], own[1]]
                means = args["squares"].select(0, rank).numpy().sum(axis=0)[rows] / start.shape[1]  # pyright: ignore[reportAttributeAccessIssue]
                wanted = start[rows] @ self._weight(number, rank) / np.sqrt(means)[:, None] + _numpy(args["bias"])
                if op != OF:
                    wanted = 0.5 * wanted * (1 + np.tanh(0.7978845608 * (wanted + 0.044715 * wanted**3)))
                got = _numpy(args["out"], rows)
            _near(got, wanted, f"rank {rank}")

    def _layer(self, entries: Mapping[int, Entry], *, copies: bool | None = None) -> list[float]:
        def check() -> None:
            rows = [0, 1, self._layers.rows // 2, self._layers.rows - 1]
            got = [_numpy(each.stream.select(0, rank), rows) for rank, each in enumerate(self._layers.spreads)]
            own = np.concatenate([got[0][:2], got[1][2:]])  # of each rank the rows of its piece
            if self._wanted is None:
                self._wanted = own
            _near(own, self._wanted, "the residual stream")

        return self._time(self._layers.turns(len(OPS) - 1, entries, copies=copies), check)

    def _time(self, turns: Turns, check: Callable[[], None] | None = None) -> list[float]:
        """Samples of one of what `turns` launches."""
        with self._peers.capture() as graphs:
            count = turns(first=True)
        self._layers.reset()
        first = self._once(graphs)
        if check is not None:
            check()
        again = max(1, int(SAMPLE_US / first))
        if again > 1:
            with self._peers.capture() as graphs:
                count = sum(turns(first=not turn) for turn in range(again))
        found = [self._once(graphs) / count for _ in range(WARM_UP + SAMPLES)][WARM_UP:]
        self._peers.synchronize()
        return found

    def _once(self, graphs: Any) -> float:
        executors = self._peers.executors
        for each in self._layers.spreads:
            ended = each.flags["ended"]
            assert isinstance(ended, DeviceBuffer)
            ended.select(0, int(each.flags["rank"])).fill(0)  # pyright: ignore[reportArgumentType]
        for executor in executors:
            executor.synchronize()
        starts = [executor.record() for executor in executors]
        graphs.replay()
        ends = [executor.record() for executor in executors]
        for executor in executors:
            executor.synchronize()
        return min(end.us_since(start) for start, end in zip(starts, ends, strict=True))


def _numpy(buffer: Any, rows: Any = None) -> F32:
    """Some rows as f32, or all."""
    if rows is None:
        return buffer.numpy().astype(np.float32)
    return np.concatenate([buffer.slice(0, int(row), int(row) + 1).numpy() for row in rows]).astype(np.float32)


def _near(got: F32, wanted: F32, what: str) -> None:
    worst = float(np.abs(got - wanted).max() / np.abs(wanted).max())
    if not worst < RELATIVE:
        raise ConformanceError(f"{what} is off by {worst:.2g} of the largest element")
