"""A matrix.toml of somebody's own kernels: the ops, their arrays and the sizes that are checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance.inputs import NUMPY_DTYPES
from toolchain.errors import UsageError
from toolchain.tables import Check, check_keys, header, is_number, place, read_table, table_of, tables, text, texts

DTYPES = tuple(name for name in NUMPY_DTYPES if name != "i32")


def _dims(value: Any) -> str | None:
    good = isinstance(value, dict) and value and all(not texts(each) for each in value.values())
    return None if good else "a table of arrays, each a list of sizes' names"


OP: Mapping[str, Check] = {
    "name": text, "module": text, "inputs": _dims, "outputs": _dims, "numbers": table_of(is_number, "numbers"),
    "sizes": tables, "dtypes": texts,
    "f32_ulps": lambda value: None if is_number(value) and value >= 0 else "a number from 0", "why": text,
}  # fmt: skip


@dataclass(frozen=True)
class Op:
    """One kernel. `module`: has its `launch` and its `reference`. `inputs`, `outputs`: the sizes' names of each array.
    `f32_ulps`: what the kernel's own arithmetic in f32 may add, in units of f32's roundoff, and `why`."""

    name: str
    module: str
    inputs: Mapping[str, Sequence[str]]
    outputs: Mapping[str, Sequence[str]]
    numbers: Mapping[str, float]
    sizes: Sequence[Mapping[str, int]]
    dtypes: Sequence[str]
    f32_ulps: float
    why: str


def load(path: Path) -> list[Op]:
    """The ops of a table. Raises UsageError with file and line for whatever is wrong in it."""
    table = read_table(path)
    check_keys(table, {"op": tables}, str(path))
    found = [_op(path, row) for row in table["op"]]
    if twice := {op.name for op in found if sum(other.name == op.name for other in found) > 1}:
        raise UsageError(f"{path}: two ops are called {', '.join(sorted(twice))}")
    return found


def _op(path: Path, row: Mapping[str, Any]) -> Op:
    where = f"{place(path, header('[op]'), repr(row.get('name', ''))[1:-1])}: an op"
    check_keys(row, OP, where, optional=("numbers",))
    if unknown := [name for name in row["dtypes"] if name not in DTYPES]:
        raise UsageError(f"{where}: no dtype {', '.join(unknown)}", hint=f"one of {', '.join(DTYPES)}")
    wanted = {name for arrays in (row["inputs"], row["outputs"]) for dims in arrays.values() for name in dims}
    for sizes in row["sizes"]:
        if sizes.keys() != wanted or not all(isinstance(size, int) and size > 0 for size in sizes.values()):
            raise UsageError(f"{where}: sizes are {sizes}; its arrays have {', '.join(sorted(wanted))}, from 1")
    fields: dict[str, Any] = {"numbers": {}, **row}
    return Op(**fields)
