"""The stages of the ablation: from kernels that assume nothing to the ones we ship, one design choice at a time.

A stage is a choice of entries and of ways to run the model. `WATERFALL` adds one choice after the other; `WITHOUT` is
the final state with a single choice taken away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from toolchain.contract.entry import EntrySpec

HINTS = ("num_worker_warps", "occupancy", "num_ctas", "latency")


@dataclass(frozen=True)
class Stage:
    """`hints`: those that stay. `tuned`: the target's own entries too, not the portable ones alone. `aligned`: entries
    may assume addresses and sizes that are multiples of something. `divisible`: also sizes that are multiples of whole
    tiles. `grouped`: blocks walk tiles in groups that share the L2 cache. `padded`: rows of logits are aligned. `gelu`:
    GELU is part of the product before it. `folded`: norms are part of the products beside them. `overlap`: a launch may
    begin before the last one ends. `graph`: all launches are one CUDA graph."""

    name: str
    does: str
    hints: tuple[str, ...] = HINTS
    tuned: bool = True
    aligned: bool = True
    divisible: bool = True
    grouped: bool = True
    padded: bool = True
    gelu: bool = True
    folded: bool = True
    overlap: bool = True
    graph: bool = True

    @property
    def bundle(self) -> str:
        """The name of its bundle: stages that differ only in how the model runs share one."""
        parts = [name for name in ("tuned", "aligned", "divisible", "grouped", "overlap") if getattr(self, name)]
        return "-".join([*parts, *self.hints]) or "plain"

    def entries(self, specs: Sequence[EntrySpec]) -> list[EntrySpec]:
        """What is left of a source's entries, in order of preference."""
        return [self._without(spec) for spec in specs if self._keeps(spec)]

    def _keeps(self, spec: EntrySpec) -> bool:
        assumes = bool(spec.aligned or spec.contiguous or spec.multiples or spec.sizes)
        return (self.tuned or not spec.targets) and (self.aligned or not assumes)

    def _without(self, spec: EntrySpec) -> EntrySpec:
        hints = {
            target: {name: value for name, value in row.items() if name in self.hints}
            for target, row in spec.hints.items()
        }
        constants = dict(spec.constants)
        if not self.grouped and "GROUP" in constants:
            constants["GROUP"] = 1
        multiples = dict(spec.multiples)
        if not self.divisible:  # what alignment itself needs: 8 elements of 16 bits are 16 bytes
            multiples = {dim: min(step, 8) for dim, step in multiples.items()}
        return replace(spec, hints=hints, constants=constants, multiples=multiples)


FINAL = Stage("final", "as shipped")


def _waterfall() -> tuple[Stage, ...]:
    """From the naive state on, each stage is the one before with one more choice."""
    stage = Stage("naive", "entries that assume nothing, without hints; every launch by itself", (), *[False] * 9)
    made = [stage]
    steps: tuple[tuple[str, str, dict[str, object]], ...] = (
        ("graph", "one CUDA graph instead of single launches", {"graph": True}),
        ("aligned", "addresses and rows are multiples of 16 bytes: the copy engine can load tiles", {"aligned": True}),
        ("padded", "the vocabulary is padded to 50304: rows of logits are aligned too", {"padded": True}),
        ("tiles", "tile sizes and schedules of the target's own table", {"tuned": True}),
        ("divisible", "sizes are multiples of whole tiles: no remainder is handled", {"divisible": True}),
        ("grouped", "blocks walk tiles in groups that share the L2 cache", {"grouped": True}),
        ("warps", "hint num_worker_warps", {"hints": HINTS[:1]}),
        ("occupancy", "hint occupancy", {"hints": HINTS[:2]}),
        ("ctas", "hint num_ctas: two blocks share what they load", {"hints": HINTS[:3]}),
        ("latency", "hint latency: how far ahead loads start", {"hints": HINTS}),
        ("gelu", "GELU is part of the product before it", {"gelu": True}),
        ("folded", "norms are part of the products beside them", {"folded": True}),
        ("overlap", "a launch begins before the last one ends (PDL)", {"overlap": True}),
    )  # fmt: skip
    for name, does, change in steps:
        stage = replace(stage, name=name, does=does, **change)  # pyright: ignore[reportArgumentType]
        made.append(stage)
    return tuple(made)


WATERFALL = _waterfall()
WITHOUT = (
    FINAL,
    replace(FINAL, name="no-warps", does="without num_worker_warps", hints=("occupancy", "num_ctas", "latency")),
    replace(FINAL, name="no-occupancy", does="without occupancy", hints=("num_worker_warps", "num_ctas", "latency")),
    replace(FINAL, name="no-ctas", does="without num_ctas", hints=("num_worker_warps", "occupancy", "latency")),
    replace(FINAL, name="no-latency", does="without latency", hints=HINTS[:3]),
    replace(FINAL, name="no-tiles", does="portable tile sizes and schedules", tuned=False),
    replace(FINAL, name="no-divisible", does="sizes of any multiple of 8", divisible=False),
    replace(FINAL, name="no-groups", does="tiles in rows, not in groups", grouped=False),
    replace(FINAL, name="no-padding", does="rows of logits are not aligned", padded=False),
    replace(FINAL, name="no-gelu", does="GELU is a launch of its own", gelu=False),
    replace(FINAL, name="no-folding", does="norms are launches of their own", folded=False),
    replace(FINAL, name="no-overlap", does="launches do not overlap", overlap=False),
    replace(FINAL, name="no-graph", does="single launches", graph=False),
)
