"""The tables of entries: rows, groups, targets, policies, and what the committed ones give."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolchain.contract.entries import DEFAULT, Tables, committed, entries_of, load_table, tuned_symbols
from toolchain.contract.entry import EntrySpec
from toolchain.contract.op import ops
from toolchain.contract.targets import targets
from toolchain.errors import UsageError

PORTABLE = """\
[policy]
sms = 132
chunk_bytes = 1
min_chunks = 3
split_k = 4
split_k_rows = 64
panel_width = 768
panel_rows = 0
spans = [512, 128]
spans_per_sm = 2.7
unsplit_head = 64

[[group]]
ops = ["gelu"]
dtypes = ["f32"]
grid = ["cdiv(N, BN)", "M", "1"]

[[group.entry]]
constants = { BN = 512 }
where = ["N > 1024"]

[[group.entry]]
variant = "any"
constants = { BN = 1024 }
"""
TUNED = """\
[[tuned]]
op = "gelu"
class = "wide"
dtypes = ["f16", "bf16"]
sources = ["py", "mlir"]
variant = "sm_90_wide"
constants = { BN = 512 }
hints = { occupancy = 2 }
where = ["N > 1024"]
grid = ["cdiv(N, BN)", "M", "1"]

[tuned.measured]
gpu = "NVIDIA H200"
driver = "580.1"
date = "2026-01-02"
source = "py"
dtype = "bf16"
space = "gelu"
us = { "M=8 N=3072" = 2.5 }
tools = { tileiras = "t" }
code = { py = "p", mlir = "m" }
"""
PREDICTED = (
    TUNED.partition("[tuned.measured]")[0]
    + """\
[tuned.predicted]
gpu = "NVIDIA A100"
rates = "108 multiprocessors"
space = "gelu"
us = { "M=8 N=3072" = 2.5 }
"""
)
Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a folder of tables: the portable one, and one with a tuned row in which `old` is replaced by `new`."""

    def run(old: str = "", new: str = "", name: str = "sm_90", text: str = TUNED) -> Path:
        assert old in text
        folder = tmp_path / "entries"
        folder.mkdir(exist_ok=True)
        (folder / "portable.toml").write_text(PORTABLE)
        (folder / f"{name}.toml").write_text(text.replace(old, new))
        return folder

    return run


def test_what_was_measured_stays_known_where_only_the_other_entry_is_kept(write: Write) -> None:
    folder = write('where = ["N > 1024"]', 'sizes = { N = 2048 }\nonly = "any"\nwhere = ["N > 1024"]')
    (row,) = Tables(folder).tuned
    assert [spec.symbol for spec in row.entries("py")] == ["gelu_sm_90_wide_f16", "gelu_sm_90_wide_bf16"]
    assert row.measured_entry("py").symbol == "gelu_sm_90_wide_N2048_bf16"
    with pytest.raises(UsageError, match="only is 'both', not one of sized, any"):
        Tables(write('where = ["N > 1024"]', 'only = "both"\nwhere = ["N > 1024"]')).entries("py")


def test_a_target_comes_before_the_portable_entries_and_tuned_rows_before_all(write: Write) -> None:
    written = '[[group]]\nops = ["gelu"]\ndtypes = ["f32"]\nvariant = "written"\ngrid = ["M", "1", "1"]\n\n'
    tables = Tables(write(text=written + TUNED))
    wide, gelu = ["gelu_sm_90_wide_f16", "gelu_sm_90_wide_bf16"], ["gelu_512_f32", "gelu_any_f32"]
    assert [s.symbol for s in tables.entries("py")] == [*wide, "gelu_written_f32", *gelu]
    assert [s.targets for s in tables.entries("mlir")] == [("sm_90",)] * 3 + [()] * 2
    tables = Tables(write('sources = ["py", "mlir"]', 'sources = ["py"]'))
    assert [s.symbol for s in tables.entries("mlir")] == gelu


def test_entries_of_a_group_share_what_it_says(write: Write) -> None:
    first, second = (s for s in Tables(write(text="")).entries("py"))
    assert (first.grid, first.where, first.constants) == (("cdiv(N, BN)", "M", "1"), ("N > 1024",), {"BN": 512})
    assert (second.grid, second.where, second.constants) == (first.grid, (), {"BN": 1024})


