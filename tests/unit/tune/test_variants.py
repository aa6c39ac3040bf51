"""The variants that are tried: every choice that meets the conditions, in the classes that can use it."""

from __future__ import annotations

import pytest

from toolchain.errors import UsageError
from tune.spaces import Spaces, load_spaces
from tune.variants import variants

from .conftest import WriteSpaces


def test_every_choice_that_is_kept_is_a_variant(spaces: Spaces) -> None:
    (space,) = spaces.spaces
    found = variants(space, "py", "sm_90")
    assert [(v.spec.symbol, v.classes) for v in found] == [
        ("gelu_64_1_bf16", ("few",)),
        ("gelu_64_2_bf16", ("few",)),
        ("gelu_128_1_bf16", ("few", "many")),
        ("gelu_128_2_bf16", ("few", "many")),
        ("gelu_256_1_bf16", ("few", "many")),  # 256 x 2 is not kept
    ]


def test_a_variant_is_an_entry_of_the_target(spaces: Spaces) -> None:
    (space,) = spaces.spaces
    spec = variants(space, "mlir", "sm_100")[3].spec
    assert (spec.source, spec.targets, spec.aligned, spec.multiples) == ("mlir", ("sm_100",), ("x", "out"), {"N": 64})
    assert (spec.constants, spec.hints) == ({"BN": 128}, {"sm_100": {"occupancy": 2}})
    assert spec.grid == ("min(SMS * 2, cdiv(N, BN))", "M", "1"), "a hint's number stands in the grid"
    assert spec.grid_for({"M": 3, "N": 1000}, sms=2) == (4, 3, 1)


def test_dtypes_are_variants_of_their_own_and_keep_knows_their_size(write_spaces: WriteSpaces) -> None:
    path = write_spaces('dtypes = ["bf16"]', 'dtypes = ["f32", "bf16"]')
    path.write_text(
        path.read_text().replace("BN * occupancy <= 256", "BN * itemsize <= 256").replace("BN > 64", "BN > 0")
    )
    (space,) = load_spaces(path).spaces
    symbols = [v.spec.symbol for v in variants(space, "py", "sm_90")]
    assert symbols == ["gelu_64_1_f32", "gelu_64_2_f32"] + [f"gelu_{n}_{o}_bf16" for n in (64, 128) for o in (1, 2)]


def test_a_variant_is_tried_only_where_its_entry_takes_the_shapes(write_spaces: WriteSpaces) -> None:
    path = write_spaces("aligned = ", 'where = ["M * 2 >= BN"]\naligned = ')
    path.write_text(path.read_text().replace("shapes = [{ M = 1 }, { M = 16 }]", "shapes = [{ M = 16 }]"))
    path.write_text(path.read_text().replace("shapes = [{ M = 64 }]", "shapes = [{ M = 64 }, { M = 100 }]"))
    (space,) = load_spaces(path).spaces
    with pytest.raises(UsageError, match="space gelu: no variant is kept for class few"):
        variants(space, "py", "sm_90")
    path.write_text(path.read_text().replace("M * 2", "M * 4"))
    (space,) = load_spaces(path).spaces
    found = {v.spec.symbol: v.classes for v in variants(space, "py", "sm_90")}
    assert found["gelu_64_1_bf16"] == ("few",) and found["gelu_256_1_bf16"] == ("many",)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("BN = [64, 128, 256]", "BN = [64, 0]", "space gelu: '256 % BN == 0' divides by zero where BN=0"),
        ("aligned = ", 'where = ["Q > 1"]\naligned = ', "space gelu: gelu_64_1_bf16: 'Q > 1' uses unknown Q"),
        ("aligned = ", 'where = ["cdiv(M, 0) > 1"]\naligned = ', r"space gelu: 'cdiv\(M, 0\) > 1' divides by zero"),
    ],
)
def test_what_is_wrong_with_a_condition_says_of_which_space(
    write_spaces: WriteSpaces, old: str, new: str, said: str
) -> None:
    path = write_spaces(old, new)
    path.write_text(path.read_text().replace('"BN * occupancy <= 256"', '"256 % BN == 0"'))
    (space,) = load_spaces(path).spaces
    with pytest.raises(UsageError, match=said):
        variants(space, "py", "sm_90")


def test_sizes_that_are_compiled_in_part_the_classes(write_spaces: WriteSpaces) -> None:
    path = write_spaces("aligned = ", 'sizes = ["N"]\naligned = ')
    (space,) = load_spaces(path).spaces
    found = variants(space, "py", "sm_90")
    assert [(v.spec.symbol, v.spec.sizes) for v in found[:2]] == [
        ("gelu_64_1_N256_bf16", {"N": 256}), ("gelu_64_2_N256_bf16", {"N": 256}),
    ]  # fmt: skip
    assert found[2].classes == ("few", "many")
    path.write_text(path.read_text().replace("shapes = [{ M = 64 }]", "shapes = [{ M = 64, N = 512 }]"))
    (space,) = load_spaces(path).spaces
    found = {v.spec.symbol: v.classes for v in variants(space, "py", "sm_90")}
    assert found["gelu_128_1_N256_bf16"] == ("few",) and found["gelu_128_1_N512_bf16"] == ("many",)
    assert "gelu_64_1_N512_bf16" not in found, "kept for the other class alone"


def test_the_symbols_of_a_spaces_variants_tell_it_apart(write_spaces: WriteSpaces) -> None:
    (space,) = load_spaces(write_spaces('name = "gelu"', 'name = "gelu_flat"')).spaces
    assert variants(space, "py", "sm_90")[0].spec.symbol == "gelu_flat_64_1_bf16"
