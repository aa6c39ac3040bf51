"""`set-hints`: an entry's compiler hints, on the entry and on its loads."""

from __future__ import annotations

from toolchain.entry import EntrySpec
from toolchain.errors import SourceError

from ..dialect import attrs
from ..dialect.control import EntryOp, ForOp
from ..dialect.memory import LoadViewTkoOp
from ..dialect.ops import MmaFOp

HINTS = {"occupancy": "occupancy", "num_ctas": "num_cta_in_cga", "num_worker_warps": "num_worker_warps_per_cta"}
LATENCY = "latency"  # from 1 to 10, how long loads take; the default is 5. With less, fewer loads are in flight at once


def set_hints(entry: EntryOp, spec: EntrySpec) -> None:
    """Give an entry the EntrySpec's hints, whichever source it comes from. `latency` is given to the loads in loops
    that multiply matrices, but for those with hints of their own. Raises SourceError for a hint that there is not."""
    if unknown := {key for hints in spec.hints.values() for key in hints} - {*HINTS, LATENCY}:
        raise SourceError(f"{spec.symbol}: no hint is called {min(unknown)}; there are {', '.join([*HINTS, LATENCY])}")
    if wrong := [hints[LATENCY] for hints in spec.hints.values() if not 1 <= hints.get(LATENCY, 1) <= 10]:
        raise SourceError(f"{spec.symbol}: a latency is from 1 to 10, not {wrong[0]}")
    given = tuple(
        (target, tuple((HINTS[key], value) for key, value in hints.items() if key != LATENCY))
        for target, hints in spec.hints.items()
    )
    if given:
        entry.properties["optimization_hints"] = attrs.HintsAttr(given)
    latencies = tuple(
        (target, ((LATENCY, hints[LATENCY]),)) for target, hints in spec.hints.items() if LATENCY in hints
    )
    if not latencies:
        return
    multiplying = [loop for loop in entry.walk() if isinstance(loop, ForOp) and _multiplies(loop)]
    loads = [op for loop in multiplying for op in loop.body.block.ops if isinstance(op, LoadViewTkoOp)]
    if not loads:
        raise SourceError(f"{spec.symbol}: no loop multiplies what it loads, which is what a latency is for")
    for load in loads:
        if load.optimization_hints is None:
            load.properties["optimization_hints"] = attrs.HintsAttr(latencies)


def _multiplies(loop: ForOp) -> bool:
    return any(isinstance(op, MmaFOp) for op in loop.body.block.ops)
