"""Picks the cases that the interpreter runs by default: for each entry the cheapest that cover every situation. Makes
the jobs of cases.

The situations (features) follow from the tile sizes: more than one tile along a dimension, more than two, a remainder,
more tiles than blocks. Others follow from how the case lays out and fills its arrays.
"""

from __future__ import annotations

import math
from collections.abc import Container, Hashable, Mapping, Sequence

from toolchain.bundles.bundle import Bundle
from toolchain.contract.entry import EntrySpec
from toolchain.contract.expressions import cdiv
from toolchain.contract.op import ops
from toolchain.contract.targets import targets
from toolchain.errors import TilestackError
from toolchain.runtime import Allocation, DeviceBuffer, Executor, Launcher

from ..cases import Case
from ..cells import has_cell, may_borrow
from ..jobs.jobs import Job
from .run import OpRows, arrange, same_inputs

LAUNCH = 1e7  # in units of `cost`: what a launch takes on the interpreter however small it is
Wanted = Mapping[tuple[int, str, str], frozenset[str]]  # the case's number, dtype and source -> symbols to run


def smallest(bundle: Bundle, executor: Executor, cases: Sequence[Case], sources: Sequence[str]) -> Wanted:
    """The symbols of the entries to run, for each case, dtype and source. A case without an entry for some target is
    kept, without symbols, so that a row reports it, unless the source may borrow what it lacks. A case of a whole step
    is kept too: a row says that a GPU alone runs it."""
    takers: dict[tuple[str, str, str], list[int]] = {}  # dtype, source, symbol -> numbers of the cases
    wanted: dict[tuple[int, str, str], set[str]] = {}
    for number, case in enumerate(cases):
        for dtype in case.dtypes():
            if case.gpu_only:
                if ops()[case.op].whole:
                    having = (source for source in sources if has_cell(bundle, source, case.op, dtype))
                    wanted |= {(number, dtype, source): set() for source in having}
                continue
            arguments = layouts(case, dtype, executor)
            for source in sources:
                if not has_cell(bundle, source, case.op, dtype):
                    continue
                for target in filter(ops()[case.op].runs_on, targets()):
                    try:
                        entry = Launcher(bundle, source, executor, target).select(case.op, dtype, **arguments)
                    except TilestackError:
                        if not may_borrow(source, case.op):
                            wanted.setdefault((number, dtype, source), set())
                        continue
                    numbers = takers.setdefault((dtype, source, entry.spec.symbol), [])
                    if number not in numbers:
                        numbers.append(number)
    for (dtype, source, symbol), numbers in takers.items():
        entry = bundle.find(source, symbol)
        costs = {number: cost(cases[number]) for number in numbers}
        if not entry.interpretable:  # one case, whose row says that it is not run
            wanted.setdefault((min(costs, key=lambda number: costs[number]), dtype, source), set()).add(symbol)
            continue
        shows = {number: features(entry.spec, cases[number]) for number in numbers}
        for number in cheapest(shows, costs):
            wanted.setdefault((number, dtype, source), set()).add(symbol)
    return {key: frozenset(symbols) for key, symbols in wanted.items()}


def op_jobs(
    cases: Sequence[Case], dtypes: Sequence[str], wanted: Wanted | None, kind: str = "cpu",
    lacks: Container[tuple[str, str]] = (),
) -> list[Job]:  # fmt: skip
    """A job for each case and each group of dtypes with the same inputs, on a kind of executor: "cpu" or "cuda".
    `wanted` limits them; None makes all jobs. `lacks`: ops and dtypes that the bundle has no entries of."""
    estimate = cost if kind == "cpu" else reference_cost
    jobs: list[Job] = []
    for number, case in enumerate(cases):
        for group in same_inputs(d for d in case.dtypes() if d in dtypes and (case.op, d) not in lacks):
            only = None
            if wanted is not None:
                only = {
                    (d, source): symbols for (n, d, source), symbols in wanted.items() if n == number and d in group
                }
            if only or wanted is None:
                runs = sum(map(len, only.values())) if only else len(group)
                jobs.append(
                    Job(runs * (LAUNCH + estimate(case)), OpRows(case, group, only), case.op, case.shape, group)
                )
    return jobs


