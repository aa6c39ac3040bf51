"""The rules for compiler hints: their targets, names and values.

tileiras accepts any name and value in bytecode and ignores those that it does not know, so a misspelt hint would have
no effect and give no message. cuda-tile 13.3 ignores them as well, but `cuda-tile-opt -Wunsupported-hints -Werr-hints`
refuses what is refused here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from difflib import get_close_matches

from xdsl.ir import Attribute, Operation

from toolchain.contract.targets import targets

from ..attrs import HintsAttr
from .base import need

ENTRY: Mapping[str, Collection[int]] = {
    "num_cta_in_cga": (1, 2, 4, 8, 16),
    "occupancy": range(1, 33),
    "num_worker_warps_per_cta": (1, 2, 4, 8, 16, 32),
}
POINTER_ACCESS: Mapping[str, Collection[int]] = {"latency": range(1, 11)}
VIEW_ACCESS: Mapping[str, Collection[int]] = {**POINTER_ACCESS, "allow_tma": (0, 1)}
SINGLE_CTA = "sm_8"  # these targets have no clusters of CTAs


def check_hints(op: Operation, hints: Attribute | None) -> None:
    """Raises Invalid for a hint of an entry or memory access that the compiler would ignore."""
    if not isinstance(hints, HintsAttr):
        return
    known = ENTRY if op.name.endswith("entry") else VIEW_ACCESS if "_view_" in op.name else POINTER_ACCESS
    for names in ([name for name, _ in hints.data], *([key for key, _ in pairs] for _, pairs in hints.data)):
        need(len(names) == len(set(names)), f"optimization_hints: {', '.join(names)} contains a name twice")
    for target, pairs in hints.data:
        _known(target, ("default", *targets()), "target")
        for key, value in pairs:
            _known(key, known, f"hint for {op.name.removeprefix('cuda_tile.')}")
            possible = (1,) if key == "num_cta_in_cga" and target.startswith(SINGLE_CTA) else known[key]
            need(value in possible, f"optimization_hints: {target}: {key} = {value} is not {_spelled(possible)}")


def _known(name: str, names: Collection[str], what: str) -> None:
    near = get_close_matches(name, names, 1)
    rest = f"did you mean {near[0]}?" if near else f"one of {', '.join(names)}"
    need(name in names, f"optimization_hints: {name!r} is not a {what}: {rest}")


def _spelled(values: Collection[int]) -> str:
    if isinstance(values, range):
        return f"from {values.start} to {values.stop - 1}"
    return " or ".join(map(str, values))
