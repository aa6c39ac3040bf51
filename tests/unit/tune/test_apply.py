"""Writing winners to entries/<target>.toml: the rows that are written, replaced and kept."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from toolchain import knobs
from toolchain.compiling.tuned import code_hash
from toolchain.contract.entries import Tables, TunedRow, load_table
from toolchain.contract.entry import EntrySpec
from toolchain.errors import UsageError
from tune.apply import HEADER, Applied, apply, render
from tune.catalogue import Catalogue
from tune.measured import Launched, Measured
from tune.spaces import Spaces, load_spaces

from .conftest import H200, OWN, Fill, candidate, compiled_to

Keep = Callable[..., Applied]
MEASURED = code_hash(b"bytecode", "a")
TIMES = {OWN: [9.0, 9.0, 9.0], "a": [1.0, 2.0, 5.0], "b": [3.0, 3.123456, 4.0], "c": [4.0, 4.0]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "tuned"


@pytest.fixture
def keep(catalogue: Catalogue, spaces: Spaces, launched: Launched, folder: Path) -> Keep:
    def run(
        measured: Measured,
        catalogue: Catalogue = catalogue,
        launched: Launched = launched,
        classes: str = "",
        **options: Any,
    ) -> Applied:
        kept = {"code_of": code_of, "fault_of": lambda _: "", "folder": folder}
        contests = catalogue.only(classes=re.compile(classes)).contests
        return apply(catalogue, contests, measured, spaces, launched, **(kept | options))

    return run


def code_of(spec: EntrySpec) -> bytes:
    return f"{spec.source} {spec.op} {spec.constants} now".encode()


def rows(folder: Path) -> dict[tuple[str, str, str], TunedRow]:
    """The rows by class, dtypes and sources."""
    return {(r.shape_class, ",".join(r.table["dtypes"]), ",".join(r.sources)): r for r in Tables(folder).tuned}


def test_a_winner_is_an_entry_with_what_was_measured(keep: Keep, fill: Fill, folder: Path) -> None:
    done = keep(fill(TIMES))
    assert done.changed and done.path == folder / "sm_90.toml"
    assert done.lines == [
        "gelu bf16 few (py), 3 variants: a 1, 2 us, own 9, 9",
        "gelu bf16 many (py), 2 variants: b 4 us, own 9",
    ]
    row = rows(folder)["few", "bf16", "py"]
    (spec,) = row.entries("py")
    assert (spec.symbol, spec.targets, spec.where) == ("gelu_sm_90_few_bf16", ("sm_90",), ("M <= 16",))
    assert (spec.constants, spec.hints, spec.grid) == (
        {"BN": 64}, {"sm_90": {"occupancy": 2}}, ("cdiv(N, BN)", "M", "1"),
    )  # fmt: skip
    assert row.table["measured"] == {
        "gpu": "NVIDIA H200", "driver": "580.1", "date": "2026-01-02", "source": "py", "dtype": "bf16", "space": "gelu",
        "us": {"M=1 N=256": 1.0, "M=16 N=256": 2.0},
        "runner_up": "b", "runner_up_us": {"M=1 N=256": 3.0, "M=16 N=256": 3.123},
        "own_us": {"M=1 N=256": 9.0, "M=16 N=256": 9.0},
        "tools": {"tileiras": "t" * 64}, "code": {"py": MEASURED},
    }  # fmt: skip


def test_a_winner_with_sizes_compiled_in_gives_an_entry_for_others_too(
    keep: Keep, fill: Fill, folder: Path, catalogue: Catalogue
) -> None:
    fixed = tuple(replace(c, spec=replace(c.spec, sizes={"N": 256})) for c in catalogue.candidates)
    keep(fill(TIMES), replace(catalogue, candidates=fixed))
    found = rows(folder)["few", "bf16", "py"].entries("py")
    assert [(spec.symbol, spec.sizes) for spec in found] == [
        ("gelu_sm_90_few_N256_bf16", {"N": 256}), ("gelu_sm_90_few_bf16", {}),
    ]  # fmt: skip


def test_the_same_measurements_give_the_same_text(keep: Keep, fill: Fill, folder: Path) -> None:
    keep(fill(TIMES))
    first = (folder / "sm_90.toml").read_text()
    assert not keep(fill(dict(reversed(TIMES.items())))).changed
    (folder / "sm_90.toml").unlink()
    keep(fill(TIMES))
    assert (folder / "sm_90.toml").read_text() == first
    assert first.index('class = "few"') < first.index('class = "many"'), "in the order of the spaces"


def test_other_rows_stay_as_they_are(keep: Keep, fill: Fill, folder: Path) -> None:
    keep(fill(TIMES))
    before = rows(folder)
    keep(fill({**TIMES, "b": [None, None, 8.0]}), classes="many")
    after = rows(folder)
    assert after["few", "bf16", "py"].table == before["few", "bf16", "py"].table
    assert after["many", "bf16", "py"].table["measured"]["us"] == {"M=64 N=256": 5.0}, "a is the fastest now"


def predicted(folder: Path, *dtypes: str) -> None:
    """Make the written rows predictions for these dtypes and both sources, as `tilestack tune predict` writes them."""
    path = folder / "sm_90.toml"
    before = path.read_text()
    named = before.replace('["bf16"]', str([*dtypes]).replace("'", '"')).replace('["py"]', '["mlir", "py"]')
    below = '[tuned.predicted]\ngpu = "an H200"\nrates = "its rates"\nspace = "gelu"\nus = { "M=1 N=256" = 1.5 }\n'
    path.write_text(re.sub(r"\[tuned\.measured\]\n(?:.+\n)+", below, named))
    assert all(row.predicted for row in Tables(folder).tuned)


def test_what_is_measured_replaces_what_was_predicted_for_its_class(keep: Keep, fill: Fill, folder: Path) -> None:
    keep(fill(TIMES))
    predicted(folder, "bf16")
    keep(fill(TIMES), classes="few", also_sources=["mlir"])
    found = rows(folder)
    assert {key: row.predicted for key, row in found.items()} == {
        ("few", "bf16", "mlir,py"): False, ("many", "bf16", "mlir,py"): True,
    }  # fmt: skip
    assert found["few", "bf16", "mlir,py"].table["measured"]["us"]["M=1 N=256"] == 1.0
    text = (folder / "sm_90.toml").read_text()
    assert text.count("[tuned.predicted]") == 1 and not keep(fill(TIMES), classes="few", also_sources=["mlir"]).changed


def test_a_prediction_stays_for_the_sources_and_dtypes_that_were_not_measured(
    keep: Keep, fill: Fill, folder: Path
) -> None:
    keep(fill(TIMES))
    predicted(folder, "f16", "bf16")
    keep(fill(TIMES), classes="few")
    assert {key: row.predicted for key, row in rows(folder).items() if key[0] == "few"} == {
        ("few", "f16,bf16", "mlir"): True, ("few", "f16", "py"): True, ("few", "bf16", "py"): False,
    }  # fmt: skip


def test_a_prediction_goes_where_the_sources_own_entry_was_measured_to_be_faster(
    keep: Keep, fill: Fill, folder: Path
) -> None:
    keep(fill(TIMES))
    predicted(folder, "bf16")
    keep(fill({**TIMES, OWN: [0.5, 0.5, 9.0]}), classes="few", also_sources=["mlir"])
    assert list(rows(folder)) == [("many", "bf16", "mlir,py")]


def test_a_class_that_is_in_no_space_any_more_goes(keep: Keep, fill: Fill, folder: Path) -> None:
    keep(fill(TIMES))
    text = (folder / "sm_90.toml").read_text()
    (folder / "sm_90.toml").write_text(text.replace('"few"', '"gone"').replace("_few", "_gone"))
    done = keep(fill(TIMES), classes="many", drop=False)
    assert [key[0] for key in rows(folder)] == ["many", "gone"], "trial spaces say nothing of it"
    done = keep(fill(TIMES), classes="many")
    assert [key[0] for key in rows(folder)] == ["many"], "what it takes may be another class's now"
    assert done.lines[-1] == "gelu: no class gone any more: dropped"


def test_a_class_of_the_search_itself_never_goes(
    keep: Keep, fill: Fill, folder: Path, catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This happens if trial spaces were compiled, and are not given again when their winners are written."""
    monkeypatch.setattr(Spaces, "classes_of", lambda *_: set[str]())
    keep(fill(TIMES), classes="few")
    keep(fill(TIMES), classes="many")
    assert [key[0] for key in rows(folder)] == ["few", "many"]
    done = keep(fill(TIMES), replace(catalogue, contests=catalogue.contests[1:]))
    assert done.lines[-1] == "gelu: no class few any more: dropped"


