"""`nox -s trends`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ci.trends.__main__ import keep, main

Capture = pytest.CaptureFixture[str]


def test_the_page_and_the_summary_are_written_and_steps_are_said(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    page, summary = tmp_path / "trends/index.html", tmp_path / "summary.md"
    assert main([str(folder), "--output", str(page), "--summary", str(summary)]) == 0
    out = capsys.readouterr().out
    assert "8 slower, 4 faster in 10 nights, 2026-11-10 to 2026-11-19" in out
    assert "  tilestack bisect " in out and "driver 580.159.04 to 590.44.01" in out
    assert page.read_text().startswith("<!doctype html>")
    lines = summary.read_text().splitlines()
    assert [line.split(" | ")[1] for line in lines if line.startswith("| 2026")] == [
        "layernorm bf16 M=1024 N=1024 mlir", "layernorm bf16 M=4096 N=1024 mlir"
    ]  # fmt: skip


def test_a_quiet_night_says_so(folder: Path, tmp_path: Path) -> None:
    quiet = [str(folder / name) for name in ("00", "01")]
    assert main([*quiet, "--output", str(tmp_path / "p.html"), "--summary", str(tmp_path / "s.md")]) == 0
    assert "No step in the last two nights." in (tmp_path / "s.md").read_text()


def test_files_are_kept_once_by_day_and_then_shown(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    kept = tmp_path / "kept"
    for name in ("00", "01", "01"):
        assert main([str(folder / name), "--keep", str(kept), "--output", str(tmp_path / "p.html")]) == 0
    assert "in 2 nights, 2026-11-10 to 2026-11-11" in capsys.readouterr().out.splitlines()[-2]
    assert sorted(path.name for path in kept.iterdir()) == ["2026-11-10", "2026-11-11"]
    assert len(list((kept / "2026-11-11").iterdir())) == 2
    assert {path.name.rpartition("-")[0] for path in kept.rglob("*.json")} == {
        "nvidia-h100-80gb-hbm3-matrix", "nvidia-h200-matrix"
    }  # fmt: skip


def test_verdicts_beside_results_are_not_kept(folder: Path, tmp_path: Path) -> None:
    mixed = Path(shutil.copytree(folder / "00", tmp_path / "mixed"))
    (mixed / "gate").mkdir()
    (mixed / "gate/verdicts.json").write_text("{}")
    assert len(keep([mixed], tmp_path / "kept")) == 2


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ([], "no night is named"), (["DIR"], "no night in it"), (["DIR/a.json"], "no such file"),
        (["DIR", "--last", "-1"], "--last -1 is no number of nights"),
        (["--history", "DIR/a.json"], "a.json"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_a_line(words: list[str], why: str, tmp_path: Path, capsys: Capture) -> None:
    assert main([word.replace("DIR", str(tmp_path)) for word in words]) == 2
    assert why in capsys.readouterr().err
