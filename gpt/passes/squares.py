"""Decides into how many parts the sum of squares of a row is split, for models whose norms are folded (see fold.py).

A product that adds to the residual stream computes its columns in tiles, and each tile writes the sum of squares of its
own columns: one part. So the width of the parts decides which tile size the product uses.
"""

from __future__ import annotations

from toolchain.contract.expressions import cdiv
from toolchain.contract.op import ITEMSIZE
from toolchain.contract.policy import FEW, SQUARES, Fold, Policy, rounds
from toolchain.errors import UsageError

STEP = 32  # the columns of a part are a multiple of this: see linear_residual_squares in ops.toml
NARROWEST = 192  # the fewest columns of a model that can be folded: with fewer, a part is narrower than any tile
MULTIPLE = 64  # the columns of a folded model must be a multiple: the tiles rely on it


def is_folded(wanted: bool | None, width: int, dtype: str, policy: Policy) -> bool:
    """True if a model's norms are folded into its products. If `wanted` is None, they are whenever the model's dtype
    and width and the target's policy allow it. Raises UsageError if it is `wanted` and not possible."""
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
    """Columns of a part of the squares, for `rows` rows (more than small-M has) of `width` columns."""
    if width % fold.part_wide == 0:
        narrow = rows <= fold.part_narrow_rows and width % fold.part_narrow == 0
        return fold.part_narrow if narrow else fold.part_wide
    costs = {
        tile: tile[2] * rounds(policy.sms, rows, width, tile) for tile in policy.tiles[SQUARES] if _fits(width, tile[1])
    }
    return min(costs, key=lambda tile: costs[tile])[1]


def few_part(policy: Policy, width: int, rows: int) -> int:
    """The same for few rows of products whose tiles take one round: columns of the first tile of the policy's list that
    does. 0 if there is none."""
    one = (
        tile[1]
        for tile in policy.tiles.get(FEW, ())
        if _fits(width, tile[1]) and rounds(policy.sms, rows, width, tile) == 1
    )
    return next(one, 0)


def _fits(width: int, part: int) -> bool:
    """True if splitting `width` columns gives parts of exactly `part` columns."""
    return width >= part and dealt(width, cdiv(width, part)) == part


def dealt(width: int, parts: int) -> int:
    """Columns of a part (the last may be shorter), if the steps of `width` are dealt out to `parts` parts in order."""
    return STEP * cdiv(cdiv(width, STEP), parts)
