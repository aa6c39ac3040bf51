"""Products over several GPUs: fused with the collective, and one after the other. How much of the collective is hidden.

hidden = (product + collective - fused) / collective, of times that were measured alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from conformance.results.stats import median
from toolchain.bundles.bundle import Bundle, BundleEntry
from toolchain.errors import ConformanceError
from toolchain.runtime import DeviceBuffer
from toolchain.runtime.launch import EntryLauncher, check_layouts
from toolchain.runtime.peers import Peers, SymmetricHeap

from .cases import ITEM, WARM_UP

Array = NDArray[np.generic]
Arguments = Sequence[Mapping[str, DeviceBuffer | float]]  # of each rank
Launch = tuple[Bundle, BundleEntry, Arguments]
DTYPE = "bf16"
LAUNCHES, SAMPLES = 10, 10
ROWS = 16  # of a result that are compared
PERIOD = 1_000_003  # numbers that are drawn; an operand repeats them, and no row begins as another
RELATIVE = 2e-2  # of the largest magnitude: roundings to bf16 of the parts and of the sum
FUSED = {"matmul_reduce_scatter": "reduce_scatter", "all_gather_matmul": "all_gather"}


@dataclass(frozen=True)
class Size:
    """rows x inner @ inner x columns over all ranks: `inner` is split for the reduce-scatter, `columns` for the
    all-gather, `rows` for both."""

    rows: int
    inner: int
    columns: int

    def __str__(self) -> str:
        return f"{self.rows} x {self.inner} x {self.columns}"


SIZES = (Size(8192, 8192, 8192), Size(4096, 4096, 4096))


@dataclass(frozen=True)
class ProductRow:
    """`what`: the fused op, or a part of it. µs: the median of one launch, and its 95 % interval."""

    op: str
    size: str
    what: str
    variant: str
    us: float = 0.0
    low: float = 0.0
    high: float = 0.0
    error: str = ""


def measure(
    bundles: Sequence[Bundle], peers: Peers, source: str, *, sizes: Sequence[Size] = SIZES,
    every_entry: bool = False, say: Callable[[ProductRow], object] = print,
) -> list[ProductRow]:  # fmt: skip
    """Rows of both fused ops, and of their parts alone and in turn. Of each op the first entry that fits, or
    `every_entry` of all bundles."""
    rows: list[ProductRow] = []
    for op, size in itertools.product(FUSED, sizes):
        for row in _of(op, size, bundles, peers, source, every_entry=every_entry):
            rows.append(row)
            say(row)
    return rows


def hidden(rows: Sequence[ProductRow], op: str, size: str) -> float:
    """The share of the collective that the fused kernel hides; the fastest of each part. Raises UsageError without
    them."""
    best = {
        what: min(row.us for row in rows if (row.op, row.size, row.what) == (op, size, what) and not row.error)
        for what in ("matmul", FUSED[op], op)
    }
    return (best["matmul"] + best[FUSED[op]] - best[op]) / best[FUSED[op]]


def _of(
    op: str, size: Size, bundles: Sequence[Bundle], peers: Peers, source: str, *, every_entry: bool
) -> Iterator[ProductRow]:
    ranks = peers.ranks
    scatter = op == "matmul_reduce_scatter"
    m = size.rows // ranks
    k, n = (size.inner // ranks, size.columns) if scatter else (size.inner, size.columns // ranks)
    moved = m * n if scatter else m * k  # elements of a piece
    heap = peers.heap(3 * ITEM * ranks * moved + 4096)
    try:
        made = _Made(op, peers, heap, ranks, m, k, n)

        def time(what: str, turns: Sequence[Sequence[Launch]], check: Callable[[], None] | None = None) -> ProductRow:
            variant = ", ".join(entry.spec.symbol for _, entry, _ in turns[0])
            try:
                samples = _timed(peers, turns, check)
            except ConformanceError as error:
                return ProductRow(op, str(size), what, variant, error=str(error))
            value, low, high = median(samples)
            return ProductRow(op, str(size), what, variant, round(value, 2), round(low, 2), round(high, 2))

        found = {
            name: _entries(bundles, peers, source, name, arguments, every_entry=every_entry)
            for name, arguments in (("matmul", made.product[0]), (FUSED[op], made.collective[0]), (op, made.fused))
        }
        alone: dict[str, list[ProductRow]] = {name: [] for name in ("matmul", FUSED[op])}
        for name, arguments in (("matmul", made.product), (FUSED[op], made.collective)):
            for bundle, entry in found[name]:
                alone[name].append(time(name, [[(bundle, entry, each)] for each in arguments]))
                yield alone[name][-1]
        for bundle, entry in found[op]:
            yield time(op, [[(bundle, entry, made.fused)]], made.check)
        best = {name: _fastest(found[name], rows) for name, rows in alone.items()}
        if all(best.values()):
            order = ("matmul", FUSED[op]) if scatter else (FUSED[op], "matmul")
            both = {"matmul": made.product, FUSED[op]: made.collective}
            yield time("in turn", [[(*best[name], both[name][turn]) for name in order] for turn in range(2)])  # type: ignore[misc]
    finally:
        for executor in peers.executors:
            executor.synchronize()
        heap.close()


class _Made:
    """The arguments of each rank. What a collective reads takes turns, as it has to where a product writes it."""

    def __init__(self, op: str, peers: Peers, heap: SymmetricHeap, ranks: int, m: int, k: int, n: int) -> None:
        scatter = op == "matmul_reduce_scatter"
        self._scatter, self._ranks, self._peers = scatter, ranks, peers
        drawn = np.random.default_rng(1).standard_normal(PERIOD, np.float32)
        shape = (ranks, m, k) if scatter else (m, k)
        self.x = [np.resize(np.roll(drawn, 7 * rank), shape).astype(ml_dtypes.bfloat16) for rank in range(ranks)]
        small = drawn * np.float32((ranks * k) ** -0.5)
        self.weight = [np.resize(np.roll(small, 7 * r + 3), (k, n)).astype(ml_dtypes.bfloat16) for r in range(ranks)]
        x, weight = ([e.from_numpy(a) for e, a in zip(peers.executors, s, strict=True)] for s in (self.x, self.weight))
        out = [e.empty((m, n) if scatter else (ranks, m, n), DTYPE) for e in peers.executors]
        work = heap.empty((ranks, m, n) if scatter else (ranks, m, k), DTYPE)
        self.out = out
        name = "arrived" if scatter else "gathered"
        self.fused: Arguments = [
            {"x": x[r], "weight": weight[r], "out": out[r], name: work[r], **peers.arguments(r, op)}
            for r in range(ranks)
        ]
        self.product: list[Arguments] = []
        self.collective: list[Arguments] = []
        for _ in range(2):
            if scatter:
                parts = heap.empty((ranks * m, n), DTYPE)
                flat = [
                    e.view(x[r].allocation, x[r].offset, (ranks * m, k), DTYPE) for r, e in enumerate(peers.executors)
                ]
                self.product.append([
                    {"x": flat[r], "weight": weight[r], "out": parts[r].select(0, r)} for r in range(ranks)
                ])  # fmt: skip
                pieces = [_pieces(parts[r], ranks, m * n) for r in range(ranks)]
                line = [
                    e.view(out[r].allocation, out[r].offset, (m * n,), DTYPE) for r, e in enumerate(peers.executors)
                ]
            else:
                parts = heap.empty((m * k,), DTYPE)
                for r in range(ranks):
                    parts[r].select(0, r).copy_from(self.x[r].reshape(-1))
                rows = [e.empty((ranks, m * k), DTYPE) for e in peers.executors]
                every = [e.view(rows[r].allocation, 0, (ranks * m, k), DTYPE) for r, e in enumerate(peers.executors)]
                whole = [e.view(out[r].allocation, 0, (ranks * m, n), DTYPE) for r, e in enumerate(peers.executors)]
                self.product.append([
                    {"x": every[r], "weight": weight[r], "out": whole[r]} for r in range(ranks)
                ])  # fmt: skip
                pieces, line = parts, rows
            self.collective.append([
                {"parts": pieces[r], "out": line[r], **peers.arguments(r)} for r in range(ranks)
            ])  # fmt: skip

    def check(self) -> None:
        """Some rows of each rank's result. Raises ConformanceError for one that is too far off."""
        for rank, out in enumerate(self.out):
            rows = slice(0, ROWS) if rank % 2 else slice(-ROWS, None)
            if self._scatter:
                got = out.numpy()[rows].astype(np.float32)
                wanted = sum(
                    x[rank][rows].astype(np.float32) @ w.astype(np.float32)
                    for x, w in zip(self.x, self.weight, strict=True)
                )
            else:
                got = out.numpy()[:, rows].astype(np.float32)
                weight = self.weight[rank].astype(np.float32)
                wanted = np.stack([x[rows].astype(np.float32) @ weight for x in self.x])
            worst = float(np.abs(got - wanted).max() / np.abs(wanted).max())
            if not worst < RELATIVE:
                raise ConformanceError(f"rank {rank} is off by {worst:.2g} of the largest element")


