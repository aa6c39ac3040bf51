"""`tilestack init` and `tilestack check`: what is written is green, and faults in its kernel are found."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from ci.workflows.__main__ import main as run_workflow
from ci.workflows.repository import git
from conformance.results.result import Results
from tests.compile.ci.workflows import prepared
from tilestack.__main__ import main
from toolchain.knobs import ROOT

KERNEL = "kernels/axpy.py"
FAULTS = {  # what is replaced in the kernel, by what, and how its rows end
    "a wrong factor": ("alpha * ct.astype(a", "(alpha + 0.01) * ct.astype(a", "failed", "allowed"),
    "columns that no block writes": ("-(-columns // TILE)", "max(1, columns // TILE)", "failed", "not finite"),
    "a race": ("index=place, tile=", "index=(0, ct.bid(1)), tile=", "error", "no token or atomic orders"),
}  # fmt: skip


@pytest.fixture
def own(tmp_path: Path) -> Generator[Path]:
    """A new repository, whose modules no other test has loaded."""
    assert main(["init", str(tmp_path / "own"), "--from", "someone/tilestack@v1"]) == 0
    yield tmp_path / "own"
    for name in [name for name in sys.modules if name.partition(".")[0] == "kernels"]:
        del sys.modules[name]


def check(own: Path, *words: str) -> tuple[int, Results]:
    report = own / "build/report"
    code = main(["check", str(own / "matrix.toml"), "--executor", "cpu", "--report", str(report), *words])
    return code, Results.load(report / "results.json")


@pytest.mark.needs("toolchain")
def test_what_init_writes_is_green(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, results = check(own)
    assert code == 0 and results.counts() == {"passed": 9}
    assert {row.dtype for row in results.rows} == {"f32", "f16", "bf16"}
    assert all(row.bound and row.error is not None and row.error <= row.bound for row in results.rows)
    assert {path.name for path in (own / "build/report").iterdir()} == {"results.json", "junit.xml", "index.html"}
    assert "9 passed" in capsys.readouterr().out


@pytest.mark.needs("toolchain")
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_the_kernel_is_found(own: Path, name: str) -> None:
    old, new, status, said = FAULTS[name]
    text = (own / KERNEL).read_text()
    assert old in text
    (own / KERNEL).write_text(text.replace(old, new))
    code, results = check(own, "--dtype", "f32")
    bad = [row for row in results.rows if row.status != "passed"]
    assert code == 9 and {row.status for row in bad} == {status} and said in bad[-1].detail


MIXED = """
[[op]]
name = "mixed"
module = "kernels.mixed"
inputs = { x = ["M", "N"], n = { sizes = ["M", "N"], dtype = "i32", from = -3, below = "N" } }
outputs = { product = { sizes = ["M", "N"], dtype = "f32" }, next = { sizes = ["M", "N"], dtype = "i32" } }
sizes = [{ M = 3, N = 65 }]
dtypes = ["f32", "bf16", "i16"]
f32_ulps = 1
why = "one product in f32"
"""
MIXED_KERNEL = """
import cuda.tile as ct
import numpy as np
import tilestack as ts

@ct.kernel
def mixed(x, n, product, next, TILE: ct.Constant[int]):
    place = (ct.bid(0), ct.bid(1))
    a = ct.load(x, index=place, shape=(1, TILE), padding_mode=ct.PaddingMode.ZERO)
    b = ct.load(n, index=place, shape=(1, TILE), padding_mode=ct.PaddingMode.ZERO)
    ct.store(product, index=place, tile=ct.astype(a, ct.float32) * ct.astype(b, ct.float32))
    ct.store(next, index=place, tile=b + 1)

