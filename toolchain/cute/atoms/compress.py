"""A sparse A as its instructions take it: the values that are kept, and the metadata that says which they are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import UsageError
from .mma import MmaAtom
from .sparse import chunk_size, kept_places, metadata_layout

NIBBLE = 4  # bits of a chunk


def compress(a: NDArray[Any], atom: MmaAtom) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """The kept values (M, K / 2) of A (M, K), and the metadata (M / m, K / k, threads): the register of each thread for
    each tile of the atom.

    Of four values, or of two tf32, half are kept: those that are not zero, and the first zeros where fewer are. Raises
    UsageError for sizes that are no whole number of tiles, and for a chunk with more values that are not zero.
    """
    if not atom.sparse or a.ndim != 2 or a.shape[0] % atom.m or a.shape[1] % atom.k or not a.size:
        raise UsageError(
            f"{atom.name} takes no A of {' x '.join(map(str, a.shape))}",
            hint="an atom with a sparse A, and multiples of its M and K",
        )
    wide, codes = chunk_size(atom), kept_places(atom)
    chunks = a.reshape(a.shape[0], -1, wide)
    used = chunks != 0
    if (many := used.sum(axis=2) > wide // 2).any():
        row, chunk = (int(at) for at in np.argwhere(many)[0])
        said = f"row {row} of A has more than {wide // 2} values from column {chunk * wide} on"
        raise UsageError(f"{said}: {', '.join(map(str, chunks[row, chunk]))}", hint=f"{wide // 2} of {wide} at most")
    places = np.sort(np.argsort(~used, axis=2, kind="stable")[:, :, : wide // 2], axis=2)
    kept = np.take_along_axis(chunks, places, axis=2).reshape(a.shape[0], -1)
    of_places = np.zeros((wide,) * (wide // 2), np.uint32)
    for code, where in codes.items():
        of_places[where] = code
    words = of_places[tuple(np.moveaxis(places, 2, 0))]  # (M, chunks of a row)
    return kept, _registers(words, atom)


def _registers(codes: NDArray[np.uint32], atom: MmaAtom) -> NDArray[np.int32]:
    """The codes of all chunks (M, K / chunk) as the threads of each tile hold them."""
    layout, columns = metadata_layout(atom), atom.k // chunk_size(atom)
    parts = 32 // NIBBLE
    of = np.array([[layout((thread, part)) for part in range(parts)] for thread in range(atom.threads)])
    tiles = codes.reshape(codes.shape[0] // atom.m, atom.m, -1, columns).transpose(0, 2, 3, 1)
    held = tiles.reshape(*tiles.shape[:2], -1)[:, :, of]  # (M / m, K / k, threads, parts)
    shifts = np.arange(parts, dtype=np.uint32) * NIBBLE
    return np.bitwise_or.reduce(held << shifts, axis=3).astype(np.uint32).view(np.int32)
