"""`set-hints`: an entry's compiler hints, on the entry and on its loads."""

from __future__ import annotations

from toolchain.contract.entry import EntrySpec
from toolchain.errors import SourceError

from ..dialect import attrs
from ..dialect.control import EntryOp, ForOp
from ..dialect.memory import LoadViewTkoOp
from ..dialect.ops import MmaFOp

HINTS = {"occupancy": "occupancy", "num_ctas": "num_cta_in_cga", "num_worker_warps": "num_worker_warps_per_cta"}
LATENCY = "latency"  # of loads, from 1 to 10; the default is 5. A lower one keeps fewer loads in flight


def set_hints(entry: EntryOp, spec: EntrySpec) -> None:
    """Sets the EntrySpec's hints on an entry of any source. `latency` is set on the loads in loops that multiply
    matrices, except loads that already have hints. Raises SourceError for an unknown hint."""
    if unknown := {key for hints in spec.hints.values() for key in hints} - {*HINTS, LATENCY}:
        raise SourceError(f"{spec.symbol}: there is no hint {min(unknown)}, only {', '.join([*HINTS, LATENCY])}")
    if wrong := [hints[LATENCY] for hints in spec.hints.values() if not 1 <= hints.get(LATENCY, 1) <= 10]:
        raise SourceError(f"{spec.symbol}: a latency must be from 1 to 10, not {wrong[0]}")
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
        raise SourceError(f"{spec.symbol}: a latency has no effect, as no loop with a matrix product loads anything")
    for load in loads:
        if load.optimization_hints is None:
            load.properties["optimization_hints"] = attrs.HintsAttr(latencies)


def _multiplies(loop: ForOp) -> bool:
    return any(isinstance(op, MmaFOp) for op in loop.body.block.ops)
