"""Products whose A is sparse: which values of B the kept values of A meet, and `mma.sync_sp`."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...atoms import find
from ...atoms.mma import MmaAtom
from ...atoms.sparse import chunk_size, kept_places, metadata_layout
from ..state.block import WARP, Warp
from ..state.call import Call
from ..state.findings import Undefined
from .matrices import give_sums, operands, table

NIBBLE, PER_REGISTER = 4, 8  # bits of a chunk, and chunks of a register


@functools.cache
def _readers(atom: MmaAtom) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each chunk of the column-major tile: the thread that has its metadata, and where in its register."""
    _, first = np.unique(table(metadata_layout(atom)), return_index=True)
    return first // PER_REGISTER, first % PER_REGISTER


@functools.cache
def _places(atom: MmaAtom) -> NDArray[np.int64]:
    """The places in a chunk of the values that were kept, by the four bits; -1 where they have no meaning."""
    known = kept_places(atom)
    count = len(next(iter(known.values())))
    return np.array([known.get(code, (-1,) * count) for code in range(1 << NIBBLE)])


def product(
    atom: MmaAtom, kept: NDArray[Any], b: NDArray[Any], words: NDArray[np.int32], warps: list[Warp]
) -> NDArray[Any]:
    """A x B.T (M, N), from the values of A that were kept (M, K/2), B (N, K) and the metadata of each thread.

    A value of B that no kept value meets is not read, be it NaN. Raises Undefined for metadata without a meaning.
    """
    threads, parts = _readers(atom)
    codes = words.view(np.uint32)[threads] >> (NIBBLE * parts).astype(np.uint32) & 0xF
    places = _places(atom)[codes]  # (chunks of the tile, kept of a chunk)
    if (bad := places[:, 0] < 0).any():
        _refuse(atom, int(bad.argmax()), codes, threads, warps)
    at = places.reshape(-1, atom.m, places.shape[1]).swapaxes(0, 1)  # (M, chunks of a row, kept of a chunk)
    columns = at + chunk_size(atom) * np.arange(at.shape[1])[:, None]
    return np.einsum("mk,nmk->mn", kept, b[:, columns.reshape(kept.shape)])


def _refuse(atom: MmaAtom, number: int, codes: NDArray[Any], threads: NDArray[np.int64], warps: list[Warp]) -> None:
    chunk, thread = chunk_size(atom), int(threads[number])
    row, first = number % atom.m, number // atom.m * chunk
    allowed = ", ".join(f"0b{code:04b}" for code in kept_places(atom))
    said = f"the metadata of row {row} of A, columns {first} to {first + chunk - 1}, is 0b{codes[number]:04b}"
    why = (
        f"{atom.ab} has {allowed} only" if atom.ab == "tf32" else f"two places in ascending order are one of {allowed}"
    )
    warps[thread // WARP].fail(Undefined, f"{said}; {why}", lane=thread % WARP)


def mma_sync_sp(call: Call, warp: Warp) -> None:
    """D = A x B + C of one warp, with the metadata of A behind C."""
    atom = find(call.atom)
    a, b, c = operands(call, warp, atom)
    words = call.arg(warp, len(call.ins) - 1)
    give_sums(call, warp, atom, product(atom, a, b, words, [warp]) + c)
