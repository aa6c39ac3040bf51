from __future__ import annotations

from pathlib import Path

import pytest

from gpt.squares import TILES, dealt, is_folded, part_width
from toolchain.entry import cdiv, load_entries, rounds
from toolchain.errors import UsageError

ENTRIES = load_entries(Path(__file__).parents[3] / "kernels_mlir" / "entries.toml", "mlir")
OWN = [entry for entry in ENTRIES if (entry.op, entry.dtype) == ("linear_residual_squares", "bf16")]


@pytest.mark.parametrize(
    ("width", "rows", "part"),
    [
        (768, 513, 128), (768, 1536, 128), (768, 1537, 192), (768, 32768, 192), (192, 600, 192), (960, 600, 192),
        (1024, 1024, 128), (1024, 2048, 128), (1024, 8192, 256), (1280, 1024, 192), (1280, 1536, 128),
        (1280, 2048, 160), (1280, 8192, 128), (1600, 1024, 128), (1600, 1536, 160), (1600, 2048, 256),
        (1600, 8192, 160), (256, 600, 128),
    ],
)  # fmt: skip
def test_parts_are_as_wide_as_the_tiles_that_take_least(width: int, rows: int, part: int) -> None:
    assert part_width(width, rows) == part


@pytest.mark.parametrize("width", range(192, 2049, 64))
def test_the_steps_dealt_out_to_the_parts_make_each_as_wide_as_a_tile(width: int) -> None:
    for rows in (513, 1024, 1536, 1537, 2048, 5000, 8192, 24576):
        part = part_width(width, rows)
        assert dealt(width, cdiv(width, part)) == part


@pytest.mark.parametrize("rows", [513, 1024, 1500, 2048, 5000, 8192, 24576])
@pytest.mark.parametrize("width", range(192, 2049, 64))
def test_the_product_takes_the_tile_that_the_parts_were_chosen_for(width: int, rows: int) -> None:
    part, z = part_width(width, rows), cdiv(width, part_width(width, rows))
    dims = {"M": rows, "K": width, "N": width, "Z": z, "L": cdiv(rows, 64) * 64}
    constants = next(e for e in OWN if e.unmet(dims) is None).constants
    heights = {height for height, columns in TILES if columns == part}
    cheapest = min(heights, key=lambda height: TILES[height, part] * rounds(rows, height, width, part))
    assert (constants["BM"], constants["BN"] + constants.get("BR", 0)) == (cheapest, part)


@pytest.mark.parametrize(
    ("wanted", "width", "dtype", "target", "folded"),
    [
        (None, 768, "bf16", "sm_90", True), (None, 768, "f16", None, True), (None, 768, "bf16", "sm_100", False),
        (None, 768, "f32", "sm_90", False), (None, 768, "tf32", "sm_90", False), (None, 1024, "bf16", "sm_90", True),
        (None, 48, "bf16", None, False), (None, 1000, "bf16", None, False), (None, 128, "bf16", None, False),
        (True, 1024, "bf16", "sm_90", True), (True, 1600, "f16", None, True),
        (True, 192, "bf16", None, True), (False, 768, "bf16", "sm_90", False), (False, 48, "f32", "sm_80", False),
    ],
)  # fmt: skip
def test_norms_are_folded_by_default_where_there_are_tiles(
    wanted: bool | None, width: int, dtype: str, target: str | None, folded: bool
) -> None:
    assert is_folded(wanted, width, dtype, target) == folded


@pytest.mark.parametrize(
    ("width", "dtype", "target"),
    [(1024, "f32", "sm_90"), (1024, "tf32", None), (1000, "bf16", "sm_90"), (64, "bf16", None), (768, "bf16", "sm_80")],
)
def test_norms_that_cannot_be_folded_are_an_error(width: int, dtype: str, target: str | None) -> None:
    with pytest.raises(UsageError, match=f"{dtype} model of {width} columns .* on {target or 'the CPU'}"):
        is_folded(True, width, dtype, target)
