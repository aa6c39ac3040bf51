"""OpSpec: the signature of an op, as ops.toml has it: parameter names, dtypes, dimension symbols."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ..errors import LaunchError, UsageError
from ..tables import Check, check_keys, flag, header, is_table, pairs, place, read_table, text, texts
from .targets import targets

DTYPES = ("f32", "tf32", "f16", "bf16")  # of an entry; tf32 is f32 storage with tf32 tensor-core inputs
ITEMSIZE = {"f32": 4, "tf32": 4, "f16": 2, "bf16": 2, "f8E4M3FN": 1, "i8": 1, "i32": 4, "i64": 8}
PARAM_DTYPES = ("T", "f32", "f16", "bf16", "f8E4M3FN", "i8", "i32", "i64")  # of a parameter in ops.toml

CHANNEL = ("flags", "state", "counts", "turns", "ended")  # outputs by which the blocks of a collective meet
WORK = ("arrived", "gathered")  # outputs that ranks store to each other; nobody reads results there, nor in a channel

OPS = Path(__file__).parent / "ops.toml"
# The keys of an op; the head of ops.toml explains them.
OP_KEYS: Mapping[str, Check] = {
    "doc": text, "products": flag, "whole": flag, "inputs": texts, "outputs": texts, "scalars": texts,
    "pdl_reads": texts, "updates": texts, "scratch": texts, "aliases": pairs, "static": texts, "peers": texts,
    "own": texts,
}  # fmt: skip

_PARAM = re.compile(r"(?P<name>\w+): (?P<dtype>\w+)(\[(?P<dims>\w+(, \w+)*)\])?")


@dataclass(frozen=True)
class Param:
    """One parameter of an op. `dims` is empty for a scalar. `dtype` may be `T`, the entry's storage dtype."""

    name: str
    dtype: str
    dims: tuple[str, ...]
    role: Literal["input", "output", "scalar"]

    @classmethod
    def parse(cls, text: str, role: Literal["input", "output", "scalar"]) -> Param:
        match = _PARAM.fullmatch(text)
        if match is None or (role == "scalar") != (match["dims"] is None):
            wanted = "name: dtype" if role == "scalar" else "name: dtype[DIM, DIM]"
            raise UsageError(f"ops.toml: {text!r} is not a valid {role} parameter", hint=f"write {wanted!r}")
        if match["dtype"] not in PARAM_DTYPES:
            raise UsageError(
                f"ops.toml: {text!r} has the unknown dtype {match['dtype']}", hint=f"one of {', '.join(PARAM_DTYPES)}"
            )
        dims = tuple(match["dims"].split(", ")) if match["dims"] else ()
        return cls(match["name"], match["dtype"], dims, role)

    def storage(self, entry_dtype: str) -> str:
        """The dtype in memory for an entry of `entry_dtype`: f32, f16, bf16, f8E4M3FN, i8, i32 or i64."""
        dtype = entry_dtype if self.dtype == "T" else self.dtype
        return "f32" if dtype == "tf32" else dtype


def cell_name(op: str, source: str, dtype: str, *target: str) -> str:
    """`layernorm-mlir-bf16-sm_90`, the name of a cell of the matrix; without a target that of all its entries."""
    return "-".join((op, source, dtype, *target))


