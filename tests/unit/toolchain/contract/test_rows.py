"""The entries that a row of a table gives to a source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from toolchain.contract.entries import DEFAULT, committed
from toolchain.contract.policy import Policy
from toolchain.contract.rows import specs_of
from toolchain.errors import UsageError

ROW: Mapping[str, Any] = {
    "ops": ["linear"],
    "dtypes": ["f16", "bf16"],
    "constants": {"BM": 64, "BN": 32},
    "multiples": {"K": 64, "N": 32},
    "where": ["M <= 512"],
    "grid": ["min(SMS, cdiv(M, BM) * cdiv(N, BN))", "1", "1"],
}
FITS = {"M": 100, "K": 128, "N": 96}


def test_a_row_gives_an_entry_for_each_dtype() -> None:
    first, second = specs_of(ROW, "py", None)
    assert (first.symbol, second.symbol) == ("linear_64x32_f16", "linear_64x32_bf16")
    assert (second.op, second.dtype, second.source) == ("linear", "bf16", "py")
    assert (second.multiples, second.kernel, second.targets) == ({"K": 64, "N": 32}, "", ())
    bare = specs_of({"ops": ["gelu"], "dtypes": ["f32"], "grid": ["M", "1", "1"]}, "py", None)[0]
    assert (bare.symbol, bare.aligned, bare.where, bare.multiples, bare.hints) == ("gelu_f32", (), (), {}, {})


def test_a_row_of_a_targets_table_is_for_that_target() -> None:
    row = {**ROW, "variant": "few", "kernel": "linear_row", "hints": {"occupancy": 2}}
    spec = specs_of(row, "py", "sm_90")[1]
    assert (spec.symbol, spec.kernel, spec.targets) == ("linear_few_bf16", "linear_row", ("sm_90",))
    assert spec.hints == {"sm_90": {"occupancy": 2}}
    portable = specs_of({**row, "hints": {"sm_90": {"occupancy": 2}}}, "py", None)[1]
    assert (portable.targets, portable.hints) == ((), spec.hints)
    with pytest.raises(UsageError, match=r"hints is \{'occupancy': 2\}, not a table of tables"):
        specs_of(row, "py", None)


def test_a_row_for_several_ops_and_values_is_filled_in() -> None:
    row = {**ROW, "ops": ["linear", "linear_residual"], "kernel": "{op}_row", "aligned": ["*"], "dtypes": ["f32"]}
    first, second = specs_of(row, "py", None)
    assert [(s.symbol, s.kernel) for s in (first, second)] == [
        ("linear_64x32_f32", "linear_row"), ("linear_residual_64x32_f32", "linear_residual_row"),
    ]  # fmt: skip
    assert second.aligned == (*first.aligned[:3], "residual", "out")
    heads = {
        "ops": ["kv_append"], "dtypes": ["f32"], "each": {"D": [32, 64]}, "variant": "D{D}",
        "constants": {"BT": 8}, "where": ["D == {D}"], "aligned": ["*"], "grid": ["T", "H", "B"],
    }  # fmt: skip
    found = specs_of(heads, "py", None)
    assert [(s.symbol, s.constants, s.where) for s in found] == [
        ("kv_append_D32_f32", {"D": 32, "BT": 8}, ("D == 32",)),
        ("kv_append_D64_f32", {"D": 64, "BT": 8}, ("D == 64",)),
    ]  # fmt: skip
    assert list(found[0].constants) == ["D", "BT"], "constants are passed by position"
    assert found[0].aligned == ("k", "v", "k_cache", "v_cache"), "not the positions, which are i32"


def test_a_row_with_sizes_may_keep_one_of_its_entries() -> None:
    row = {**ROW, "dtypes": ["f32"], "sizes": {"N": 768}}
    sized, whole = specs_of(row, "py", None)
    assert specs_of({**row, "only": "sized"}, "py", None) == [sized]
    assert specs_of({**row, "only": "any"}, "py", None) == [whole]
    for alone in (ROW, {**row, "where": ["N == 768"]}):
        with pytest.raises(UsageError, match="only is 'any', but the row gives one entry"):
            specs_of({**alone, "only": "any"}, "py", None)


def test_a_row_may_be_for_some_sources() -> None:
    row = {**ROW, "sources": ["mlir"]}
    assert (specs_of(row, "py", None), len(specs_of(row, "mlir", None))) == ([], 2)


def test_a_row_with_sizes_gives_an_entry_that_has_them_compiled_in_before_one_that_takes_any() -> None:
    found = specs_of({**ROW, "sizes": {"K": 128, "N": 96}}, "py", None)
    assert [spec.symbol for spec in found] == [
        "linear_64x32_K128_N96_f16", "linear_64x32_f16", "linear_64x32_K128_N96_bf16", "linear_64x32_bf16",
    ]  # fmt: skip
    assert [dict(spec.sizes) for spec in found] == [{"K": 128, "N": 96}, {}] * 2
    fixed, any_size = found[2:]
    assert (fixed.unmet(FITS), any_size.unmet(FITS)) == (None, None)
    assert (fixed.unmet({**FITS, "N": 128}), any_size.unmet({**FITS, "N": 128})) == ("N must be 96", None)


@pytest.mark.parametrize(
    ("where", "entries"),
    [
        (["N == BN"], 1),
        (["M > 8", "N == 2 * BN + 32"], 1),
        (["K == 128", "N == 3 * BN"], 1),
        (["N == K"], 2),  # as many as there are sizes of K
        (["N % BN == 0"], 2),
        (["K == 128"], 2),
        (["N >= BN"], 2),
    ],
)
def test_where_conditions_leave_just_these_sizes_there_is_no_entry_for_any(where: list[str], entries: int) -> None:
    row = {**ROW, "dtypes": ["bf16"], "sizes": {"N": 96}, "where": where}
    found = specs_of(row, "py", None)
    assert [dict(spec.sizes) for spec in found] == [{"N": 96}, {}][:entries]


def policy(**tiles: Any) -> Policy:
    table = committed().policies[DEFAULT].to_json()
    return Policy.from_table({**table, "sms": 2, "tiles": tiles}, "a test")


def test_a_row_with_tiles_is_compared_with_those_behind_its_own() -> None:
    made = policy(product=[[128, 64, 9], [64, 32, 5], [32, 32, 3]])
    (spec,) = specs_of({**ROW, "dtypes": ["bf16"], "tiles": "product"}, "py", "sm_90", made)
    assert spec.cost is not None
    assert (spec.cost.sms, spec.cost.tiles) == (2, ((64, 32, 5), (32, 32, 3)))
    wide = {**ROW, "dtypes": ["bf16"], "constants": {"BM": 128, "BN": 32, "BR": 32}, "tiles": "product"}
    (spec,) = specs_of(wide, "py", "sm_90", made)
    assert spec.cost is not None and spec.cost.tiles[0] == (128, 64, 9), "both parts of N"
    (spec,) = specs_of({**ROW, "dtypes": ["bf16"], "rounds": 1}, "py", "sm_90", made)
    assert spec.unmet({**FITS, "M": 64, "N": 64}) is None
    assert spec.unmet({**FITS, "M": 64}) == "tiles of 64 x 32 take more than 1 rounds of 2"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"tiles": "none"}, "the policy has no tiles 'none'"),
        ({"tiles": "product", "constants": {"BM": 8, "BN": 8}}, "tiles 'product' have no tile of 8 x 8"),
    ],
)
def test_tiles_that_the_policy_lacks(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        specs_of({**ROW, **changed}, "py", "sm_90", policy(product=[[64, 32, 5]]))
    with pytest.raises(UsageError, match=r"tiles and rounds need a \[policy\], which this table lacks"):
        specs_of({**ROW, **changed}, "py", "sm_90")