def _pieces(parts: DeviceBuffer, ranks: int, size: int) -> DeviceBuffer:
    """(R, R M, N) of all ranks as (R, R, M N)."""
    return DeviceBuffer(
        parts.executor, parts.allocation, parts.offset, DTYPE, (ranks, ranks, size), (parts.strides[0], size, 1)
    )


def _entries(
    bundles: Sequence[Bundle], peers: Peers, source: str, op: str, arguments: Arguments, *, every_entry: bool
) -> list[tuple[Bundle, BundleEntry]]:
    dims, misaligned, gapped = check_layouts(op, op, DTYPE, arguments[0])
    target = peers.executors[0].target
    found = [
        (bundle, entry) for bundle in bundles for entry in bundle.entries_of(source, op, DTYPE)
        if entry.spec.runs_on(target) and not entry.spec.unmet(dims, misaligned, gapped)
    ]  # fmt: skip
    return found if every_entry else found[:1]


def _fastest(
    entries: Sequence[tuple[Bundle, BundleEntry]], rows: Sequence[ProductRow]
) -> tuple[Bundle, BundleEntry] | None:
    good = [(row.us, number) for number, row in enumerate(rows) if not row.error]
    return entries[min(good)[1]] if good else None


def _timed(peers: Peers, turns: Sequence[Sequence[Launch]], check: Callable[[], None] | None) -> list[float]:
    """Samples of one turn in µs: the launches of `turns`, again and again."""
    launchers = [EntryLauncher(executor) for executor in peers.executors]
    with peers.capture() as graphs:
        for number in range(LAUNCHES):
            for bundle, entry, arguments in turns[number % len(turns)]:
                for rank, launch in enumerate(launchers):
                    launch(bundle, entry, arguments[rank])

    def once() -> float:
        starts = [executor.record() for executor in peers.executors]
        graphs.replay()
        ends = [executor.record() for executor in peers.executors]
        for executor in peers.executors:
            executor.synchronize()
        return min(end.us_since(start) for start, end in zip(starts, ends, strict=True)) / LAUNCHES

    once()
    peers.synchronize()
    if check is not None:
        check()
    found = [once() for _ in range(WARM_UP + SAMPLES)][WARM_UP:]
    peers.synchronize()
    return found
