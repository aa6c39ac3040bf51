from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ci.trends.nights import Cell, Night, history, nights, subjects, with_history
from tests.unit.conftest import WHO
from toolchain.errors import UsageError
from toolchain.knobs import ROOT

from .synthetic import H100, H200, commit

ON = (H200, "sm_90")


def test_nights_are_in_order_with_driver_tools_and_times(ten: list[Night]) -> None:
    assert [night.day for night in ten] == [f"2026-11-{day}" for day in range(10, 20)]
    assert [night.commit for night in ten] == [commit(at) for at in range(10)]
    assert (H100, "sm_90") not in ten[5].by and (H100, "sm_90") in ten[4].by
    last = ten[9].by[ON]
    assert (last.driver, last.tools["ptxas"]) == ("590.44.01", "13.5.37")
    time = last.times[Cell("gelu bf16 M=1024 N=1024", "py")]
    assert time.low < time.us < time.high and time.entries == ("gelu_bf16",)
    assert len(last.kernels[("py", "gelu_bf16")]) == 64


def test_only_the_last_nights_are_taken(folder: Path) -> None:
    assert [night.day for night in nights([folder], 3)] == ["2026-11-17", "2026-11-18", "2026-11-19"]


def test_the_benchmarks_results_of_this_repository_are_read() -> None:
    (one,) = nights([ROOT / "benchmarks/results/nvidia-h200.json"])
    measured = one.by[ON]
    assert measured.times[Cell("decode gpt2 B=1 P=1024 bf16", "mlir")].us > 10
    assert measured.tools["tileiras"] and measured.driver and one.commit


def test_files_of_one_night_are_put_together() -> None:
    results = ROOT / "benchmarks/results"
    paths = [results / "nvidia-h200.json", results / "nvidia-h200-larger.json"]
    apart = [nights([path])[0] for path in paths]
    assert apart[0].day == apart[1].day
    together = nights(paths)
    if apart[0].commit == apart[1].commit:
        assert len(together[0].by[ON].times) == sum(len(each.by[ON].times) for each in apart)
    else:
        assert len(together) == 2


def damaged(folder: Path, change: Any) -> Path:
    document = json.loads((folder / "00/results-1.json").read_text())
    change(document)
    return _written(folder, json.dumps(document))


def _written(folder: Path, text: str) -> Path:
    path = folder.parent / "one.json"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda d: d.update(format=3), "results of format 3, this version reads 1 and 2"),
        (lambda d: d["origin"].update(commit=""), "does not say its commit"),
        (lambda d: d["origin"].update(date="yesterday"), "does not say its date"),
        (lambda d: d.update(rows=[{"cell": "a"}]), "one.json"),
        (lambda d: [row.update(time_us=None) for row in d["rows"]], "no time of a GPU in 1 files"),
        (lambda d: [row.update(target="cpu") for row in d["rows"]], "no time of a GPU"),
        (lambda d: d.pop("rows"), "one.json"),
    ],
)
def test_what_is_no_night_is_named(folder: Path, change: Any, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        nights([damaged(folder, change)])


@pytest.mark.parametrize("text", ["", "{", "[]", '{"kind": "benchmarks"}', "null"])
def test_a_damaged_file_is_named(folder: Path, text: str) -> None:
    with pytest.raises(UsageError, match=r"one\.json"):
        nights([_written(folder, text)])


def test_a_folder_without_a_night_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no night in it"):
        nights([tmp_path])
    with pytest.raises(UsageError, match="no such file"):
        nights([tmp_path / "none.json"])


def test_every_version_of_a_committed_file_is_a_night(checkout: Path, folder: Path, tmp_path: Path) -> None:
    for at, name in enumerate(("old.json", "old.json", "new.json")):
        if name == "new.json":
            subprocess.run(["git", "mv", "old.json", name], cwd=checkout, check=True)
        (checkout / name).write_text((folder / f"0{at}/results-1.json").read_text())
        subprocess.run(["git", "add", "-A"], cwd=checkout, check=True)
        subprocess.run(["git", *WHO, "commit", "-q", "-m", f"night {at}"], cwd=checkout, check=True)
    assert [night.commit for night in with_history([], [checkout / "new.json"], 0)] == [commit(at) for at in range(3)]
    assert [subject for _, subject in subjects(checkout, "HEAD~2", "HEAD") or ()] == ["night 2", "night 1"]
    assert subjects(checkout, "HEAD~2", "0" * 40) is None
    with pytest.raises(UsageError, match="git knows no version"):
        history(checkout / "none.json", tmp_path)