def test_where_nothing_is_faster_the_sources_own_entries_stay(keep: Keep, fill: Fill, folder: Path) -> None:
    keep(fill(TIMES))
    done = keep(fill({**TIMES, OWN: [0.5, 0.5, 9.0]}))
    assert [key[0] for key in rows(folder)] == ["many"]
    assert "a 1, 2 us, own 0.5, 0.5: the source's own entries stay" in done.lines[0]


def test_a_variant_with_a_fault_is_passed_over_for_the_next_best(keep: Keep, fill: Fill, folder: Path) -> None:
    def fault_of(row: Mapping[str, Any]) -> str:
        return "py/it spills" if row["measured"]["us"].get("M=1 N=256") == 1.0 and row["dtypes"] == ["f16"] else ""

    done = keep(fill(TIMES), fault_of=fault_of, also_dtypes=["f16"])
    assert done.lines[:2] == [
        "gelu bf16 few (py): a is passed over: py/it spills",
        "gelu bf16 few (py), 2 variants: b 3, 3.123 us, own 9, 9",
    ]
    assert {key[:2] for key in rows(folder)} == {("few", "f16,bf16"), ("many", "f16,bf16")}
    assert rows(folder)["few", "f16,bf16", "py"].table["measured"]["us"]["M=1 N=256"] == 3.0