def launch(x, n, product, next, on):
    rows, columns = x.shape
    ts.load(mixed)[rows, -(-columns // 64)](x, n, product, next, TILE=64, on=on)

def reference(x, n):
    return x * n, n + 1
"""


@pytest.mark.needs("toolchain")
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [("", "", ""), ("b + 1", "b + 2", "off by 1, allowed 0"), ("* ct.astype(b", "+ ct.astype(b", "allowed")],
)
def test_integers_and_arrays_of_several_dtypes(own: Path, old: str, new: str, said: str) -> None:
    (own / "matrix.toml").write_text(MIXED)
    assert old in MIXED_KERNEL
    (own / "kernels/mixed.py").write_text(MIXED_KERNEL.replace(old, new) if old else MIXED_KERNEL)
    code, results = check(own)
    assert {row.dtype for row in results.rows} == {"f32", "bf16", "i16"}
    assert code == (9 if said else 0) and all(said in row.detail for row in results.rows), results.rows


@pytest.mark.needs("toolchain")
def test_json_has_the_rows_and_nothing_else(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert check(own, "--json", "--dtype", "f32")[0] == 0
    assert len(json.loads(capsys.readouterr().out)["rows"]) == 3


def from_here(own: Path) -> Path:
    """The file of requirements, with this checkout in the place of a release."""
    path = own / "requirements.txt"
    lines = path.read_text().splitlines()
    path.write_text(f"{lines[0]}\n{lines[1].partition(' @ ')[0]} @ file://{ROOT}\n")
    return path


@pytest.fixture(scope="module")
def python3(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("prepared")
    assert main(["init", str(folder / "own"), "--from", "someone/tilestack@v1"]) == 0
    return prepared.python3(folder / "venv", from_here(folder / "own"))


def run(own: Path, python3: str, *options: str) -> Path:
    """Runs the workflow on a second commit. Returns the folder of artifacts."""
    from_here(own)
    git(own, "init", "--quiet", "--initial-branch", "main")
    for message in ("First", "Second"):
        git(own, "add", ".")
        git(own, "commit", "--quiet", "--allow-empty", "--message", message)
    path, out = own.with_name("path"), own.with_name("out")
    path.mkdir()
    (path / "python3").write_text(python3)
    (path / "python3").chmod(0o755)
    where = ["--repository", str(own), "--output", str(out), "--local", f"someone/tilestack@v1={ROOT}"]
    assert run_workflow(["ci", "--event", "push", "--path", str(path), *where, *options]) == 0
    return out / "ci/artifacts"


@pytest.mark.needs("toolchain")
@pytest.mark.long("half a minute: it installs tilestack anew; the tests above run the same check")
def test_its_workflow_runs_and_leaves_the_report(own: Path, python3: str) -> None:
    assert Results.load(run(own, python3) / "report/results.json").green


GPU = """\
#!/bin/sh
# A GPU is not here: the interpreter stands in for it.
for word; do shift; if [ "$word" = cuda ]; then word=cpu; fi; set -- "$@" "$word"; done
PYTHONPATH={root} exec {python} "$@"
"""


@pytest.mark.needs("toolchain")
@pytest.mark.long("a minute: it installs tilestack anew; tests/unit/tilestack/own/test_gate.py judges the same way")
def test_its_workflow_records_and_judges_on_a_gpu_runner(own: Path, python3: str, tmp_path: Path) -> None:
    """A push whose kernels are those of the commit before: nothing is measured."""
    (own / "matrix.toml").write_text(re.sub(r"timed = .*", "", (own / "matrix.toml").read_text()))
    path = own / ".github/workflows/ci.yml"
    path.write_text(re.sub(r"    # (with:|  gpu:|  target:)", r"    \1", path.read_text()))
    python = tmp_path / "gpu-python"
    python.write_text(GPU.format(root=ROOT, python=sys.executable))
    python.chmod(0o755)
    left = run(own, python3, "--var", f"GPU_PYTHON={python}") / "results-gpu"
    verdicts = json.loads((left / "gate/verdicts.json").read_text())
    assert verdicts["exit_code"] == 0 and verdicts["same_machine_code"] == 3
    assert verdicts["commit"] != verdicts["base_commit"]
    assert Results.load(left / "report/results.json").green
