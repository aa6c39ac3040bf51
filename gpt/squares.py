"""How the sum of squares of a row is divided, where a model's norms are part of its products.

What adds to the residual stream walks its columns in tiles, and each tile gives the squares of the columns that it has:
a part. So how wide the parts are decides which tile the product takes.
"""

from __future__ import annotations

from toolchain.entry import ITEMSIZE, cdiv
from toolchain.errors import UsageError
from toolchain.policy import SQUARES, Fold, Policy, rounds

STEP = 32  # parts are whole steps of so many columns: see linear_residual_squares in ops.toml
NARROWEST = 192  # columns of a model that can be folded: from here on its parts are as wide as a tile
MULTIPLE = 64  # of columns, which the tiles take for granted


def is_folded(wanted: bool | None, width: int, dtype: str, policy: Policy) -> bool:
    """Whether a model's norms are to be part of its products: by default where the target's policy has it, with tiles
    as wide as a part. Raises UsageError where it is `wanted` and cannot be."""
    columns = width % MULTIPLE == 0 and width >= NARROWEST
    possible = ITEMSIZE.get(dtype) == 2 and columns and policy.fold is not None
    if wanted and not possible:
        where = "" if policy.fold else " with the policy of this bundle and target, which has no fold"
        raise UsageError(
            f"the norms of a {dtype} model of {width} columns cannot be part of its products{where}",
            hint=f"they can be in f16 and bf16, from {NARROWEST} columns on at a multiple of {MULTIPLE}, "
            "where the bundle has a target's own entries with a [policy.fold], as sm_90",
        )
    return possible if wanted is None else wanted


def part_width(policy: Policy, fold: Fold, width: int, rows: int) -> int:
    """Columns of a part of the squares of `rows` rows, more than few, of `width` columns."""
    if width % fold.part_wide == 0:
        narrow = rows <= fold.part_narrow_rows and width % fold.part_narrow == 0
        return fold.part_narrow if narrow else fold.part_wide
    costs = {
        tile: tile[2] * rounds(policy.sms, rows, width, tile) for tile in policy.tiles[SQUARES] if _fits(width, tile[1])
    }
    return min(costs, key=lambda tile: costs[tile])[1]


def _fits(width: int, part: int) -> bool:
    """Whether the parts come out that wide."""
    return width >= part and dealt(width, cdiv(width, part)) == part


def dealt(width: int, parts: int) -> int:
    """Columns of each but the last of so many parts: the steps are dealt out in order."""
    return STEP * cdiv(cdiv(width, STEP), parts)
