"""ldmatrix, stmatrix and mma.sync: which thread holds which element is what the atoms' layouts say."""

from __future__ import annotations

import functools
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from ...atoms import find, find_copy
from ...atoms.mma import MmaAtom
from ...layout import Layout, size
from ..state.access import SMEM, load, store
from ..state.block import WARP, Warp
from ..state.call import Call

ROW = 16  # bytes of a row of 8 elements of 16 bits
DTYPES: dict[str, Any] = {
    "f64": np.float64, "f32": np.float32, "s32": np.int32, "tf32": np.float32,
    "f16": np.float16, "bf16": ml_dtypes.bfloat16,
    "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "s8": np.int8, "u8": np.uint8,
}  # fmt: skip
TF32 = np.uint32(0xFFFFE000)  # the bits of an f32 that an instruction with tf32 reads


@functools.cache
def register_count(atom: MmaAtom, operand: str) -> int:
    """`MmaAtom.registers`, remembered: it is asked for each instruction."""
    return atom.registers(operand)


@functools.cache
def table(layout: Layout) -> NDArray[np.int64]:
    """A thread-value layout as an array (threads, values) of elements."""
    return np.array([[layout((t, v)) for v in range(size(layout[1]))] for t in range(size(layout[0]))])


def ldmatrix(call: Call, warp: Warp) -> None:
    """Thread i gives the address of row i; each thread gets two elements of each matrix."""
    atom = find_copy(call.atom)
    rows, _ = atom.tile
    data = load(warp, SMEM, call.arg(warp, 0), ROW, mask=warp.lanes < rows)[:rows].view(np.uint16)
    held = data.T.reshape(-1)[table(atom.register_layout)]
    registers = np.ascontiguousarray(held).view(np.int32)
    call.give(warp, list(registers.T))


def stmatrix(call: Call, warp: Warp) -> None:
    """The reverse of ldmatrix."""
    atom = find_copy(call.atom)
    rows, columns = atom.tile
    held = call.registers(warp, 1, atom.count).view(np.uint16)
    tile = np.zeros(rows * columns, np.uint16)
    tile[table(atom.register_layout)] = held
    data = np.ascontiguousarray(tile.reshape(columns, rows).T).view(np.uint8)
    everyone = np.zeros((WARP, ROW), np.uint8)
    everyone[:rows] = data
    store(warp, SMEM, call.arg(warp, 0), everyone, mask=warp.lanes < rows)


def transpose(call: Call, warp: Warp) -> None:
    """Lane 4 i + j holds columns 2 j and 2 j + 1 of row i."""
    matrix = np.ascontiguousarray(call.arg(warp, 0)).view(np.uint16).reshape(8, 8)
    call.give(warp, [np.ascontiguousarray(matrix.T).reshape(-1).view(np.int32)])


def numbers(data: NDArray[np.uint8], dtype: str) -> NDArray[Any]:
    """Elements of an operand as f64, or as i64 for integers."""
    if dtype == "tf32":
        return (data.view(np.uint32) & TF32).view(np.float32).astype(np.float64)
    if dtype in ("s4", "u4"):  # two in a byte, the first in the low bits
        halves = np.stack([data & 15, data >> 4], axis=-1).reshape(*data.shape[:-1], -1).astype(np.int64)
        return (halves ^ 8) - 8 if dtype == "s4" else halves
    made = data.view(DTYPES[dtype])
    return made.astype(np.int64 if dtype in ("s8", "u8", "s32") else np.float64)


def operands(call: Call, warp: Warp, atom: MmaAtom) -> list[NDArray[Any]]:
    """The tiles of A, B and C that a warp holds in registers."""
    tiles, first = list[NDArray[Any]](), 0
    for operand in ("a", "b", "c"):
        count = register_count(atom, operand)
        held = call.registers(warp, first, count, np.int64 if atom.c == "f64" else np.int32)
        first += count
        tiles.append(gathered(atom, operand, numbers(held, atom.c if operand == "c" else atom.ab)))
    return tiles


def give_sums(call: Call, warp: Warp, atom: MmaAtom, total: NDArray[Any]) -> None:
    """The registers of D of a warp."""
    call.give(warp, accumulators(atom, total, table(atom.layout("c"))))


def mma_sync(call: Call, warp: Warp) -> None:
    """D = A x B + C of one warp."""
    atom = find(call.atom)
    a, b, c = operands(call, warp, atom)
    give_sums(call, warp, atom, a @ b.T + c)


def gathered(atom: MmaAtom, operand: str, held: NDArray[Any]) -> NDArray[Any]:
    """The tile of an operand from what each thread holds (threads, values)."""
    rows, columns = atom.tile(operand)
    tile = np.zeros(rows * columns, held.dtype)
    tile[table(atom.layout(operand))] = held
    return tile.reshape(columns, rows).T


def accumulators(atom: MmaAtom, total: NDArray[Any], places: NDArray[np.int64]) -> list[NDArray[Any]]:
    """The registers of D, rounded once, for threads that hold these places of its column-major tile."""
    rounded = total.astype(DTYPES[atom.c]).T.reshape(-1)[places]
    kind = {"f32": np.float32, "f64": np.float64}.get(atom.c, np.int32)
    registers = np.ascontiguousarray(rounded).view(kind)
    assert len(registers) == WARP
    return list(registers.T.copy())
