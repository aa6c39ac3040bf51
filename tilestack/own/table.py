"""A matrix.toml of somebody's own kernels: the ops, their arrays and the sizes that are checked."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from conformance.ops.inputs import NUMPY_DTYPES
from toolchain.errors import UsageError
from toolchain.tables import (
    Check,
    check_keys,
    header,
    is_number,
    one_of,
    place,
    read_table,
    table_of,
    tables,
    text,
    texts,
)

INTEGERS: Mapping[str, np.dtype[np.generic]] = {
    "i8": np.dtype(np.int8), "i16": np.dtype(np.int16), "i32": np.dtype(np.int32), "i64": np.dtype(np.int64),
}  # fmt: skip
DTYPES: Mapping[str, np.dtype[np.generic]] = {**NUMPY_DTYPES, **INTEGERS}
LOWEST, BELOW = -100, 100  # of integers whose range is not given: their products fit into 16 bits


def _arrays(value: Any) -> str | None:
    good = (
        isinstance(value, dict) and value and all(isinstance(each, dict) or not texts(each) for each in value.values())
    )
    return None if good else "a table of arrays, each a list of sizes' names, or a table with `sizes`"


def _edge(value: Any) -> str | None:
    good = (isinstance(value, int) and not isinstance(value, bool)) or not text(value)
    return None if good else "an integer or the name of a size"


ARRAY: Mapping[str, Check] = {"sizes": texts, "dtype": one_of(*DTYPES), "from": _edge, "below": _edge}
OP: Mapping[str, Check] = {
    "name": text, "module": text, "inputs": _arrays, "outputs": _arrays, "numbers": table_of(is_number, "numbers"),
    "sizes": tables, "timed": tables, "dtypes": texts,
    "f32_ulps": lambda value: None if is_number(value) and value >= 0 else "a number from 0", "why": text,
}  # fmt: skip


@dataclass(frozen=True)
class Array:
    """An array of an op. `sizes`: their names. `dtype`: its own; empty for the one that is checked. The integers of an
    input are drawn from `lowest` on and are less than `below`, each a number or a size's name."""

    sizes: Sequence[str]
    dtype: str = ""
    lowest: int | str = LOWEST
    below: int | str = BELOW

    def storage(self, dtype: str) -> str:
        """The name of its dtype, where `dtype` is checked."""
        return self.dtype or dtype

    def shape(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        return tuple(sizes[name] for name in self.sizes)

    def range(self, sizes: Mapping[str, int]) -> tuple[int, int]:
        """Of its integers: the lowest, and one more than the highest."""
        low, high = (sizes[edge] if isinstance(edge, str) else edge for edge in (self.lowest, self.below))
        return low, high


@dataclass(frozen=True)
class Op:
    """One kernel. `module`: has its `launch` and its `reference`. `inputs`, `outputs`: its arrays by name. `sizes` are
    checked, `timed` are timed: the largest of `sizes` where the table has none. `f32_ulps`: what the kernel's own
    arithmetic in f32 may add, in units of f32's roundoff, and `why`."""

    name: str
    module: str
    inputs: Mapping[str, Array]
    outputs: Mapping[str, Array]
    numbers: Mapping[str, float]
    sizes: Sequence[Mapping[str, int]]
    timed: Sequence[Mapping[str, int]]
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


def only(ops: Sequence[Op], names: Sequence[str], dtypes: Sequence[str], path: Path) -> list[Op]:
    """Some of a table's ops, with some of their dtypes; empty names mean all. Raises UsageError if nothing is left."""
    found = [
        replace(op, dtypes=[dtype for dtype in op.dtypes if not dtypes or dtype in dtypes])
        for op in ops
        if not names or op.name in names
    ]
    if not any(op.dtypes for op in found):
        raise UsageError(f"{path} has no such op or dtype", hint="leave --op and --dtype out")
    return found


def _op(path: Path, row: Mapping[str, Any]) -> Op:
    where = f"{place(path, header('[op]'), repr(row.get('name', ''))[1:-1])}: an op"
    check_keys(row, OP, where, optional=("numbers", "timed"))
    if unknown := [name for name in row["dtypes"] if name not in DTYPES]:
        raise UsageError(f"{where}: no dtype {', '.join(unknown)}", hint=f"one of {', '.join(DTYPES)}")
    inputs, outputs = (
        {name: _array(value, f"{where}: {name}") for name, value in row[kind].items()} for kind in ("inputs", "outputs")
    )
    arrays = [*inputs.values(), *outputs.values()]
    wanted = {name for array in arrays for name in array.sizes}
    for sizes in (*row["sizes"], *row.get("timed", ())):
        if sizes.keys() != wanted or not all(isinstance(size, int) and size > 0 for size in sizes.values()):
            raise UsageError(f"{where}: sizes are {sizes}; its arrays have {', '.join(sorted(wanted))}, from 1")
        for name, array in inputs.items():
            _check_range(array, row["dtypes"], sizes, f"{where}: {name}")
    largest = max(row["sizes"], key=lambda sizes: sum(math.prod(array.shape(sizes)) for array in arrays))
    fields: dict[str, Any] = {"numbers": {}, "timed": [largest], **row, "inputs": inputs, "outputs": outputs}
    return Op(**fields)


def _array(value: Any, where: str) -> Array:
    if not isinstance(value, dict):
        return Array(value)
    table = cast("dict[str, Any]", value)
    check_keys(table, ARRAY, where, optional=("dtype", "from", "below"))
    return Array(
        table["sizes"], table.get("dtype", ""), table.get("from", LOWEST if "below" not in table else 0),
        table.get("below", BELOW),
    )  # fmt: skip


def _check_range(array: Array, dtypes: Sequence[str], sizes: Mapping[str, int], where: str) -> None:
    """Raises UsageError for a range that is empty, names no size, or does not fit into the dtype."""
    for dtype in {array.storage(dtype) for dtype in dtypes} & {*INTEGERS}:
        try:
            low, high = array.range(sizes)
        except KeyError as error:
            raise UsageError(f"{where}: no size {error.args[0]}", hint=f"one of {', '.join(sizes)}") from error
        fits = np.iinfo(INTEGERS[dtype].name)
        if not fits.min <= low < high <= fits.max + 1:
            raise UsageError(f"{where}: no {dtype} from {low} and below {high}")
