"""A sparse A compressed: the executor's products with it are those with the whole A."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.compile.toolchain.cute.atoms.kernel import one_atom
from toolchain.cute.atoms import MmaAtom, atoms, compress, find
from toolchain.cute.atoms.sparse import chunk_size
from toolchain.cute.executor import run
from toolchain.cute.executor.instructions.matrices import DTYPES
from toolchain.errors import UsageError

BY_WARP = [atom for atom in atoms().values() if atom.threads == 32 and atom.sparse]
HALF = find("mma_sp.m16n8k16.f32.f16")


def sparse(rng: np.random.Generator, atom: MmaAtom, m: int, k: int) -> Any:
    """Values of which at most half are not zero in each chunk, some chunks with fewer."""
    wide = chunk_size(atom)
    made = rng.integers(1, 5, (m, k // wide, wide))
    order = rng.permuted(np.broadcast_to(np.arange(wide), made.shape), axis=2)
    return np.where(order < rng.integers(0, wide // 2 + 1, (*made.shape[:2], 1)), made, 0).reshape(m, k)


@pytest.mark.parametrize("atom", BY_WARP, ids=lambda atom: atom.name)
def test_a_product_with_it_is_that_with_the_whole(atom: MmaAtom) -> None:
    rng = np.random.default_rng(0)
    a = sparse(rng, atom, 2 * atom.m, 2 * atom.k)
    b = rng.integers(0, 5, (atom.n, 2 * atom.k))
    kept, metadata = compress(a.astype(DTYPES[atom.ab]), atom)
    assert kept.shape == (2 * atom.m, atom.k) and metadata.shape == (2, 2, 32)
    d = np.zeros((atom.n, atom.m), DTYPES[atom.c])
    for step in range(2):  # the second row of tiles
        tile = kept[atom.m :, step * atom.k // 2 : (step + 1) * atom.k // 2]
        part = b[:, step * atom.k : (step + 1) * atom.k].astype(DTYPES[atom.ab])
        held = [np.ascontiguousarray(x.T) for x in (tile, part)]
        run(one_atom(atom), (*held, d.copy(), d, np.ascontiguousarray(metadata[1, step])))
    assert (d.T.astype(np.int64) == a[atom.m :] @ b.T).all()


def test_the_places_are_those_of_the_values() -> None:
    a = np.zeros((16, 16), np.float16)
    a[0, :8] = [0, 5, 0, 7, 0, 0, 9, 0]
    kept, metadata = compress(a, HALF)
    assert list(kept[0]) == [5, 7, 0, 9, 0, 0, 0, 0]
    assert metadata[0, 0, 0] & 0xFF == 0b1000_1101  # 1 and 3; 0 and 2: the first zero, and the value


def test_what_is_not_so_sparse_is_refused_by_its_place() -> None:
    a = np.zeros((32, 16), np.float16)
    a[17, 12:15] = 1, np.nan, 3
    with pytest.raises(
        UsageError, match=r"row 17 of A has more than 2 values from column 12 on: 1\.0, nan, 3\.0, 0\.0"
    ):
        compress(a, HALF)
    with pytest.raises(UsageError, match=r"mma\.m16n8k16\.f32\.f16 takes no A of 16 x 16"):
        compress(a[:16], find("mma.m16n8k16.f32.f16"))
    with pytest.raises(UsageError, match="takes no A of 32 x 8"):
        compress(a[:, :8], HALF)
