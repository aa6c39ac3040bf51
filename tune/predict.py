"""`tilestack tune predict`: the policy and the tuned rows of a target of which there is no GPU here.

For each class of sizes of SPACES the variants are put in the order of their predicted times (roofline.py), and compiled
until one fits: no spills, its blocks have room on a multiprocessor, and its shared memory holds two steps of its
inputs, so that one is loaded while the other is computed with. It becomes a row if the source's own entry is predicted
to take at least GAIN longer, or spills much. Rows that were measured stay, and nothing is predicted for their class:
what is measured replaces what is predicted, never the other way round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from toolchain import knobs
from toolchain.compiling.cubin import Usage
from toolchain.contract.entries import PORTABLE, load_table
from toolchain.contract.entry import EntrySpec
from toolchain.files import write_whole

from . import roofline
from .apply import render
from .devices import DEVICES, Device, device_of
from .spaces import Dims, ShapeClass, Space, Spaces, shape_name
from .variants import variants

# What is predicted: the plain kernels, which every target's compiler takes, for GPT-2's many rows.
SPACES = (
    "linear", "linear_gelu", "linear_residual", "linear_residual_long", "logits", "attention", "attention_f16",
    "attention_fixed_max",
)  # fmt: skip
FEW = 64  # up to so many rows other kernels are fast
GAIN = 0.15  # a prediction is coarse: a row must promise so much
SPILLING = 0.01  # an own entry with a larger share of spills among its instructions is slow, whatever is predicted
TRIED = 24  # variants that are compiled for a class until one fits
TOGETHER = 4  # of them at once
LATENCY = "latency"  # a hint of which the model knows nothing: its first value is taken

UsagesOf = Callable[[Sequence[EntrySpec]], Sequence["Usage | None"]]  # candidates.usages for a target


@dataclass(frozen=True)
class Chosen:
    """A variant, and microseconds by shape. `own`: those of the source's own entry; {} if that spills much."""

    spec: EntrySpec
    times: Mapping[str, float]
    own: Mapping[str, float]


@dataclass(frozen=True)
class Predictor:
    """Predicts for one target. `sources`: the own entries of each source that the rows are for; the first of them is
    predicted, and the others must compile as well."""

    target: str
    device: Device
    sources: Mapping[str, Sequence[EntrySpec]]
    usages_of: UsagesOf

    def run(self, spaces: Spaces, say: Callable[[str], object], folder: Path = knobs.ENTRIES) -> Path:
        """Write the target's table. `say` is told of each class."""
        path = folder / f"{self.target}.toml"
        table = load_table(path)
        rows = [dict(row.table) for row in table.tuned if not row.predicted]
        taken = {(row["op"], row["class"], dtype) for row in rows for dtype in row["dtypes"]}
        for space, made in _classes(spaces):
            dtypes = [dtype for dtype in space.dtypes if (space.op, made.name, dtype) not in taken]
            if not dtypes:
                continue
            taken |= {(space.op, made.name, dtype) for dtype in dtypes}
            chosen = self.choose(space, made, dtypes)
            title = f"{space.op} {', '.join(dtypes)} {made.name}"
            if chosen is None:
                say(f"{title}: the source's own entries stay")
                continue
            rows += [self._row(space, dtype, made, chosen) for dtype in dtypes]
            times, own = (", ".join(f"{us:.4g}" for us in each.values()) for each in (chosen.times, chosen.own))
            say(f"{title}: {chosen.spec.symbol} {times} us predicted, own {own or 'spills much'}")
        before = path.read_text() if path.exists() else ""
        if table.policy is None:
            before = policy(self.device, self.target, folder) + before
        write_whole(path, render(before, rows, spaces), parents=True)
        return path

    def choose(self, space: Space, made: ShapeClass, dtypes: Sequence[str]) -> Chosen | None:
        """The first variant in the order of predicted times that fits in all dtypes, if it is worth a row."""
        own = self._own(space.op, dtypes[-1], made)
        tried = [each for each in self._timed(space, made, dtypes[-1]) if self._may_hold(each[0])]
        worth = [each for each in tried if not own or roofline.mean(own) >= (1 + GAIN) * roofline.mean(each[1])]
        for first in range(0, min(TRIED, len(worth)), TOGETHER):
            some = worth[first : first + TOGETHER]
            found = zip(some, self.usages_of([spec for spec, _ in some]), strict=True)
            for spec, times in [each for each, usage in found if not self.fault(each[0], usage)]:
                symbol = spec.symbol.removesuffix(spec.dtype)
                others = [
                    replace(spec, source=source, dtype=dtype, symbol=symbol + dtype)
                    for source in self.sources
                    for dtype in dtypes
                ]
                if not any(map(self.fault, others, self.usages_of(others))):
                    return Chosen(spec, times, own)
        return None

    def _timed(self, space: Space, made: ShapeClass, dtype: str) -> list[tuple[EntrySpec, dict[str, float]]]:
        """The variants, the fastest first; of those that are as fast, the one that walks the most rows of tiles at a
        time."""
        first = {LATENCY: space.hints[LATENCY][:1]} if LATENCY in space.hints else {}
        only = replace(space, dtypes=(dtype,), classes=(made,), sizes=(), hints={**space.hints, **first})
        found = [variant.spec for variant in variants(only, next(iter(self.sources)), self.target)]
        timed = [
            (spec, self.times_of(spec, made.shapes)) for spec in found if self._hints(spec).get("num_ctas", 1) == 1
        ]
        return sorted(
            timed, key=lambda each: (roofline.mean(each[1]), -each[0].constants.get("GROUP", 1), each[0].symbol)
        )

    def _own(self, op: str, dtype: str, made: ShapeClass) -> dict[str, float]:
        of = [
            spec
            for spec in next(iter(self.sources.values()))
            if (spec.op, spec.dtype) == (op, dtype) and not spec.targets
        ]
        taken = [next(spec for spec in of if spec.unmet(dims) is None) for dims in made.shapes]
        usages = self.usages_of(taken)
        if any(usage is None or usage.spills > SPILLING * usage.instructions for usage in usages):
            return {}
        return {
            shape: us
            for spec, dims in zip(taken, made.shapes, strict=True)
            for shape, us in self.times_of(spec, [dims]).items()
        }

    def times_of(self, spec: EntrySpec, shapes: Sequence[Dims]) -> dict[str, float]:
        """Predicted microseconds of an entry by shape."""
        return {shape_name(dims): _us(self.device, spec, self._hints(spec), dims) for dims in shapes}

    def fault(self, spec: EntrySpec, usage: Usage | None) -> str:
        """Why an entry with this usage is not worth a row; "" if it is."""
        if usage is None:
            return "does not compile"
        if usage.spills or usage.serialised or not usage.tensor_core:
            return "spills, is serialised, or does without tensor cores"
        hints = self._hints(spec)
        warps, blocks = hints.get("num_worker_warps", 4), hints.get("occupancy", 1)
        if not self.device.holds(usage.registers, usage.shared, warps, blocks):
            return "has no room on a multiprocessor"
        return "" if usage.shared >= 2 * step_bytes(spec.constants) else "holds less than two steps of its inputs"

    def _may_hold(self, spec: EntrySpec) -> bool:
        return self.device.holds(0, 2 * step_bytes(spec.constants), 0, self._hints(spec).get("occupancy", 1))

    def _hints(self, spec: EntrySpec) -> Mapping[str, int]:
        return spec.hints.get(self.target, {})

    def _row(self, space: Space, dtype: str, made: ShapeClass, chosen: Chosen) -> dict[str, Any]:
        spec, device = chosen.spec, self.device
        below = {"gpu": device.gpu, "rates": device.rates, "space": space.name, "us": _short(chosen.times)}
        return {
            "op": spec.op, "class": made.name, "dtypes": [dtype], "sources": sorted(self.sources),
            "variant": f"{self.target}_{made.name}", "kernel": spec.kernel, "constants": spec.constants,
            "hints": self._hints(spec), "aligned": spec.aligned, "multiples": spec.multiples,
            "where": [*spec.where, *made.where], "grid": spec.grid,
            "predicted": below | ({"own_us": _short(chosen.own)} if chosen.own else {}),
        }  # fmt: skip


