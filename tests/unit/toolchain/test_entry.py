"""What an entry says of itself, and the launch conditions that follow."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from toolchain.entry import EntrySpec, OpSpec, entries_of, evaluate, load_entries, ops
from toolchain.errors import UsageError

ROW: Mapping[str, Any] = {
    "op": "linear",
    "dtypes": ["f16", "bf16"],
    "constants": {"BM": 64, "BN": 32},
    "aligned": ["x", "out"],
    "multiples": {"K": 64, "N": 32},
    "where": ["M <= 512"],
    "grid": ["min(SMS, cdiv(M, BM) * cdiv(N, BN))", "1", "1"],
    "hints": {"sm_90": {"occupancy": 2}},
}
FITS = {"M": 100, "K": 128, "N": 96}


def made(**changed: Any) -> EntrySpec:
    """The bf16 entry of ROW, changed."""
    return entries_of([{**ROW, **changed}], "py", "entries.toml")[1]


def test_a_row_gives_an_entry_for_each_dtype() -> None:
    first, second = entries_of([ROW], "py", "entries.toml")
    assert (first.symbol, second.symbol) == ("linear_64x32_f16", "linear_64x32_bf16")
    assert (second.op, second.dtype, second.source) == ("linear", "bf16", "py")
    assert (second.multiples, second.kernel, second.targets) == ({"K": 64, "N": 32}, "", ())
    tuned = made(variant="sm_90_few", kernel="linear_row", targets=["sm_90"])
    assert (tuned.symbol, tuned.kernel, tuned.targets) == ("linear_sm_90_few_bf16", "linear_row", ("sm_90",))
    bare = entries_of([{"op": "gelu", "dtypes": ["f32"], "grid": ["M", "1", "1"]}], "py", "")[0]
    assert (bare.symbol, bare.aligned, bare.where, bare.multiples, bare.hints) == ("gelu_f32", (), (), {}, {})


def test_a_row_with_sizes_gives_an_entry_that_has_them_compiled_in_before_one_that_takes_any() -> None:
    found = entries_of([{**ROW, "sizes": {"K": 128, "N": 96}}], "py", "entries.toml")
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
    row = {**ROW, "dtypes": ["bf16"], "constants": {"BM": 64, "BN": 32}, "sizes": {"N": 96}, "where": where}
    found = entries_of([row], "py", "entries.toml")
    assert [dict(spec.sizes) for spec in found] == [{"N": 96}, {}][:entries]


def test_a_manifest_keeps_all_of_it() -> None:
    spec = made(kernel="linear_row", targets=["sm_90", "sm_100"])
    assert EntrySpec.from_json(json.loads(json.dumps(spec.to_json()))) == spec
    (spec, _) = entries_of([{**ROW, "dtypes": ["bf16"], "sizes": {"N": 96}}], "py", "entries.toml")
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
        ({"dense": ["y"]}, "dense names no array parameter: y"),
        ({"where": ["Q == 1"]}, "'Q == 1' uses unknown Q"),
        ({"where": ["M > SMS"]}, "'M > SMS' uses unknown SMS"),
        ({"grid": ["M", "Z", "1"]}, "'Z' uses unknown Z"),
        ({"grid": ["M", "1" + " + 1" * 200, "1"]}, "is an expression of 801 characters, more than 500"),
        ({"targets": ["sm_9"]}, "linear_64x32_f16: no target sm_9"),
        ({"hints": {"sm90": {"occupancy": 2}}}, "linear_64x32_f16: no target sm90"),
        ({"dtypes": ["f8"]}, "dtype 'f8' is none of f32"),
        ({"op": "nope"}, "no op 'nope'"),
        ({"dtypes": ["f16", "f16"]}, "entries.toml: the same symbol twice: linear_64x32_f16"),
    ],
)
def test_what_an_entry_cannot_say(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        entries_of([{**ROW, **changed}], "py", "entries.toml")


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
    (spec,) = entries_of([{**ROW, "dtypes": ["bf16"], "aligned": [], "dense": ["x"]}], "py", "entries.toml")
    assert spec.unmet(FITS, frozenset({"x"}), frozenset({"out"})) is None
    assert spec.unmet(FITS, frozenset(), frozenset({"x"})) == "x must be without gaps, at a multiple of 16 bytes"
    assert EntrySpec.from_json(spec.to_json()) == spec


def test_a_constant_of_a_dimensions_name_is_that_size() -> None:
    """As attention's D. Of another that happens to be called alike, such as a tile's rows, the grid would be wrong."""
    alike = made(constants={"BM": 64, "BN": 32, "M": 100})
    assert (alike.unmet(FITS), alike.unmet({**FITS, "M": 101})) == (None, "M must be 100")


def test_an_op_names_arrays_that_are_read_early() -> None:
    assert made().op_spec is ops()["linear"]
    assert made().op_spec.early == ("weight", "bias")
    assert ops()["gelu"].early == ()
    params = ops()["layernorm"].params
    assert OpSpec("layernorm", params, "", False, ("weight",)).early == ("weight",)
    for name in ("wait", "C", "eps"):  # no parameter, a dimension, a scalar
        with pytest.raises(UsageError, match=f"ops.toml: layernorm: early names no array: {name}$"):
            OpSpec("layernorm", params, "", False, ("weight", name))


def test_targets_restrict_where_an_entry_runs() -> None:
    every, two = made(), made(targets=["sm_90", "sm_100"])
    assert [spec.runs_on(target) for spec in (every, two) for target in ("sm_80", "sm_90", "sm_100")] == [
        True, True, True, False, True, True,
    ]  # fmt: skip
    assert every.runs_on(None)
    assert two.runs_on(None)  # the interpreter stands for all


def test_the_grid_is_in_sizes_constants_and_multiprocessors() -> None:
    assert made().grid_for(FITS, sms=132) == (6, 1, 1)
    assert made().grid_for(FITS, sms=4) == (4, 1, 1)
    assert made().grid_for({**FITS, "M": 0}, sms=4) == (0, 1, 1)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("cdiv(cdiv(K, 64), Z) % 2 == 0", True),
        ("max(K, 5) - 2 * Z // 3", 298),
        ("K < Z", False),
        ("K != Z", True),
        ("rounds(K, 128, 8448, 192)", 1),
        ("rounds(K, 128, 8449, 192)", 2),
    ],
)
def test_expressions(text: str, value: int) -> None:
    assert evaluate(text, {"K": 300, "Z": 3}) == value


@pytest.mark.parametrize("text", ["K ** 2", "K if Z else 1", "open('x')", "K.real", "1 < K < 9", "min(K, key=1)"])
def test_nothing_else_is_an_expression(text: str) -> None:
    with pytest.raises(UsageError, match="cannot evaluate"):
        evaluate(text, {"K": 300, "Z": 3})


def test_a_function_wants_its_arguments() -> None:
    with pytest.raises(UsageError, match=r"'K > rounds\(K, 128\)': 'rounds\(K, 128\)': .* missing 2 required"):
        evaluate("K > rounds(K, 128)", {"K": 300})


@pytest.mark.parametrize("text", ["K // Z", "K % (Z - Z)", "1 + cdiv(K, Z)", "rounds(K, 1, K, Z)"])
def test_a_division_by_zero_says_of_what(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        evaluate(text, {"K": 300, "Z": 0, "N": 1})
    assert str(caught.value) == f"{text!r} divides by zero where K=300, Z=0"
    with pytest.raises(UsageError, match=r"^'1 % 0' divides by zero$"):
        evaluate("1 % 0", {})


def test_a_file_of_entries(tmp_path: Path) -> None:
    path = tmp_path / "entries.toml"
    path.write_text(
        '[[entry]]\nop = "layernorm"\nvariant = "row"\nkernel = "layernorm_row"\ndtypes = ["f32"]\n'
        'constants = { BC = 64 }\nmultiples = { C = 8 }\ntargets = ["sm_90"]\ngrid = ["N", "1", "1"]\n'
    )
    (spec,) = load_entries(path, "mlir")
    assert (spec.symbol, spec.source, spec.kernel) == ("layernorm_row_f32", "mlir", "layernorm_row")
    assert (spec.multiples, spec.targets) == ({"C": 8}, ("sm_90",))


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ('op = "gelu"\ndtypes = ["f32"]\ngrid = ["1", "1", "1"]\nwere = ["N > 64"]', "unknown were"),
        ('op = "gelu"\ngrid = ["1", "1", "1"]', "it has no dtypes"),
        ('op = "gelu"\ndtypes = "f32"\ngrid = ["1", "1", "1"]', "dtypes is 'f32', not a list of texts"),
        ('op = "gelu"\ndtypes = ["f32"]\ngrid = ["1", "1"]', "grid has 2 expressions, not three"),
    ],
)
def test_a_row_of_a_file_that_is_wrong_is_named(tmp_path: Path, row: str, said: str) -> None:
    path = tmp_path / "entries.toml"
    path.write_text(f'[[entry]]\nop = "gelu"\ndtypes = ["f32"]\ngrid = ["1", "1", "1"]\n[[entry]]\n{row}\n')
    with pytest.raises(UsageError) as caught:
        load_entries(path, "mlir")
    assert f"{path}: entry 2" in str(caught.value)
    assert said in str(caught.value)
