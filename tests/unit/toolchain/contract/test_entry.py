"""The fields of an entry, and the launch conditions that follow from them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from toolchain.contract.entry import EntrySpec
from toolchain.contract.op import ops
from toolchain.contract.policy import TileCost
from toolchain.contract.rows import specs_of
from toolchain.errors import UsageError

ROW: Mapping[str, Any] = {
    "ops": ["linear"],
    "dtypes": ["f16", "bf16"],
    "constants": {"BM": 64, "BN": 32},
    "aligned": ["x", "out"],
    "multiples": {"K": 64, "N": 32},
    "where": ["M <= 512"],
    "grid": ["min(SMS, cdiv(M, BM) * cdiv(N, BN))", "1", "1"],
    "hints": {"sm_90": {"occupancy": 2}},
}
FITS = {"M": 100, "K": 128, "N": 96}


def made(target: str | None = None, **changed: Any) -> EntrySpec:
    """The bf16 entry of ROW, changed."""
    return specs_of({**ROW, **changed}, "py", target)[1]


def test_a_manifest_keeps_all_of_it() -> None:
    cost = TileCost(132, ((64, 32, 9), (128, 32, 16)), rounds=2)
    fixed, _ = specs_of({**ROW, "dtypes": ["bf16"], "sizes": {"N": 96}}, "py", None)
    tuned = replace(made(kernel="linear_row"), targets=("sm_90", "sm_100"))
    for spec in (tuned, fixed, replace(fixed, cost=cost)):
        assert EntrySpec.from_json(json.loads(json.dumps(spec.to_json()))) == spec


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"multiples": {"C": 8}}, "linear_64x32_f16: multiples names no dimension: C"),
        ({"multiples": {"BM": 8}}, "multiples names no dimension: BM"),
        ({"multiples": {"N": 0}, "sizes": {"N": 64}}, "multiples has N = 0: it must be at least 1"),
        ({"sizes": {"BM": 8}}, "linear_64x32_BM8_f16: sizes names no dimension: BM"),
        ({"sizes": {"M": 8, "N": 100}}, "sizes has N = 100, which it could not take"),
        ({"sizes": {"M": 0}}, "sizes has M = 0, which it could not take"),
        ({"aligned": ["y"]}, "aligned names no array parameter: y"),
        ({"contiguous": ["y"]}, "contiguous names no array parameter: y"),
        ({"where": ["Q == 1"]}, "'Q == 1' uses unknown Q"),
        ({"where": ["M > SMS"]}, "'M > SMS' uses unknown SMS"),
        ({"grid": ["M", "Z", "1"]}, "'Z' uses unknown Z"),
        ({"grid": ["M", "1" + " + 1" * 200, "1"]}, "is an expression of 801 characters, more than 500"),
        ({"hints": {"sm90": {"occupancy": 2}}}, "linear_64x32_f16: no target sm90"),
        ({"dtypes": ["f8"]}, "dtype 'f8' is not one of f32"),
        ({"ops": ["nope"]}, "no op 'nope'"),
    ],
)
def test_what_an_entry_cannot_say(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        specs_of({**ROW, **changed}, "py", None)


@pytest.mark.parametrize(
    ("dims", "misaligned", "why"),
    [
        (FITS, (), None),
        (FITS, ("weight", "bias"), None),
        (FITS, ("out", "weight"), "out must be aligned to 16 bytes in address and strides"),
        ({**FITS, "K": 96}, (), "K must be a multiple of 64"),
        ({**FITS, "K": 0, "N": 0}, (), None),  # nothing to do
        ({**FITS, "N": 100}, (), "N must be a multiple of 32"),
        ({**FITS, "M": 513}, (), "M <= 512 does not hold"),
        ({**FITS, "M": 513, "N": 1}, (), "N must be a multiple of 32"),
    ],
)
def test_why_an_entry_cannot_take_arguments(dims: dict[str, int], misaligned: tuple[str, ...], why: str | None) -> None:
    assert made().unmet(dims, frozenset(misaligned)) == why


def test_an_entry_of_dense_arrays_takes_none_with_gaps() -> None:
    (spec,) = specs_of({**ROW, "dtypes": ["bf16"], "aligned": [], "contiguous": ["x"]}, "py", None)
    assert spec.unmet(FITS, frozenset({"x"}), frozenset({"out"})) is None
    assert spec.unmet(FITS, frozenset(), frozenset({"x"})) == "x must be without gaps, at a multiple of 16 bytes"
    assert EntrySpec.from_json(spec.to_json()) == spec


def test_a_constant_of_a_dimensions_name_is_that_size() -> None:
    """For example attention's D. A constant with the same name but another meaning would give a wrong grid."""
    alike = made(constants={"BM": 64, "BN": 32, "M": 100})
    assert (alike.unmet(FITS), alike.unmet({**FITS, "M": 101})) == (None, "M must be 100")


def test_an_entry_with_a_cost_is_taken_where_its_tile_is_the_cheapest() -> None:
    spec = replace(made(where=[]), cost=TileCost(2, ((64, 32, 10), (32, 32, 6))))
    assert spec.unmet({**FITS, "M": 128}) is None  # 6 tiles in 3 rounds, against 12 in 6
    assert spec.unmet({**FITS, "M": 32}) == "tiles of 32 x 32 are cheaper than of 64 x 32"


def test_an_entry_knows_its_op() -> None:
    assert made().op_spec is ops()["linear"]


def test_targets_restrict_where_an_entry_runs() -> None:
    every, two = made(), replace(made(), targets=("sm_90", "sm_100"))
    assert [spec.runs_on(target) for spec in (every, two) for target in ("sm_80", "sm_90", "sm_100")] == [
        True, True, True, False, True, True,
    ]  # fmt: skip
    assert every.runs_on(None)
    assert two.runs_on(None)  # the interpreter stands for all


def test_an_entry_of_8_bit_floats_runs_where_they_are() -> None:
    floats, integers = (replace(made(), op=f"linear_weight_{kind}") for kind in ("f8", "i8"))
    assert [floats.runs_on(target) for target in ("sm_80", "sm_89", "sm_90", "sm_120")] == [False, True, True, True]
    assert integers.runs_on("sm_80") and floats.runs_on(None)


def test_the_grid_is_in_sizes_constants_and_multiprocessors() -> None:
    assert made().grid_for(FITS, sms=132) == (6, 1, 1)
    assert made().grid_for(FITS, sms=4) == (4, 1, 1)
    assert made().grid_for({**FITS, "M": 0}, sms=4) == (0, 1, 1)