def test_if_no_variant_is_without_a_fault_the_sources_own_entries_stay(keep: Keep, fill: Fill, folder: Path) -> None:
    keep(fill(TIMES))
    done = keep(fill(TIMES), fault_of=lambda row: "is serialised" if row["class"] == "few" else "")
    assert done.lines[-2] == "gelu bf16 few (py): no variant is left: the source's own entries stay"
    assert [line.split(": ")[1] for line in done.lines[:3]] == [
        "a is passed over",
        "b is passed over",
        "c is passed over",
    ]
    assert [key[0] for key in rows(folder)] == ["many"]
    assert keep(fill(TIMES), fault_of=lambda _: "is serialised").changed
    assert rows(folder) == {}, "and a file without rows is one"


def test_a_class_that_should_be_parted_is_told(keep: Keep, fill: Fill) -> None:
    done = keep(fill({**TIMES, OWN: [9.0, 1.5, 9.0]}))
    assert done.lines[0].endswith("a 1, 2 us, own 9, 1.5: slower on M=16 N=256, so part the class")


def test_nothing_is_dropped_for_a_search_that_failed_or_is_not_done(keep: Keep, fill: Fill, folder: Path) -> None:
    keep(fill(TIMES))
    before = (folder / "sm_90.toml").read_text()
    failed = keep(fill({OWN: [9.0, 9.0], **{s: ["wrong", None] for s in "abc"}}), classes="few")
    assert failed.lines == ["gelu bf16 few (py), 3 variants: left as it is, none was right on all shapes"]
    failed = keep(fill({OWN: ["error", "error", 9.0], **{s: ["error", None, None] for s in "abc"}}))
    assert not failed.changed and (folder / "sm_90.toml").read_text() == before
    assert failed.lines == [
        "gelu bf16 few (py): left as it is, 2 measurements are missing",
        "gelu bf16 many (py): left as it is, 2 measurements are missing",
    ]


def test_times_of_other_code_are_none(keep: Keep, fill: Fill, folder: Path, tmp_path: Path) -> None:
    measured = fill(TIMES)
    done = keep(measured, launched=compiled_to(tmp_path, "another cubin"))
    assert done.lines == [
        "gelu bf16 few (py): left as it is, 6 measurements are missing",
        "gelu bf16 many (py): left as it is, 2 measurements are missing",
    ]
    assert rows(folder) == {}


