from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from benchmarks.cases.cases import CASES
from ci.gate.same_code import possible, same_cells
from toolchain.contract.entry import EntrySpec

GELU = next(case for case in CASES if case.name == "gelu M=8192 N=3072 bf16")
SOFTMAX = next(case for case in CASES if case.name == "softmax M=4096 N=50257 bf16")
FORWARD = next(case for case in CASES if case.group == "forward")
BOTH = [(GELU.name, "mlir"), (GELU.name, "py")]
ALL = [*BOTH, (GELU.name, "fastest")]  # which chooses among both


def test_equal_machine_code_of_other_files_is_the_same_cell(stored: Any) -> None:
    one, two = stored("new"), stored("old")
    assert {file.sha256 for entry in one.entries for file in entry.cubins.values()}.isdisjoint(
        {file.sha256 for entry in two.entries for file in entry.cubins.values()}
    )
    assert same_cells(one, two, [GELU], []) == ALL
    assert same_cells(one, two, [GELU], ["py"]) == [(GELU.name, "py")]


def test_a_kernel_that_the_case_may_launch_makes_a_difference_and_no_other_one(stored: Any) -> None:
    old = stored("old")
    first, *behind = [entry.spec.symbol for entry in possible(old, GELU, "mlir", "sm_90")]
    assert behind  # the first wants aligned arrays, so another may be taken
    for symbol in (first, *behind):
        assert same_cells(stored("new", {f"mlir/{symbol}": b"other"}), old, [GELU], []) == BOTH[1:]
    softmax = stored("ops", ops=("gelu", "softmax"))
    changed = stored("changed", {"mlir/gelu_any_bf16": b"x"}, ("gelu", "softmax"))
    assert same_cells(softmax, changed, [SOFTMAX], []) == [
        (SOFTMAX.name, "mlir"), (SOFTMAX.name, "py"), (SOFTMAX.name, "fastest")
    ]  # fmt: skip


def test_an_entry_that_can_never_be_taken_makes_no_difference(stored: Any) -> None:
    specs = [entry.spec for entry in possible(stored("old"), SOFTMAX, "mlir", "sm_90")]
    assert specs == []  # the bundle has no softmax
    assert same_cells(stored("new"), stored("old"), [SOFTMAX], []) == []
    whole = stored("softmax", ops=("softmax",))
    taken = {entry.spec.symbol for entry in possible(whole, SOFTMAX, "mlir", "sm_90")}
    never = {entry.spec.symbol for entry in whole.entries_of("mlir", "softmax", "bf16")} - taken
    assert taken and never
    changed = {f"mlir/{symbol}": b"other" for symbol in never}
    assert (SOFTMAX.name, "mlir") in same_cells(stored("n", changed, ("softmax",)), whole, [SOFTMAX], [])


def _grid(spec: EntrySpec) -> EntrySpec:
    return replace(spec, grid=("1", "M", "1")) if spec.source == "mlir" and spec.op == "gelu" else spec


def _renamed(spec: EntrySpec) -> EntrySpec:
    return replace(spec, symbol=f"{spec.symbol}_v2", kernel=spec.kernel or spec.op, hints={"default": {"occupancy": 2}})


@pytest.mark.parametrize(("change", "same"), [(_grid, BOTH[1:]), (_renamed, ALL)])
def test_a_launch_counts_and_names_do_not(stored: Any, change: Any, same: Any) -> None:
    codes = {f"{entry.spec.source}/{change(entry.spec).symbol}": entry.spec.symbol.encode()
             for entry in stored("old").entries}  # fmt: skip
    assert same_cells(stored("new", codes, changed=change), stored("old"), [GELU], []) == same


def test_a_model_is_the_same_only_if_every_kernel_is(stored: Any) -> None:
    old = stored("old", ops=("gelu", "layernorm"))
    assert same_cells(stored("new", ops=("gelu", "layernorm")), old, [FORWARD], []) == [
        (FORWARD.name, "mlir"), (FORWARD.name, "py"), (FORWARD.name, "fastest")
    ]  # fmt: skip
    changed = stored("changed", {"py/layernorm_1024_bf16": b"other"}, ("gelu", "layernorm"))
    assert same_cells(changed, old, [FORWARD, GELU], []) == [(FORWARD.name, "mlir"), *ALL]


def test_an_entry_more_in_front_makes_a_difference(stored: Any) -> None:
    def fewer(spec: EntrySpec) -> EntrySpec:
        first = (spec.source, spec.symbol) == ("mlir", "gelu_2x1024_bf16")
        return replace(spec, where=(*spec.where, "M == 1")) if first else spec

    assert same_cells(stored("new", changed=fewer), stored("old"), [GELU], []) == BOTH[1:]


def test_other_rows_of_the_fastest_make_a_difference_to_it_alone(stored: Any) -> None:
    one, two = stored("new"), stored("old")
    assert one.picks["sm_90"]
    assert same_cells(replace(one, picks={}), two, [GELU], ["mlir", "py", "fastest"]) == BOTH
