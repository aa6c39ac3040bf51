"""`tilestack record`: what launches leave, run again by the interpreter; and what cannot be recorded."""

from __future__ import annotations

import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from benchmarks.report.result import Results
from ci.workflows.repository import git
from conformance.results.result import Results as Checked
from tilestack.__main__ import main
from tilestack.own.recording import Recording
from tilestack.own.timing import named

TABLE = """
[[op]]
name = "rows"
module = "own_rows"
inputs = { x = ["M", "N"] }
outputs = { out = ["M", "N"] }
sizes = [{ M = 3, N = 65 }]
timed = [{ M = 4, N = 64 }]
dtypes = ["f32"]
f32_ulps = 8
why = "a sum of 64 squares and a quotient in f32"
"""
KERNEL = """
import cuda.tile as ct
import numpy as np
import tilestack as ts

@ct.kernel
def squares(x, sums, TILE: ct.Constant[int]):
    tile = ct.load(x, index=(ct.bid(0), ct.bid(1)), shape=(1, TILE), padding_mode=ct.PaddingMode.ZERO)
    ct.atomic_add(sums, (ct.bid(0),), ct.sum(tile * tile))

@ct.kernel
def divided(x, sums, out, TILE: ct.Constant[int]):
    place = (ct.bid(0), ct.bid(1))
    tile = ct.load(x, index=place, shape=(1, TILE), padding_mode=ct.PaddingMode.ZERO)
    row = ct.reshape(ct.load(sums, index=(ct.bid(0),), shape=(1,)), (1, 1))
    ct.store(out, index=place, tile=tile / row)

def launch(x, out, on):
    grid = (x.shape[0], -(-x.shape[1] // 64))
    sums = np.ones(grid[0], np.float32)
    ts.load(squares)[grid](x, sums, TILE=64, on=on)
    ts.load(divided)[grid](x, sums, out, TILE=64, on=on)

def reference(x):
    return x / ((x * x).sum(axis=1, keepdims=True) + 1)
"""
FAULTS = {  # what is replaced in the module, by what, and what is said
    "a part of an array": ("(x, sums, out, TILE=", "(x[:1], sums, out, TILE=", "is a part of x"),
    "the host writes between": ("    ts.load(divided)", "    sums[0] = 2\n    ts.load(divided)", "written by the host"),
    "no launch": ("    ts.load(", "    0 and ts.load(", "launched nothing through ts.load"),
    "a shape that the table has not": ("return x / (", "return x.sum() / (", "the table says"),
}  # fmt: skip


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Path]:
    """A folder with a table and its module, which no other test has loaded."""
    (tmp_path / "matrix.toml").write_text(TABLE)
    (tmp_path / "own_rows.py").write_text(KERNEL)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.modules.pop("own_rows", None)


def record(*words: str) -> int:
    return main(["record", "--target", "sm_90", *words])


@pytest.mark.needs("toolchain")
def test_a_recording_is_checked_and_timed_without_its_sources(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert record() == 0
    assert "2 cells, 1 of them timed, for sm_90" in capsys.readouterr().out
    made = Recording.load(own / "build/recording")
    assert list(named(made)) == ["rows M=4 N=64 f32"] and made.tools["tileiras"]["version"]
    scratch = made.cells[0].arrays[-1]
    assert (scratch.name, scratch.shape, scratch.written) == ("", (3,), True)
    (own / "own_rows.py").unlink()
    checked = ["check", "--recording", "build/recording", "--executor", "cpu", "--report", "report"]
    assert main(checked) == 0
    (row,) = Checked.load(own / "report/results.json").rows
    assert row.shape == "M=3 N=65" and row.entries == ("squares", "divided") and row.error is not None
    # Twice as many calls as one: the sums begin with ones again in each.
    assert main(["time", "--executor", "cpu", "--samples", "3", "--against", "base=build/recording"]) == 0
    (timed,) = Results.load(own / "build/times/cpu-interpreter.json").rows
    assert timed.status == "ok" and len(timed.ours_rounds_us) == 3 and timed.peer == "base own"


@pytest.mark.needs("toolchain")
@pytest.mark.parametrize("name", FAULTS)
def test_what_cannot_be_recorded_is_said(own: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    old, new, said = FAULTS[name]
    assert old in KERNEL
    (own / "own_rows.py").write_text(KERNEL.replace(old, new))
    assert record() in (2, 6)
    assert said in capsys.readouterr().err
    assert not (own / "build").exists()


@pytest.mark.needs("toolchain")
def test_a_wrong_kernel_is_red_where_it_is_played(own: Path) -> None:
    (own / "own_rows.py").write_text(KERNEL.replace("tile / row", "tile / (row + 0.1)"))
    assert record() == 0
    assert main(["check", "--recording", "build/recording", "--executor", "cpu"]) == 9
    assert main(["time", "--executor", "cpu", "--samples", "2"]) == 9


@pytest.mark.needs("toolchain")
def test_the_commit_before_is_recorded_too(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    git(own, "init", "--quiet", "--initial-branch", "main")
    git(own, "add", "matrix.toml", "own_rows.py")
    git(own, "commit", "--quiet", "--message", "First")
    (own / "own_rows.py").write_text(KERNEL.replace("tile / row", "(tile + 0.0) / row"))
    git(own, "commit", "--quiet", "--all", "--message", "Second")
    assert record("--base", "HEAD^") == 0
    before, now = Recording.load(own / "build/before"), Recording.load(own / "build/recording")
    assert before.commit["commit"] == git(own, "rev-parse", "HEAD^").strip() != now.commit["commit"]
    assert before.cells[0].launches[1].cubins != now.cells[0].launches[1].cubins
    assert before.cells[0].launches[0].cubins == now.cells[0].launches[0].cubins
    assert "worktree" not in git(own, "worktree", "list").partition("\n")[2]
    capsys.readouterr()
    assert record("--base", "nowhere") == 2
    assert "has no commit nowhere" in capsys.readouterr().err
