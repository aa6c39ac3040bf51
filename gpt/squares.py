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
FEWEST = 256  # columns that a model must have for a part to be as wide as a tile, where they are no multiple of WIDE
MULTIPLE = 64  # of columns, which the tiles take for granted
# Of few rows a part has THIN columns. Where the width is a multiple of WIDE, parts are as GPT-2's 768 columns are
# fastest with: of at most SQUARES rows NARROW columns, else WIDE.
THIN, SQUARES, NARROW, WIDE = 64, 1536, 128, 192
# Of other widths the part whose tiles take least in all. By columns, what a tile takes: of 128 rows as with a residual
# alone (entries.toml), where it was measured, 128 columns, which have one accumulator here, a little more; of 64 rows
# 192 columns as there, the others in proportion.
TALL: Mapping[int, int] = {256: 66, 192: 50, 160: 44, 128: 36}
LOW: Mapping[int, int] = {256: 40, 192: 30, 128: 20}


def is_folded(wanted: bool | None, width: int, dtype: str, target: str | None) -> bool:
    """Whether a model's norms are to be part of its products. By default where the tiles are those that GPT-2's 768
    columns were measured with, and are faster with. Raises UsageError where it is `wanted` and there are no kernels, or
    no tiles as wide as a part. `target` None: the CPU."""
    columns = width % WIDE == 0 or (width % MULTIPLE == 0 and width >= FEWEST)
    possible = ITEMSIZE.get(dtype) == 2 and columns and target in FOLDED_ON
    if wanted and not possible:
        raise UsageError(
            f"the norms of a {dtype} model of {width} columns cannot be part of its products on {target or 'the CPU'}",
            hint=f"they can be in f16 and bf16, at {WIDE} columns or from {FEWEST} on at a multiple of {MULTIPLE}, "
            "on sm_90 and the CPU",
        )
    return possible and width % WIDE == 0 if wanted is None else wanted


def part_width(width: int, rows: int) -> int:
    """Columns of a part of the squares of `rows` rows, more than few, of `width` columns."""
    if width % WIDE == 0:
        return NARROW if rows <= SQUARES and width % NARROW == 0 else WIDE
    height, tiles = (64, LOW) if rows <= SQUARES else (128, TALL)
    exact = {part: cost for part, cost in tiles.items() if dealt(width, cdiv(width, part)) == part}
    return min(exact, key=lambda part: exact[part] * rounds(rows, height, width, part))


def dealt(width: int, parts: int) -> int:
    """Columns of each but the last of so many parts: the steps are dealt out in order."""
    return STEP * cdiv(cdiv(width, STEP), parts)