@dataclass(frozen=True)
class OpSpec:
    """An op's signature, with its parameters in ABI order. `products`: it multiplies matrices, so tf32 differs from
    f32. `pdl_reads`: the arrays that its kernels may read before they wait for the previous launch. `updates`: the
    outputs that are also read, or of which a part stays unchanged. `aliases`: pairs of an input and an output that may
    be the same array. `static`: dimensions whose size is a constant of every entry, and part of the arrays' types.
    `peers`: the arrays in memory of several GPUs, whose first dimension is the ranks; such an op is a collective.
    `own`: inputs of a collective that differ from rank to rank; the others are the same on all. `scratch`: outputs that
    hold zeros before the first launch, and then what one launch leaves to the next. `whole`: it does at once
    what a model has several other ops for, such as a step; a source may have no entry of it."""

    name: str
    params: tuple[Param, ...]
    doc: str
    products: bool
    pdl_reads: tuple[str, ...] = ()
    updates: tuple[str, ...] = ()
    aliases: frozenset[tuple[str, str]] = frozenset()
    static: tuple[str, ...] = ()
    peers: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    scratch: tuple[str, ...] = ()
    whole: bool = False

    def __post_init__(self) -> None:
        if unknown := set(self.own) - {p.name for p in self.params if p.role == "input" and p.dims}:
            raise UsageError(f"ops.toml: {self.name}: own names no input array: {', '.join(sorted(unknown))}")
        if unknown := set(self.peers) - {p.name for p in self.params if p.dims}:
            raise UsageError(f"ops.toml: {self.name}: peers names no array: {', '.join(sorted(unknown))}")
        if len(first := {p.dims[0] for p in self.params if p.name in self.peers}) > 1:
            raise UsageError(f"ops.toml: {self.name}: peers have several first dimensions: {', '.join(sorted(first))}")
        if unknown := set(self.pdl_reads) - {p.name for p in self.params if p.dims}:
            raise UsageError(f"ops.toml: {self.name}: pdl_reads names no array: {', '.join(sorted(unknown))}")
        if unknown := set(self.updates) - {p.name for p in self.params if p.role == "output"}:
            raise UsageError(f"ops.toml: {self.name}: updates names no output: {', '.join(sorted(unknown))}")
        if unknown := set(self.scratch) - {p.name for p in self.params if p.role == "output"}:
            raise UsageError(f"ops.toml: {self.name}: scratch names no output: {', '.join(sorted(unknown))}")
        roles = {p.name: p.role for p in self.params if p.dims}
        if odd := [pair for pair in self.aliases if [roles.get(name) for name in pair] != ["input", "output"]]:
            raise UsageError(f"ops.toml: {self.name}: aliases has {odd[0]}: not an input and an output of it")
        if unknown := set(self.static) - {dim for p in self.params for dim in p.dims}:
            raise UsageError(f"ops.toml: {self.name}: static names no dimension: {', '.join(sorted(unknown))}")

    @property
    def outputs(self) -> tuple[Param, ...]:
        return tuple(p for p in self.params if p.role == "output")

    @property
    def results(self) -> tuple[Param, ...]:
        """The outputs that hold results: not the channel of a collective, nor what its ranks store to each other, nor
        scratch."""
        no_result = {*self.scratch, *((*CHANNEL, *WORK) if self.peers else ())}
        return tuple(p for p in self.outputs if p.name not in no_result)

    @property
    def ranks(self) -> str:
        """The dimension of a collective whose size is the number of ranks; empty for an op of one GPU."""
        return next((p.dims[0] for p in self.params if p.name in self.peers), "")

    @property
    def alike(self) -> frozenset[str]:
        """The dimensions of a collective whose sizes are the same on all ranks: those of what they share. Of what is
        its own a rank may have more than another."""
        same = (p for p in self.params if p.name in self.peers or (p.role == "input" and p.name not in self.own))
        return frozenset(dim for param in same for dim in param.dims)

    @property
    def needs(self) -> frozenset[str]:
        """The features that a target (targets.toml) must have: not every GPU has 8-bit floats."""
        return frozenset({"fp8"} if any(param.dtype == "f8E4M3FN" for param in self.params) else ())

    def runs_on(self, target: str) -> bool:
        """True if a target has what the op needs."""
        known = targets().get(target)
        return known is None or self.needs <= known.features

    def bind(self, name: str, shapes: Mapping[str, Sequence[int]]) -> dict[str, int]:
        """Dimension symbols to sizes, from each array parameter's shape. `name`: of what is launched. Raises
        LaunchError on a mismatch."""
        bound: dict[str, int] = {}
        owner: dict[str, str] = {}
        for param in self.params:
            if not param.dims:
                continue
            shape = shapes[param.name]
            if len(shape) != len(param.dims):
                raise LaunchError(
                    f"{name}: {param.name} has rank {len(shape)}, wants {len(param.dims)} ({', '.join(param.dims)})"
                )
            for dim, size in zip(param.dims, shape, strict=True):
                if bound.setdefault(dim, size) != size:
                    raise LaunchError(f"{name}: {dim} is {bound[dim]} in {owner[dim]} but {size} in {param.name}")
                owner.setdefault(dim, param.name)
        return bound

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The dtypes that its entries may have. tf32 is one of them only if it has a matrix product, whose inputs it
        rounds; an op whose signature leaves no dtype open has f32 alone. What takes or makes numbers of 8 bits has
        bf16 alone, which a model with such products computes in beside them. So has a whole step."""
        kinds = {param.dtype for param in self.params}
        if "T" not in kinds:
            return ("f32",)
        if self.whole or kinds & {"f8E4M3FN", "i8"}:
            return ("bf16",)
        return tuple(dtype for dtype in DTYPES if self.products or dtype != "tf32")

    @property
    def typed(self) -> bool:
        """True if an array has the entry's dtype. In the other ops each array has a fixed one."""
        return any(param.dtype == "T" for param in self.params)

    def dtype_in(self, dtype: str) -> str:
        """The dtype of the entries that a model in `dtype` launches. tf32 only changes how matrices are multiplied: the
        other ops of a tf32 model run in f32, and so does an op whose arrays have dtypes of their own."""
        if not self.typed:
            return "f32"
        return "f32" if dtype == "tf32" and not self.products else dtype

    @property
    def signature(self) -> list[str]:
        """Its parameters in words, in ABI order. A kernel is compiled for exactly these."""
        return [
            f"{'pdl_reads ' * (p.name in self.pdl_reads)}{p.role} {p.name}: {p.dtype}[{', '.join(p.dims)}]"
            for p in self.params
        ]


@functools.cache
def ops() -> Mapping[str, OpSpec]:
    """All ops of `ops.toml` by name. Raises UsageError that begins with the file and line of an op that is wrong."""
    return {name: _op(name, row) for name, row in read_table(OPS).items()}


def _op(name: str, row: Any) -> OpSpec:
    where = place(OPS, header(name))
    if wanted := is_table(row):
        raise UsageError(f"{where}: {name} is {row!r}, not {wanted}")
    check_keys(row, OP_KEYS, f"{where}: {name}", [key for key in OP_KEYS if key != "doc"])
    roles: tuple[tuple[str, Literal["input", "output", "scalar"]], ...] = (
        ("inputs", "input"), ("outputs", "output"), ("scalars", "scalar"))  # fmt: skip
    params: list[Param] = []
    try:
        for key, role in roles:
            for written in row.get(key, ()):
                where = place(OPS, header(name), written)
                params.append(Param.parse(written, role))
        where = place(OPS, header(name))
        return OpSpec(
            name, tuple(params), row["doc"], row.get("products", False), tuple(row.get("pdl_reads", ())),
            tuple(row.get("updates", ())), frozenset((first, second) for first, second in row.get("aliases", ())),
            tuple(row.get("static", ())), tuple(row.get("peers", ())), tuple(row.get("own", ())),
            tuple(row.get("scratch", ())),
            row.get("whole", False),
        )  # fmt: skip
    except UsageError as error:
        raise UsageError(f"{where}: {error.args[0].removeprefix('ops.toml: ')}", hint=error.hint) from error
