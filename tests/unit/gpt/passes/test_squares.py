from __future__ import annotations

import pytest

from gpt.passes import squares
from gpt.passes.squares import dealt, is_folded
from toolchain.contract.entries import DEFAULT, committed, entries_of
from toolchain.contract.expressions import cdiv
from toolchain.contract.fastest import picked
from toolchain.contract.policy import rounds
from toolchain.errors import UsageError

H200, DEFAULTS = committed().policies["sm_90"], committed().policies[DEFAULT]
TILES = {tile[:2]: tile for tile in H200.tiles["squares"]}
BY_SOURCE = {
    source: [entry for entry in entries_of(source) if (entry.op, entry.dtype) == ("linear_residual_squares", "bf16")]
    for source in ("mlir", "cute")
}
OWN = BY_SOURCE["mlir"]
FASTEST = committed().picks["sm_90"]


def part_width(width: int, rows: int) -> int:
    assert H200.fold is not None
    return squares.part_width(H200, H200.fold, width, rows)


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


def cost(rows: int, width: int, height: int, part: int) -> int:
    tile = TILES[height, part]
    return tile[2] * rounds(H200.sms, rows, width, tile)


@pytest.mark.parametrize("rows", [513, 1024, 1500, 2048, 5000, 8192, 24576])
@pytest.mark.parametrize("width", range(192, 2049, 64))
def test_the_product_takes_the_tile_that_the_parts_were_chosen_for(width: int, rows: int) -> None:
    part, z = part_width(width, rows), cdiv(width, part_width(width, rows))
    dims = {"M": rows, "K": width, "N": width, "Z": z, "L": cdiv(rows, 64) * 64}
    constants = next(e for e in OWN if e.unmet(dims) is None).constants
    heights = {height for height, columns in TILES if columns == part}
    cheapest = min(heights, key=lambda height: cost(rows, width, height, part))
    assert (constants["BM"], constants["BN"] + constants.get("BR", 0)) == (cheapest, part)


@pytest.mark.parametrize("rows", [513, 1024, 1536, 1537, 2048, 5000, 8192, 24576])
@pytest.mark.parametrize("width", range(192, 2049, 64))
def test_the_fastest_product_takes_the_tile_that_its_parts_were_chosen_for(width: int, rows: int) -> None:
    policy = H200.of("fastest")
    assert policy.fold is not None
    part = squares.part_width(policy, policy.fold, width, rows)
    dims = {"M": rows, "K": width, "N": width, "Z": cdiv(width, part), "L": cdiv(rows, 64) * 64}
    source = picked(FASTEST, "linear_residual_squares", "bf16", dims) or "mlir"
    constants = next(e for e in BY_SOURCE[source] if e.unmet(dims) is None).constants
    assert constants["BN"] + constants.get("BR", 0) == part


@pytest.mark.parametrize(
    ("width", "rows", "part", "source"),
    [(1280, 1024, 160, "cute"), (1280, 8192, 160, "cute"), (1600, 1024, 128, "mlir"), (1600, 2048, 224, "cute")],
)
def test_parts_of_160_and_224_columns_are_those_of_cute(width: int, rows: int, part: int, source: str) -> None:
    policy = H200.of("fastest")
    assert policy.fold is not None
    assert squares.part_width(policy, policy.fold, width, rows) == part
    dims = {"M": rows, "K": width, "N": width, "Z": cdiv(width, part), "L": cdiv(rows, 64) * 64}
    assert (picked(FASTEST, "linear_residual_squares", "bf16", dims) or "mlir") == source


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
@pytest.mark.parametrize("rows", [129, 192, 193, 256, 320, 321, 384, 448])
def test_few_rows_take_products_of_one_round(rows: int, dtype: str) -> None:
    """Those of GPT-2's 768 columns, and of the products behind, which read as many parts."""
    policy = H200.of("fastest")
    part = squares.few_part(policy, 768, rows)
    assert part == (32 if rows <= 320 else 96)
    for op, k, n in (
        ("linear_residual_squares", 768, 768), ("linear_residual_squares", 3072, 768), ("rms_linear", 768, 2304),
        ("rms_linear_gelu", 768, 3072),
    ):  # fmt: skip
        dims = {"M": rows, "K": k, "N": n, "Z": cdiv(768, part), "L": cdiv(rows, 64) * 64}
        assert picked(FASTEST, op, dtype, dims) == "cute"
        taken = [each for each in entries_of("cute") if (each.op, each.dtype) == (op, dtype)]
        tile = next(each for each in taken if each.unmet(dims) is None).constants
        assert cdiv(rows, tile["BM"]) * cdiv(n, tile["BN"]) <= H200.sms
        assert tile["BN"] == part or op != "linear_residual_squares"


@pytest.mark.parametrize(
    ("wanted", "width", "dtype", "folded"),
    [
        (None, 768, "bf16", True), (None, 768, "f16", True), (None, 768, "f32", False), (None, 768, "tf32", False),
        (None, 1024, "bf16", True), (None, 48, "bf16", False), (None, 1000, "bf16", False), (None, 128, "bf16", False),
        (True, 1024, "bf16", True), (True, 1600, "f16", True), (True, 192, "bf16", True), (False, 768, "bf16", False),
    ],
)  # fmt: skip
def test_norms_are_folded_by_default_where_the_policy_has_it(
    wanted: bool | None, width: int, dtype: str, folded: bool
) -> None:
    assert is_folded(wanted, width, dtype, H200) == folded
    if not wanted:
        assert not is_folded(wanted, width, dtype, DEFAULTS)


@pytest.mark.parametrize(("width", "dtype"), [(1024, "f32"), (1024, "tf32"), (1000, "bf16"), (64, "bf16")])
def test_norms_that_cannot_be_folded_are_an_error(width: int, dtype: str) -> None:
    with pytest.raises(UsageError, match=f"the norms of a {dtype} model of {width} columns cannot be part of its"):
        is_folded(True, width, dtype, H200)


def test_a_policy_without_a_fold_says_so() -> None:
    with pytest.raises(
        UsageError, match=r"768 columns .* with the policy of this bundle and target, which has no fold"
    ):
        is_folded(True, 768, "bf16", DEFAULTS)