def cheapest(shows: Mapping[int, frozenset[Hashable]], costs: Mapping[int, float]) -> list[int]:
    """The cheapest cases that together have every feature of all cases; none of them could be left out."""
    missing = frozenset[Hashable]().union(*shows.values())
    order = sorted(shows, key=lambda number: (costs[number], number))
    kept: list[int] = order[:1]
    missing -= shows[order[0]]
    for number in order[1:]:
        if shows[number] & missing:
            kept.append(number)
            missing -= shows[number]
    for number in sorted(kept, key=lambda number: -costs[number]):
        others = frozenset[Hashable]().union(*(shows[other] for other in kept if other != number))
        if len(kept) > 1 and shows[number] <= others:
            kept.remove(number)
    return kept


def features(spec: EntrySpec, case: Case) -> frozenset[Hashable]:
    """The situations that the case puts the entry in."""
    found: set[Hashable] = {
        ("in place", case.in_place), ("misaligned", case.misaligned), ("mean", case.mean > 0),
        ("towering", case.towering),
    }  # fmt: skip
    tiles = 1
    for dim, tile in _tiles(spec, case).items():
        count = cdiv(case.dims[dim], tile)
        tiles *= count
        found |= {(dim, "more than", least) for least in (1, 2) if count > least}
        found |= {(dim, "remainder")} if case.dims[dim] % tile else set()
    if any("SMS" in expression for expression in spec.grid):
        found |= {("tiles", "more than blocks")} if tiles > PERSISTENT else set()
    return frozenset(found)


PERSISTENT = 8  # tiles: with more than these each of the interpreter's four blocks has at least two


def _tiles(spec: EntrySpec, case: Case) -> dict[str, int]:
    """The entry's tile sizes by dimension: `BM` tiles M (and so on), `SPAN` the cache, `R` the rows."""
    rows = next(p.dims[0] for p in spec.params if p.role == "output")
    names = {"R": rows, "SPAN": "P", **{f"B{dim}": dim for dim in case.dims}}
    found = {names[name]: size for name, size in spec.constants.items() if name in names}
    return {dim: size for dim, size in found.items() if dim in case.dims and size > 0}


def cost(case: Case) -> float:
    """Estimates how long the case takes, from the products it computes and the elements it reads and writes."""
    arrays = sum(math.prod(case.dims[dim] for dim in p.dims) for p in ops()[case.op].params if p.dims)
    products = math.prod(case.dims.get(dim, 1) for dim in ("M", "N", "K", "C", "V"))  # logits has C and V for K and N
    attended = math.prod(case.dims.get(dim, 1) for dim in "BTSPHD")
    return 10.0 * arrays + (products if ops()[case.op].products else 0) + attended


def reference_cost(case: Case) -> float:
    """Estimates how long the inputs and references of a case take on one core, nearly all of a job on a GPU, in 0.1 ns.
    Fitted to measured times."""
    sizes = {p: math.prod(case.dims[dim] for dim in p.dims) for p in ops()[case.op].params if p.dims}
    made = sum(size for p, size in sizes.items() if p.role == "output")
    products = math.prod(case.dims.get(dim, 1) for dim in ("M", "N", "K", "C", "V")) if ops()[case.op].products else 0
    keys = case.dims.get("S", case.dims.get("P", case.dims.get("PAGE", 0) * case.dims.get("L", 0)))
    scores = keys * math.prod(case.dims.get(dim, 1) for dim in "BTHGQ") if "attention" in case.op else 0
    return 200.0 * sum(sizes.values()) + 300.0 * made + products + 100.0 * scores


def layouts(case: Case, dtype: str, executor: Executor) -> dict[str, DeviceBuffer | float]:
    """The case's arguments, with addresses and shapes but no memory: enough to choose an entry."""
    params = ops()[case.op].params
    arrays = {
        p.name: (tuple(case.dims[dim] for dim in p.dims), p.storage(dtype)) for p in params if p.dims
    }  # fmt: skip

    def make(shape: Sequence[int], storage: str) -> DeviceBuffer:
        nowhere = Allocation(0, 8 * math.prod(shape), lambda _: None)
        return executor.view(nowhere, 0, shape, storage)

    return {**arrange(case, arrays, make), **{p.name: 1.0 for p in params if p.role == "scalar"}}