def test_a_tuned_row(write: Write) -> None:
    (row,) = Tables(write()).tuned
    assert (row.target, row.op, row.shape_class, row.number) == ("sm_90", "gelu", "wide", 1)
    assert row.name == "gelu f16, bf16 wide for sm_90 (py, mlir)"
    spec = row.entries("py")[1]
    assert (spec.source, spec.targets, spec.where) == ("py", ("sm_90",), ("N > 1024",))
    assert (spec.constants, spec.hints) == ({"BN": 512}, {"sm_90": {"occupancy": 2}})
    assert row.measured_entry("mlir").symbol == "gelu_sm_90_wide_bf16"
    (other,) = Tables(write('dtypes = ["f16", "bf16"]', 'dtypes = ["f16"]')).tuned
    assert other.measured_entry("py") == spec, "in the dtype that was measured, be it another row's"


def test_a_predicted_row_is_an_entry_that_says_so(write: Write) -> None:
    (row,), (measured,) = Tables(write(text=PREDICTED)).tuned, Tables(write()).tuned
    assert (row.predicted, measured.predicted) == (True, False)
    assert row.name == f"{measured.name}, predicted"
    assert row.entries("py") == measured.entries("py")
    for table, said in ((f"{TUNED}{PREDICTED.partition(chr(10) * 2)[2]}", "measured and predicted"),
                        (TUNED.partition("[tuned.")[0], "neither measured nor predicted")):  # fmt: skip
        with pytest.raises(UsageError, match=rf"sm_90\.toml: tuned 1: it has {said}\n  next: tilestack tune writes"):
            Tables(write(text=table)).entries("py")
    with pytest.raises(UsageError, match=r"tuned 1: predicted: unknown driver"):
        Tables(write('rates = "108', 'driver = "1"\nrates = "108', text=PREDICTED)).entries("py")


def test_a_symbol_that_is_there_twice(write: Write) -> None:
    folder = write(text=TUNED * 2)
    with pytest.raises(UsageError, match=r"py has two entries gelu_sm_90_wide_f16\n  next: give one of them another"):
        Tables(folder).entries("py")


def test_without_a_portable_table_there_are_no_entries(write: Write) -> None:
    folder = write()
    (folder / "portable.toml").unlink()
    assert len(Tables(folder).tuned) == 1
    with pytest.raises(UsageError, match=r"there is no portable\.toml"):
        Tables(folder).entries("py")
    with pytest.raises(UsageError, match=r"portable\.toml has no \[policy\]"):
        _ = Tables(folder).policies
    assert load_table(folder / "sm_80.toml").rows == (), "no file is an empty table"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[[tuned]]", "[[tuned", r"sm_90\.toml:1:8: not valid TOML: "),
        ("[[tuned]]", "[tuned]", r"sm_90\.toml: tuned is .*, not a list of tables"),
        ("[[tuned]]", "x = 1\n[[tuned]]", r"sm_90\.toml: unknown x\n  next: it takes policy"),
        ('class = "wide"', "", r"sm_90\.toml: tuned 1: it has no class"),
        ('class = "wide"', "class = 3", r"tuned 1: class is 3, not a text"),
        ("BN = 512", "BN = 5.5", r"tuned 1: constants is .*, not a table of integers"),
        ("occupancy = 2", "occupancy = true", r"tuned 1 \(gelu wide\): hints is .*, not a table of tables of integers"),
        ('where = ["N > 1024"]', 'if = ["N"]', r"tuned 1: unknown if\n  next: it takes op, class"),
        ('where = ["N > 1024"]', 'where = ["Q > 1"]', r"tuned 1 \(gelu wide\): gelu_sm_90_wide_f16: 'Q > 1' uses unk"),
        ('op = "gelu"', 'op = "nope"', r"tuned 1 \(nope wide\): no op nope"),
        ('"M", "1"]', '"1"]', r"tuned 1 \(gelu wide\): grid has 2 expressions"),
        ('sources = ["py", "mlir"]', "sources = []", r"tuned 1 \(gelu wide\): it names no source"),
        ('gpu = "NVIDIA H200"', "", r"tuned 1: measured: it has no gpu"),
        ('"M=8 N=3072" = 2.5', '"M=8" = "fast"', r"measured: us is .*, not a table of times in microseconds"),
    ],
)
def test_a_tuned_row_that_is_wrong_says_where(write: Write, old: str, new: str, said: str) -> None:
    folder = write(old, new)
    with pytest.raises(UsageError, match=said):
        Tables(folder).entries("py")


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ('ops = ["gelu"]\ndtypes = ["f32"]\ngrid = ["1", "1", "1"]\nwere = ["N > 64"]', "group 2: unknown were"),
        ('ops = ["gelu"]\ngrid = ["1", "1", "1"]', "group 2: it has no dtypes"),
        ('ops = ["gelu"]\ndtypes = "f32"\ngrid = ["1", "1", "1"]', "dtypes is 'f32', not a list of texts"),
        ('ops = ["gelu"]\ndtypes = ["f32"]\ngrid = ["1", "1"]', "group 2: grid has 2 expressions, not three"),
        ('ops = ["geru"]\ndtypes = ["f32"]\ngrid = ["1", "1", "1"]', "group 2: no op geru"),
        ('ops = []\ndtypes = ["f32"]\ngrid = ["1", "1", "1"]', "group 2: it is for no op"),
        (
            'ops = ["gelu"]\ngrid = ["1", "1", "1"]\n[[group.entry]]\ndtypes = ["f32"]\n[[group.entry]]',
            "group 2, entry 2: it has no dtypes",
        ),
        ('ops = ["gelu"]\ndtypes = ["f8"]\ngrid = ["1", "1", "1"]', r"group 2 \(gelu\): gelu_f8: dtype 'f8'"),
    ],
)
def test_a_row_of_a_group_that_is_wrong_is_named(write: Write, row: str, said: str) -> None:
    good = '[[group]]\nops = ["gelu"]\ndtypes = ["f32"]\nvariant = "x"\ngrid = ["1", "1", "1"]\n'
    folder = write(text=f"{good}[[group]]\n{row}\n")
    with pytest.raises(UsageError, match=rf"sm_90\.toml: {said}" if said.startswith("group") else said):
        Tables(folder).entries("py")


