"""EntrySpec: everything that a caller must know about an exported symbol, and the launch checks that follow from it.

The tables that entries.py reads add entries to the ops (op.py): a symbol, its dtype, the constants baked into it, its
assumptions about the arguments, and its grid.
The calling convention is cuTile Python's `cutile_python_v2`: an array of rank n is passed as a pointer, n sizes (int32)
and n strides (int32, in elements); a scalar is passed by value; constants are not passed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ..errors import UsageError
from .expressions import evaluate, expression_names
from .op import DTYPES, OpSpec, Param, cell_name, ops
from .policy import TileCost
from .targets import targets

CALLING_CONVENTION = "cutile_python_v2"
ALIGNMENT = 16  # bytes: base address and outer strides of an entry's `aligned` parameters are multiples of it


@dataclass(frozen=True)
class EntrySpec:
    """One exported symbol of a kernel source.

    `constants`: what was baked in (tile sizes). `aligned`: the array parameters whose base address and outer strides
    must be multiples of 16 bytes. `contiguous`: those whose base address must be such a multiple and whose elements
    must have no gaps between them; their rows may then begin at any address. `multiples`: dimension symbols that must
    be multiples of a number; the compiler relies on it. `where`: conditions on dimension symbols, such as "D == 64",
    which may use `cdiv`, `min` and `max` (see below) and are the same on every device. `cost`: the entry is taken only
    if its tile is the cheapest. `grid`: three expressions in dimension symbols, constants, these functions and `SMS`
    (the device's multiprocessors). `hints`: compiler hints by target (or "default"): occupancy, num_ctas,
    num_worker_warps, latency. `kernel`: the kernel's name in its source, if it is not the op's. `targets`: those that
    it is compiled for; an empty tuple means all. `sizes`: dimension symbols with a single size, which is compiled in.
    """

    symbol: str
    op: str
    source: str
    dtype: str
    constants: Mapping[str, int] = field(default_factory=dict)
    aligned: tuple[str, ...] = ()
    where: tuple[str, ...] = ()
    grid: tuple[str, str, str] = ("1", "1", "1")
    hints: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    multiples: Mapping[str, int] = field(default_factory=dict)
    kernel: str = ""
    targets: tuple[str, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)
    contiguous: tuple[str, ...] = ()
    cost: TileCost | None = None

    def __post_init__(self) -> None:
        if self.op not in ops():
            raise UsageError(f"{self.symbol}: no op {self.op!r} in ops.toml", hint=f"one of {', '.join(ops())}")
        if self.dtype not in DTYPES:
            raise UsageError(f"{self.symbol}: dtype {self.dtype!r} is not one of {', '.join(DTYPES)}")
        if unknown := {*self.targets, *(self.hints.keys() - {"default"})} - targets().keys():
            raise UsageError(f"{self.symbol}: no target {', '.join(sorted(unknown))}")
        arrays = {p.name for p in self.params if p.dims}
        if unknown := set(self.aligned) - arrays:
            raise UsageError(f"{self.symbol}: aligned names no array parameter: {', '.join(sorted(unknown))}")
        if unknown := set(self.contiguous) - arrays:
            raise UsageError(f"{self.symbol}: contiguous names no array parameter: {', '.join(sorted(unknown))}")
        dims = {d for p in self.params for d in p.dims}
        if unknown := set(self.multiples) - dims:
            raise UsageError(f"{self.symbol}: multiples names no dimension: {', '.join(sorted(unknown))}")
        if low := [f"{dim} = {step}" for dim, step in self.multiples.items() if step < 1]:
            raise UsageError(f"{self.symbol}: multiples has {', '.join(low)}: it must be at least 1")
        if unknown := set(self.sizes) - dims:
            raise UsageError(f"{self.symbol}: sizes names no dimension: {', '.join(sorted(unknown))}")
        if odd := [dim for dim, size in self.sizes.items() if size < 1 or size % self.multiples.get(dim, 1)]:
            raise UsageError(f"{self.symbol}: sizes has {odd[0]} = {self.sizes[odd[0]]}, which it could not take")
        names = dims | set(self.constants)
        for said, more in (*((said, set()) for said in self.where), *((said, {"SMS"}) for said in self.grid)):
            if missing := expression_names(said) - names - more:
                raise UsageError(f"{self.symbol}: {said!r} uses unknown {', '.join(sorted(missing))}")

    @property
    def op_spec(self) -> OpSpec:
        return ops()[self.op]

    @property
    def params(self) -> tuple[Param, ...]:
        return self.op_spec.params

    @property
    def cell(self) -> str:
        """`layernorm-mlir-bf16`: the name of its cells, without a target."""
        return cell_name(self.op, self.source, self.dtype)

    def bind(self, shapes: Mapping[str, Sequence[int]]) -> dict[str, int]:
        """See OpSpec.bind."""
        return self.op_spec.bind(self.symbol, shapes)

    def unmet(
        self,
        dims: Mapping[str, int],
        misaligned: frozenset[str] = frozenset(),
        gapped: frozenset[str] = frozenset(),
    ) -> str | None:
        """The reason why this entry does not fit arguments of `dims`, or None if it fits. `misaligned`: the array
        parameters whose address or strides are not multiples of 16 bytes. `gapped`: those that have gaps, or whose
        address is not such a multiple."""
        for name in self.aligned:
            if name in misaligned:
                return f"{name} must be aligned to {ALIGNMENT} bytes in address and strides"
        for name in self.contiguous:
            if name in gapped:
                return f"{name} must be without gaps, at a multiple of {ALIGNMENT} bytes"
        for name, step in self.multiples.items():
            if dims[name] % step:
                return f"{name} must be a multiple of {step}"
        # A constant with a dimension's name is that dimension's size: with another size the grid would differ.
        for name, size in (*self.sizes.items(), *self.constants.items()):
            if dims.get(name, size) != size:
                return f"{name} must be {size}"
        names = {**self.constants, **dims}
        if why := next((f"{text} does not hold" for text in self.where if not evaluate(text, names)), None):
            return why
        if self.cost is None:
            return None
        rows, columns = self.op_spec.outputs[0].dims[-2:]
        return self.cost.unmet(dims[rows], dims[columns])

    def grid_for(self, dims: Mapping[str, int], sms: int) -> tuple[int, int, int]:
        """The launch grid in blocks. An output of size zero gives a zero in the grid, and then nothing is launched."""
        names = {**self.constants, **dims, "SMS": sms}
        x, y, z = (int(evaluate(text, names)) for text in self.grid)
        return x, y, z

    def runs_on(self, target: str | None) -> bool:
        """True if it is compiled for a target; the interpreter (None) runs every entry."""
        return target is None or (self.op_spec.runs_on(target) and (not self.targets or target in self.targets))

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> EntrySpec:
        x, y, z = row["grid"]
        fields: dict[str, Any] = dict(row)
        fields.update(
            aligned=tuple(row["aligned"]), where=tuple(row["where"]), grid=(x, y, z), targets=tuple(row["targets"]),
            contiguous=tuple(row.get("contiguous", ())),
            cost=TileCost.from_json(row["cost"]) if row.get("cost") else None,
        )  # fmt: skip
        return cls(**fields)