def test_a_row_may_be_for_a_source_and_a_dtype_that_were_not_measured(keep: Keep, fill: Fill, folder: Path) -> None:
    keep(fill(TIMES), also_sources=["mlir"], also_dtypes=["f16"])
    found = rows(folder)
    assert list(found) == [("few", "f16,bf16", "mlir,py"), ("many", "f16,bf16", "mlir,py")]
    row = found["few", "f16,bf16", "mlir,py"]
    assert [spec.symbol for spec in row.entries("mlir")] == ["gelu_sm_90_few_f16", "gelu_sm_90_few_bf16"]
    other = code_hash(code_of(row.measured_entry("mlir")), "gelu_sm_90_few_bf16")
    assert row.table["measured"]["code"] == {"mlir": other, "py": MEASURED}
    assert (row.table["measured"]["source"], row.table["measured"]["dtype"]) == ("py", "bf16")
    # tuned again for one of the two alone, the other keeps what it has
    keep(fill({**TIMES, "c": [0.5, 0.5]}))
    found = rows(folder)
    assert found["few", "f16,bf16", "mlir"].table == {**row.table, "sources": ["mlir"]}
    assert found["few", "f16", "py"].table == {**row.table, "sources": ["py"], "dtypes": ["f16"]}
    assert found["few", "bf16", "py"].table["measured"]["us"]["M=1 N=256"] == 0.5


def test_what_is_written_by_hand_stays(keep: Keep, fill: Fill, folder: Path) -> None:
    by_hand = '# Mine.\n\n[[group]]\nops = ["gelu"]  # and [[tuned]] not\ndtypes = ["f32"]\ngrid = ["M", "1", "1"]\n'
    folder.mkdir()
    (folder / "sm_90.toml").write_text(by_hand)
    keep(fill(TIMES))
    first = (folder / "sm_90.toml").read_text()
    assert first.startswith(f"{by_hand}\n{HEADER}[[tuned]]\n")
    assert not keep(fill(TIMES)).changed
    assert keep(fill(TIMES), fault_of=lambda _: "is serialised").changed
    assert (folder / "sm_90.toml").read_text() == f"{by_hand}\n{HEADER}", "without rows"
    keep(fill(TIMES))
    assert (folder / "sm_90.toml").read_text() == first


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_100", "sm_120"])
def test_the_committed_rows_are_written_as_they_would_be(target: str) -> None:
    path = knobs.ENTRIES / f"{target}.toml"
    tables = [row.table for row in load_table(path).tuned]
    assert render(path.read_text(), tables, load_spaces()) == path.read_text()


def test_a_row_that_is_shared_is_parted(keep: Keep, fill: Fill, folder: Path) -> None:
    keep(fill(TIMES), also_sources=["mlir"])
    path = folder / "sm_90.toml"
    path.write_text(path.read_text().replace('dtypes = ["bf16"]', 'dtypes = ["f16", "bf16"]'))
    keep(fill({**TIMES, "c": [0.5, 0.5]}))
    assert {key for key in rows(folder) if key[0] == "few"} == {
        ("few", "f16,bf16", "mlir"), ("few", "f16", "py"), ("few", "bf16", "py"),
    }  # fmt: skip


def test_what_says_nothing_of_the_target_is_refused(keep: Keep, fill: Fill, tmp_path: Path) -> None:
    measured = fill(TIMES)
    measured.machine = replace(H200, kind="cpu", gpu="cpu interpreter", target="cpu")
    with pytest.raises(UsageError, match=r"was measured on cpu interpreter \(cpu\), which says nothing about sm_90"):
        keep(measured)
    with pytest.raises(UsageError, match="nothing is measured"):
        keep(Measured(tmp_path / "none.json", "sm_90"))


def test_of_several_sources_none_speaks_for_others(keep: Keep, fill: Fill, catalogue: Catalogue) -> None:
    both = replace(catalogue, candidates=(*catalogue.candidates, candidate("a", source="mlir")))
    with pytest.raises(UsageError, match="several sources were measured"):
        keep(fill(TIMES), both, also_sources=["mlir"])


def test_a_file_that_was_damaged_is_not_overwritten(keep: Keep, fill: Fill, folder: Path) -> None:
    folder.mkdir()
    (folder / "sm_90.toml").write_text("[[tuned]]\n")
    with pytest.raises(UsageError, match=r"sm_90\.toml: tuned 1: it has no op"):
        keep(fill(TIMES))
    assert (folder / "sm_90.toml").read_text() == "[[tuned]]\n"
