"""Which source is the fastest: the decision, and the text of the table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from toolchain.contract.entries import load_table
from toolchain.contract.entry import EntrySpec
from toolchain.errors import UsageError
from tune import fastest_rows
from tune.apply import HEADER
from tune.fastest import Class, Found, Timed
from tune.fastest_model import Passed
from tune.fastest_rows import decide, write
from tune.spaces import ShapeClass
from tune.worker import Machine

ALL = Class("gelu", ShapeClass("all", ("M > 1",), ()))
TUNED = """[[tuned]]
op = "gelu"
class = "all"
dtypes = ["bf16"]
sources = ["py"]
variant = "a"
constants = { R = 1, BN = 1024 }
grid = ["1", "1", "1"]

[tuned.measured]
gpu = "a"
driver = "1"
date = "d"
source = "py"
dtype = "bf16"
space = "gelu"
us = {}
tools = {}
code = {}
"""
BY_HAND = """# by hand

[[group]]
ops = ["gelu"]
dtypes = ["f32"]
constants = { R = 1, BN = 512 }
grid = ["1", "1", "1"]
"""


def found(*times: dict[str, float], why: str = "") -> Found:
    rows = [
        Timed("gelu", "all", f"M={number} N=8", source, f"gelu_{source}", us or None, us, us, "" if us else why)
        for number, by in enumerate(times)
        for source, us in by.items()
    ]
    return Found(Machine("cuda", "a GPU", "sm_90", "1"), "2026-01-01", "bf16", rows)


@pytest.mark.parametrize(
    ("times", "source"),
    [
        ([{"mlir": 100.0, "py": 99.5}], "mlir"),  # within 1 %: the first
        ([{"mlir": 100.0, "py": 98.0}], "py"),
        ([{"mlir": 100.0, "py": 98.0, "cute": 97.5}], "py"),
        ([{"mlir": 100.0, "cute": 50.0}, {"mlir": 100.0, "cute": 150.0}], "cute"),  # the geometric mean
        ([{"mlir": 100.0, "cute": 50.0}, {"mlir": 100.0}], None),  # cute lacks a shape
        ([{"py": 100.0, "cute": 50.0}], "cute"),
    ],
)
def test_a_later_source_has_to_be_faster(times: list[dict[str, float]], source: str | None) -> None:
    pick = decide(ALL, found(*times))
    assert (pick.source if pick else None) == source
    if pick:
        assert pick.where == ("M > 1",) and len(pick.us) == len(times)


@pytest.mark.parametrize(
    ("us", "op", "source", "slower"),
    [
        (100.2, "gelu", "py", ()),  # as fast, but for the noise
        (100.4, "gelu", "mlir", ("forward 1x64",)),
        (100.4, "linear", "py", ()),  # another op's
    ],
)
def test_a_pick_must_not_make_a_model_slower(us: float, op: str, source: str, slower: tuple[str, ...]) -> None:
    passes = [Passed(name, op, "all", "py", time, 100.0) for name, time in (("decode 1", 90.0), ("forward 1x64", us))]
    pick = decide(ALL, replace(found({"mlir": 100.0, "py": 50.0}), passes=passes))
    assert pick is not None and (pick.source, pick.slower_in) == (source, slower)


def test_a_source_of_its_own_is_taken_for_sizes_that_its_entry_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = EntrySpec(
        "gelu_cute", "gelu", "cute", "bf16", {"BM": 64}, where=("M * N < 1000", "M <= 2 * BM"), multiples={"N": 8}
    )
    monkeypatch.setattr(fastest_rows, "entries_of", lambda source: {"cute": [spec]}[source])
    pick = decide(ALL, found({"mlir": 100.0, "cute": 50.0}))
    assert pick is not None and pick.where == ("M > 1", "N % 8 == 0", "M * N < 1000", "M <= 2 * 64")


@pytest.fixture(autouse=True)
def no_conditions(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = EntrySpec("gelu_cute", "gelu", "cute", "bf16")
    monkeypatch.setattr(fastest_rows, "entries_of", lambda _: [spec])


def test_the_rows_stand_before_the_tuned_ones(tmp_path: Path) -> None:
    path = tmp_path / "sm_90.toml"
    path.write_text(BY_HAND + "\n" + HEADER + TUNED)
    before = load_table(path)
    for us in (50.0, 98.0):  # the second time in place of the first
        wrote, lines = write(found({"mlir": 100.0, "py": us}), [ALL], tmp_path)
        assert wrote == path and lines == [f"gelu all: py (M=0 N=8: mlir 100, py {us:g} us)"]
    table = load_table(path)
    assert table.fastest is not None and [pick.us for pick in table.fastest.picks] == [
        {"M=0 N=8": {"mlir": 100.0, "py": 98.0}}
    ]
    assert [row for _, row in table.rows] == [row for _, row in before.rows] and table.tuned == before.tuned
    text = path.read_text()
    assert text.startswith(BY_HAND) and text.endswith(HEADER + TUNED) and text.count("[fastest]") == 1


def test_a_row_that_passes_decided_on_is_kept_and_one_that_goes_is_named(tmp_path: Path) -> None:
    path, _ = write(found({"mlir": 100.0, "py": 50.0}), [ALL], tmp_path)
    row = path.read_text().partition("[[fastest.row]]")[2]
    by_hand = row.replace('"py"', '"mlir"') + 'by_passes = "a pass takes 2 us less"\n'
    others = [by_hand.replace('"all"', '"by hand"'), row.replace('"all"', '"old"')]
    path.write_text("[[fastest.row]]".join([path.read_text().partition("[[fastest.row]]")[0], by_hand, *others]))
    _, lines = write(found({"mlir": 100.0, "py": 40.0}), [ALL], tmp_path)
    assert lines == [
        "gelu by hand: mlir, kept: a pass takes 2 us less", "gelu all: mlir, kept: a pass takes 2 us less",
        "gelu old: its row is gone, for it was not measured",
    ]  # fmt: skip
    fastest = load_table(path).fastest
    assert fastest is not None
    assert [(pick.shape_class, pick.source) for pick in fastest.picks] == [("by hand", "mlir"), ("all", "mlir")]
    assert [pick.us for pick in fastest.picks] == [{"M=0 N=8": {"mlir": 100.0, "py": 50.0}}] * 2


def test_a_table_may_be_new(tmp_path: Path) -> None:
    path, _ = write(found({"mlir": 2.0, "py": 1.0}), [ALL], tmp_path)
    assert load_table(path).fastest is not None


@pytest.mark.parametrize(
    ("measured", "why"),
    [
        (found({"mlir": 2.0, "py": 0.0}, why="wrong: by 3"), "py/gelu_py at M=0 N=8: wrong: by 3"),
        (found({"mlir": 2.0}), "no class was measured for two sources"),
        (replace(found({"mlir": 2.0, "py": 1.0}), machine=Machine("cpu", "the CPU", "cpu", "")), "nothing about a GPU"),
    ],
)
def test_nothing_is_written_of_what_is_not_measured(tmp_path: Path, measured: Found, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        write(measured, [ALL], tmp_path)
    assert not list(tmp_path.iterdir())