def test_a_file_of_no_target(write: Write, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"sm_7\.toml: there is no target sm_7"):
        Tables(write(name="sm_7")).entries("py")
    (tmp_path / "entries" / "sm_7.toml").unlink()
    (folder := tmp_path / "entries").joinpath("portable.toml").write_text(PORTABLE + TUNED)
    with pytest.raises(UsageError, match=r"portable\.toml: a tuned row is for one target"):
        Tables(folder).entries("py")


def test_a_table_that_was_changed_is_read_anew(write: Write) -> None:
    path = write() / "sm_90.toml"
    assert load_table(path).tuned[0].table["hints"] == {"occupancy": 2}
    write("occupancy = 2", "occupancy = 4")
    assert load_table(path).tuned[0].table["hints"] == {"occupancy": 4}


def test_a_policy_is_its_targets_own(write: Write) -> None:
    assert set(Tables(write()).policies) == {DEFAULT}
    own = PORTABLE.partition("[[group]]")[0].replace("sms = 132", "sms = 78")
    tables = Tables(write(text=own + TUNED))
    assert [tables.policies[name].sms for name in (DEFAULT, "sm_90")] == [132, 78]


# What is committed


@pytest.mark.parametrize("source", ["mlir", "py"])
def test_every_op_has_an_entry_that_takes_any_address_on_every_target(source: str) -> None:
    """Not every target has 8-bit floats: what takes them has such an entry for one that has. A whole step has other ops
    to stand in for it."""
    needed = {name for name, op in ops().items() if not op.whole}
    free = [spec for spec in entries_of(source) if not (spec.aligned or spec.contiguous)]
    floats = {name for name, op in ops().items() if any(p.dtype == "f8E4M3FN" for p in op.params)}
    assert {spec.op for spec in free if spec.runs_on("sm_80")} == needed - floats
    assert {spec.op for spec in free if spec.runs_on("sm_90")} == needed


def test_both_sources_have_the_same_entries() -> None:
    """But for two: cuTile's code spills with the registers that they have."""

    def without_source(spec: EntrySpec) -> dict[str, Any]:
        return {**spec.to_json(), "source": ""}

    alone = {f"grouped_decode_attention_f8_by_element_D64_{span}_bf16" for span in (128, 512)}
    mlir = entries_of("mlir")
    assert alone <= {spec.symbol for spec in mlir}
    shared = [without_source(spec) for spec in mlir if spec.symbol not in alone]
    assert shared == list(map(without_source, entries_of("py")))


def test_the_portable_entries_are_few() -> None:
    """Without a GPU they are all that is compiled, for four targets: docs/add-a-kernel.md says what belongs there."""
    portable = [spec for spec in entries_of("mlir") if not spec.targets]
    assert len(portable) <= 440


def test_no_portable_entry_depends_on_a_policy() -> None:
    assert [spec.symbol for spec in entries_of("mlir") if spec.cost is not None and not spec.targets] == []


def test_only_known_targets_have_policies() -> None:
    assert committed().policies.keys() <= {DEFAULT, *targets()}


def test_tuned_entries_are_told_from_those_that_were_written() -> None:
    tuned = tuned_symbols("mlir")
    assert {"linear_sm_90_m512_N2304_bf16", "linear_sm_90_m1536_bf16"} <= tuned
    assert "linear_128x384x64_bf16" not in tuned
