"""A whole search without a GPU: compiled with the pinned tools, measured on the interpreter."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from toolchain.bundles.bundle import Bundle
from toolchain.contract.entries import Tables
from toolchain.knobs import ROOT
from tune.catalogue import Catalogue
from tune.measured import FILE, OWN, EntryMeasurement, Launched, Measured
from tune.worker import Machine, Outcome

pytestmark = pytest.mark.needs("toolchain")
SPACES = """\
model = []

[[space]]
name = "linear"
op = "linear"
dtypes = ["bf16"]
constants = { BM = [16, 17], BN = [32], BK = [64], GROUP = [1] }
hints = { num_worker_warps = [4], occupancy = [1, 2] }
aligned = ["x", "weight", "bias", "out"]
multiples = { K = 64, N = 64 }
grid = ["min(SMS * occupancy, cdiv(M, BM) * cdiv(N, BN))", "1", "1"]
classes = { few = { where = ["M <= 16"], shapes = [{ M = 5, K = 128, N = 64 }] } }
"""

# One variant of one kernel that compiles fast.
GELU = """\
model = []

[[space]]
name = "gelu"
op = "gelu"
dtypes = ["bf16"]
constants = { R = [1], BN = [128] }
hints = { num_worker_warps = [4] }
aligned = ["x", "out"]
multiples = { N = 8 }
grid = ["cdiv(N, BN)", "cdiv(M, R)", "1"]
classes = { trial = { where = ["M <= 16"], shapes = [{ M = 5, N = 256 }] } }
"""


def call(module: str, *words: str | Path, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-m", module, *map(str, words)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_a_search_up_to_what_only_a_gpu_can_tell(tmp_path: Path) -> None:
    folder = tmp_path / "tune"
    (tmp_path / "spaces.toml").write_text(SPACES)
    words = ["tune", "linear", "--target", "sm_90", "--output", folder, "--spaces", tmp_path / "spaces.toml"]

    said = call("tilestack", *words, "--phase", "compile")
    assert "2 failed, the first py/linear_17x32x64x1_4x1_bf16: kernels_py/products/persistent.py" in said, (
        "17 is no power of two"
    )
    assert "2 compiled, 2 failed; 1 classes with 1 shapes to measure" in said
    catalogue = Catalogue.load(folder)
    good = [c.spec.symbol for c in catalogue.candidates if c.status == "compiled"]
    assert good == [e.spec.symbol for e in Bundle.load(folder / "bundle").entries]
    assert all(c.usage["registers"] > 16 for c in catalogue.candidates if c.status == "compiled")

    said = call("tune", "measure", folder, "--executor", "cpu")
    assert re.search(r"linear bf16 few M=5 K=128 N=64 \(py\): .*; \d ok", said)
    rows = json.loads((folder / "measured.json").read_text())["rows"]
    assert {row["symbol"] for row in rows} == {"own", *good}
    # On a busy machine one can be 1.5 times as slow as the other: it is dropped then, as a slow one must be.
    assert {row["status"] for row in rows} <= {"ok", "dropped"}
    assert all(0 < row["share"] <= 1 for row in rows if row["status"] == "ok"), "held against the float64 reference"

    said = call("tilestack", *words, "--phase", "apply", "--tuned", tmp_path / "tuned", code=2)
    assert "cpu interpreter (cpu), which says nothing about sm_90" in said
    assert not (tmp_path / "tuned").exists()


def test_times_of_what_was_compiled_are_applied_and_of_nothing_else(tmp_path: Path) -> None:
    """Between the two commands the test writes times that a GPU could have measured."""
    folder, spaces = tmp_path / "tune", tmp_path / "spaces.toml"
    spaces.write_text(GELU)
    words = ["tune", "gelu", "--target", "sm_90", "--output", folder, "--phase"]
    compile_ = [*words, "compile", "--spaces", spaces]
    keep = [*words, "apply", "--tuned", tmp_path / "tuned"]

    assert "1 compiled; 1 classes with 1 shapes" in call("tilestack", *compile_)
    catalogue = Catalogue.load(folder)
    launched = Launched.load(folder, catalogue)
    (contest,), (candidate,) = catalogue.contests, catalogue.candidates
    measured = Measured(folder / FILE, "sm_90", Machine("cuda", "H200", "sm_90", "580.1"), "2026-01-02")
    for symbol, us in ((OWN, 9.0), (candidate.spec.symbol, 4.0)):
        file = launched.file("py", "gelu", "bf16", symbol)
        measured.add(EntryMeasurement.of("py", contest, symbol, contest.shapes[0], file, Outcome("ok", us=us)))

    said = call("tilestack", *keep)
    assert f"gelu bf16 trial (py), 1 variants: {candidate.spec.symbol} 4 us, own 9\nwrote" in said
    (row,) = Tables(tmp_path / "tuned").tuned
    assert (row.entries("py")[0].symbol, row.table["measured"]["own_us"]) == ("gelu_sm_90_trial_bf16", {"M=5 N=256": 9})
    assert "0 of 1 tuned entries are stale" in call("tilestack", "tune", "--check", "--tuned", tmp_path / "tuned")

    spaces.write_text(GELU.replace('"cdiv(N, BN)"', '"max(1, cdiv(N, BN))"'))
    call("tilestack", *compile_)
    said = call("tilestack", *keep)
    assert "gelu bf16 trial (py): left as it is, 1 measurements are missing\nunchanged" in said
