"""Parameter: what a kernel takes in one argument, and what it promises the compiler about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from toolchain.contract.entry import EntrySpec


@dataclass(frozen=True)
class Parameter:
    """One argument of a kernel.

    `kind`: "array": a pointer, then its sizes and strides; "pointer": an address alone, or an array whose rank the code
    does not tell; "list": arrays of one kind, passed as a table of these, and their number; "number". `dtype`: of the
    elements or the number, as Tile IR spells it: "f32", "bf16", "i32". `rank`: of an array. `sizes`, `strides`: what is
    compiled in for each dimension, None for any; strides count elements. `written`: the kernel may write the array.
    `writes_items`, of a pointer: it may write arrays whose addresses it reads from memory. `index`: the dtype of sizes
    and strides. `divisors`: numbers that the argument must be a multiple of, by its place: 0 the address in bytes, then
    sizes, then strides.
    """

    name: str
    kind: Literal["array", "pointer", "list", "number"]
    dtype: str
    rank: int | None = None
    sizes: tuple[int | None, ...] = ()
    strides: tuple[int | None, ...] = ()
    written: bool = False
    index: str = "i32"
    divisors: Mapping[int, int] = field(default_factory=dict[int, int])
    writes_items: bool = False

    @property
    def values(self) -> int:
        """How many of the compiled code's parameters it makes."""
        return 2 if self.kind == "list" else 1 + 2 * (self.rank or 0)

    def __str__(self) -> str:
        if self.kind == "number":
            return f"{self.name}: {self.dtype}"
        sizes = ", ".join("?" if size is None else str(size) for size in self.sizes)
        shape = "*" if self.kind == "pointer" else f"[{sizes}]"
        many = "list of " if self.kind == "list" else ""
        return f"{self.name}: {many}{self.dtype}{shape}{' written' if self.written else ''}"


def of_entry(spec: EntrySpec) -> tuple[Parameter, ...]:
    """The parameters of a bundle's entry. Its conditions on sizes and alignment are its own: see `EntrySpec.unmet`."""
    found: list[Parameter] = []
    for param in spec.params:
        dtype, rank = param.storage(spec.dtype), len(param.dims)
        if not rank:
            found.append(Parameter(param.name, "number", dtype))
            continue
        strides = (*[None] * (rank - 1), 1)
        written = param.role == "output"
        found.append(Parameter(param.name, "array", dtype, rank, (None,) * rank, strides, written))
    return tuple(found)