def predict(
    target: str,
    spaces: Spaces,
    sources: Mapping[str, Sequence[EntrySpec]],
    usages_of: UsagesOf,
    say: Callable[[str], object],
    folder: Path = knobs.ENTRIES,
) -> Path:
    """Write the table of a target: see Predictor. Raises UsageError if the target's rates are not known."""
    return Predictor(target, device_of(target), sources, usages_of).run(spaces, say, folder)


def _classes(spaces: Spaces) -> Iterator[tuple[Space, ShapeClass]]:
    for space in sorted((s for s in spaces.spaces if s.name in SPACES), key=lambda s: SPACES.index(s.name)):
        for made in space.classes:
            if all((dims["M"] if "M" in dims else dims["B"] * dims["T"]) > FEW for dims in made.shapes):
                yield space, made


def _us(device: Device, spec: EntrySpec, hints: Mapping[str, int], dims: Dims) -> float:
    if spec.op == "attention":
        return roofline.attention_us(device, spec.constants, hints, dims)
    if spec.op == "logits":
        dims = {"M": dims["M"], "K": dims["C"], "N": dims["V"]}
    arrays = 2 if spec.op == "linear_residual" else 1
    return roofline.product_us(device, spec.constants, hints, dims, arrays, special=spec.op == "linear_gelu")


def step_bytes(constants: Mapping[str, int]) -> int:
    """Bytes of the inputs of a step: of a product's K, or of attention's keys and values."""
    if "BT" in constants:
        return 2 * constants["BS"] * constants["D"] * roofline.ITEMSIZE
    return (constants["BM"] + constants["BN"] + constants.get("BR", 0)) * constants["BK"] * roofline.ITEMSIZE


def _short(times: Mapping[str, float]) -> dict[str, float]:
    return {shape: float(f"{us:.3g}") for shape, us in times.items()}


HEAD = """\
# Predicted, not measured: no GPU of {target} was at hand, and nothing of this ran. `tilestack tune predict` wrote it,
# from what is published of the {gpu}: {file} says where. `tilestack tune` on
# such a GPU replaces the rows. docs/tuning.md explains the keys.

[policy]"""
# The policy's other numbers: not predicted, but those of the portable table.
SAME = ("min_chunks", "split_k", "split_k_rows", "panel_width", "panel_rows", "spans", "spans_per_sm", "unsplit_head")


def policy(device: Device, target: str, folder: Path = knobs.ENTRIES) -> str:
    """The head of a target's table, with its [policy]: that of the portable table for this GPU's multiprocessors and L2
    cache."""
    own = load_table(folder / f"{PORTABLE}.toml").policy
    assert own is not None
    lines = [
        HEAD.format(target=target, gpu=device.gpu, file=f"tune/{DEVICES.name}"),
        f"sms = {device.sms} # predicted",
        f"chunk_bytes = {device.l2_bytes} # predicted: the L2 cache, in which a chunk is to stay",
        "# The others are those of portable.toml.",
        *(f"{key} = {_value(getattr(own, key))}" for key in SAME),
    ]
    return "\n".join(lines) + "\n\n"


def _value(number: Any) -> str:
    return str(list(number)) if isinstance(number, tuple) else str(number)
