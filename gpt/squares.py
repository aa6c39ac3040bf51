"""How the sum of squares of a row is divided, where a model's norms are part of its products.

What adds to the residual stream walks its columns in tiles, and each tile gives the squares of the columns that it has:
a part. So how wide the parts are decides which tile the product takes.
"""

from __future__ import annotations

from collections.abc import Mapping

from toolchain.entry import ITEMSIZE, cdiv, rounds
from toolchain.errors import UsageError

FOLDED_ON = ("sm_90", None)  # the GPUs that have tiles for it, none of the others was measured; the interpreter
STEP = 32  # parts are whole steps of so many columns: see linear_residual_squares in ops.toml
NARROWEST = 192  # columns of a model that can be folded: from here on its parts are as wide as a tile
MULTIPLE = 64  # of columns, which the tiles take for granted
# Of few rows a part has THIN columns. Where the width is a multiple of WIDE, parts are as GPT-2's 768 columns are
# fastest with, for which the products behind are tuned: of at most SQUARES rows NARROW columns, else WIDE.
THIN, SQUARES, NARROW, WIDE = 64, 1536, 128, 192
# Of other widths the part whose tiles take least in all. The rows and columns of the tiles that there are, and what one
# takes, of any K: measured at 1024 to 8192 rows of 1024, 1280 and 1600 columns. Of two that are as wide that of 64 rows
# takes less where one round makes all of them, and so it is in entries.toml.
TILES: Mapping[tuple[int, int], int] = {
    (64, 128): 25, (64, 192): 36, (128, 128): 36, (128, 160): 46, (128, 192): 50, (128, 256): 67,
}  # fmt: skip


def is_folded(wanted: bool | None, width: int, dtype: str, target: str | None) -> bool:
    """Whether a model's norms are to be part of its products: by default where there are kernels, with tiles as wide as
    a part. Raises UsageError where it is `wanted` and there are none. `target` None: the CPU."""
    columns = width % MULTIPLE == 0 and width >= NARROWEST
    possible = ITEMSIZE.get(dtype) == 2 and columns and target in FOLDED_ON
    if wanted and not possible:
        raise UsageError(
            f"the norms of a {dtype} model of {width} columns cannot be part of its products on {target or 'the CPU'}",
            hint=f"they can be in f16 and bf16, from {NARROWEST} columns on at a multiple of {MULTIPLE}, "
            "on sm_90 and the CPU",
        )
    return possible if wanted is None else wanted


def part_width(width: int, rows: int) -> int:
    """Columns of a part of the squares of `rows` rows, more than few, of `width` columns."""
    if width % WIDE == 0:
        return NARROW if rows <= SQUARES and width % NARROW == 0 else WIDE
    costs = {
        (height, part): cost * rounds(rows, height, width, part)
        for (height, part), cost in TILES.items()
        if _fits(width, part)
    }
    return min(costs, key=lambda tile: costs[tile])[1]


def _fits(width: int, part: int) -> bool:
    """Whether the parts come out that wide."""
    return width >= part and dealt(width, cdiv(width, part)) == part


def dealt(width: int, parts: int) -> int:
    """Columns of each but the last of so many parts: the steps are dealt out in order."""
    return STEP * cdiv(cdiv(width, STEP), parts)
