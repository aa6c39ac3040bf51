"""Our workflows, run as GitHub runs them, on a clone narrowed to one op.

What stands in for GitHub: actions/ beside this file; for the GPU the interpreter, with made-up times; for `gh` a script
that keeps what it is given; for `python3` one that has made each job's environment before.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from benchmarks.report.result import BenchmarkRow, Results
from ci.workflows.__main__ import main
from ci.workflows.repository import git
from tests.compile.ci.workflows import prepared
from tests.unit.ci.trends.synthetic import H200, night
from toolchain.knobs import ROOT, toolchain_dir

WHY = "{}; tests/unit/ci/test_workflows.py checks every command line"
CHANGE = "kernels_mlir/gelu.mlir"
FEW_TESTS = "-p no:lint-beside-tests-runner tests/unit/ci/test_cells.py"  # one file: to collect all takes a minute
TILEIRAS, BYTECODE = "13.5.37", "13.4"  # the pinned one, and a version in which it compiles every entry
TARGET = ("--matrix", "target:sm_90")
STATE = {"sm_clock_mhz": "1980", "temperature_c": "50", "throttle": "none"}
GPU = """\
#!{python}
import os, sys
words = [{{"cuda": "cpu"}}.get(word, word) for word in sys.argv[1:]]
if words[:3] == ["-m", "ci.gate", "run"]:
    words = ["-m", "ci.gate", "judge", "{times}", *words[words.index("--output"):]]
os.execv(sys.executable, [sys.executable, *words])
"""
GH = """\
#!/bin/sh
echo "$@" >>"{log}"
while [ $# -gt 0 ]; do if [ "$1" = --body-file ]; then cat "$2" >>"{log}"; fi; shift; done
"""


SUITE = """\
// RUN: cuda-tile-opt %s
cuda_tile.module @m {
  entry @k() {
    %a = constant <f32: 1.0> : tile<f32>
    BODY
    return
  }
}
"""


@dataclass(frozen=True)
class Site:
    """A clone whose workflows are narrowed to gelu, with a change of gelu's kernel as its last commit."""

    clone: Path
    folder: Path

    def run(self, workflow: str, *options: str) -> int:
        where = ["--repository", str(self.clone), "--output", str(self.folder / "out"), "--path", str(self.folder)]
        return main([workflow, *where, *options])

    def left(self, workflow: str, path: str) -> Path:
        return self.folder / "out" / workflow / path

    def logs(self, workflow: str) -> dict[str, str]:
        return {path.stem[3:]: path.read_text() for path in sorted(self.left(workflow, "logs").glob("*.log"))}


@pytest.fixture(scope="module")
def python3(tmp_path_factory: pytest.TempPathFactory) -> str:
    return prepared.python3(tmp_path_factory.mktemp("prepared") / "venv", ROOT / "bootstrap.lock")


@pytest.fixture
def site(tmp_path: Path, python3: str) -> Site:
    clone = tmp_path / "clone"
    git(ROOT, "clone", "--quiet", "--shared", str(ROOT), str(clone))
    for name in ("ci", "gpu", "release"):
        path = clone / f".github/workflows/{name}.yml"
        text = re.sub(r"\n      ops: .*", "", path.read_text())
        path.write_text(re.sub(r"(\n      event: .*)", r"\1\n      ops: gelu", text))
    git(clone, "commit", "--quiet", "--all", "--message", "Narrow the workflows to one op")
    _change(clone, "// A change.\n")
    times = tmp_path / "times.json"
    _no_change().save(times)
    scripts = {"gpu-python": GPU.format(python=sys.executable, times=times), "gh": GH.format(log=tmp_path / "gh.log")}
    for name, text in {**scripts, "python3": python3}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    return Site(clone, tmp_path)


def _change(clone: Path, first: str) -> None:
    (clone / CHANGE).write_text(first + (clone / CHANGE).read_text())
    git(clone, "commit", "--quiet", "--all", "--message", "Change a kernel")


def narrow(path: Path, pattern: str, text: str) -> None:
    made, count = re.subn(pattern, lambda _: text, path.read_text())
    assert count == 1
    path.write_text(made)


def _no_change() -> Results:
    """What a benchmark of two bundles that are equally fast writes."""
    rounds = [100.0 + i % 5 for i in range(30)]
    row = BenchmarkRow(
        "ops", "gelu M=8192 N=3072 bf16", "mlir", "bf16", "", {}, "ok", "", peer="base mlir", peer_kind="against",
        ours_ms=0.1, gpu_before=STATE, gpu_after=STATE, ours_rounds_us=rounds, peer_rounds_us=rounds,
    )  # fmt: skip
    against = {"base": {"bundle": "o", "commit": "o"}}
    return Results({"gpu": "the interpreter", "bundle": "n", "bundle_commit": "n", "against": against}, {}, [row])


def results(said: str) -> dict[str, str]:
    """The jobs of the last table, by the last part of their names."""
    rows = re.findall(r"^(\w+) +[\d.]+ s  (?:.*/)?([^/\n]+(?: 1/1)?)$", said, re.MULTILINE)
    return {name: result for result, name in rows}


@pytest.mark.needs("toolchain")
@pytest.mark.long(WHY.format("a minute"))
def test_a_pull_request_plans_compiles_interprets_and_reports(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    assert site.run("ci", "--event", "pull_request", "--job", "matrix", *TARGET) == 0
    said = capsys.readouterr().out
    assert "ops: gelu" not in said and said.count(": success, ") >= 9
    assert set(json.loads(site.left("ci", "artifacts/report-0-interpreted/results.json").read_text()))
    assert {path.name for path in site.left("ci", "artifacts/bundle-sm_90").iterdir()} == {"bundle", "before", "cache"}


@pytest.mark.needs("toolchain")
@pytest.mark.long(WHY.format("a minute"))
def test_an_approved_commit_runs_on_a_gpu_and_is_commented_on(site: Site) -> None:
    python = f"GPU_PYTHON={site.folder / 'gpu-python'}"
    ref = ("--event", "push", "--ref", "refs/heads/pull-request/7")
    assert site.run("gpu", *ref, *TARGET, "--var", python) == 0
    comment = (site.folder / "gh.log").read_text()
    assert comment.startswith("pr comment 7 --repo example/repository --body-file comment.md\n")
    assert "gelu M=8192" in comment or "neutral" in comment
    assert "actions/runs/" in comment


@pytest.mark.needs("toolchain")
@pytest.mark.long(WHY.format("two minutes"))
def test_a_tag_makes_a_release_up_to_publishing(site: Site) -> None:
    options = [*TARGET, "--matrix", "target:sm_120", "--matrix", "runner:h200"]
    options += ["--var", f"GPU_PYTHON={site.folder / 'gpu-python'}", "--env", f"PYTEST_ADDOPTS={FEW_TESTS}"]
    assert site.run("release", "--event", "push", "--ref", "refs/tags/v0.0.1", *options) == 0
    attested = site.left("release", "attested.txt").read_text()
    assert "bundle-sm_90" in attested and ".whl" in attested
    assert "release create v0.0.1" in (site.folder / "gh.log").read_text()


@pytest.mark.needs("toolchain")
@pytest.mark.long(WHY.format("a minute"))
def test_a_night_compares_the_support_table(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    """Of one tileiras, bytecode and entry, by the rows of the committed table for these."""
    narrow(site.clone / "ci/matrix.toml", r"\ntileiras = .*", f'\ntileiras = ["{TILEIRAS}"]')
    narrow(site.clone / "ci/support/support.toml", r"(?s)\nentries = \[.*?\]", '\nentries = ["gelu_1024_f16"]')
    narrow(site.clone / "ci/support/support.toml", r"\nbytecode = .*", f'\nbytecode = ["{BYTECODE}"]')
    kept = site.clone / "ci/support/support.json"
    table = json.loads(kept.read_text())
    rows = [row for row in table["compiled"] if (row["tileiras"], row["bytecode"]) == (TILEIRAS, BYTECODE)]
    assert rows and all(row["compiled"] == row["of"] for row in rows)
    one = [{**row, "of": 1, "exported": 1, "compiled": 1} for row in rows]
    kept.write_text(json.dumps({**table, "compiled": one, "ran": [], "tools": {TILEIRAS: table["tools"][TILEIRAS]}}))
    git(site.clone, "commit", "--quiet", "--all", "--message", "Narrow the support table")
    alone = ["--matrix", "target:none", "--matrix", "number:none"]
    assert site.run("nightly", "--event", "schedule", "--job", "matrix", *alone) == 0
    said = capsys.readouterr().out
    jobs = re.findall(r"^(\w+) .* s  .*/(\w+)", said, re.MULTILINE)
    assert jobs == [("success", "Plan"), ("success", "tileiras"), ("success", "Compare")]
    assert "the support table is as measured" in "".join(site.logs("nightly").values())


@pytest.mark.needs("toolchain")
@pytest.mark.long(WHY.format("a minute"))
def test_a_job_that_fails_ends_with_a_command_that_fails_the_same_way(site: Site) -> None:
    path = site.clone / CHANGE
    path.write_text(path.read_text().replace("f32: 0.0356", "f32: 0.0456"))
    assert site.run("ci", "--event", "pull_request", "--job", "matrix", "--matrix", "target:none") == 1
    (log,) = [text for name, text in site.logs("ci").items() if name.endswith("interpret-1-1")]
    (site.clone / ".toolchain").symlink_to(toolchain_dir())  # whose tools run the clone's code
    codes = [
        subprocess.run(shlex.split(command), cwd=site.clone, capture_output=True, check=False).returncode
        for command in log.splitlines()[-2:]
    ]
    assert codes == [0, 9], log


@pytest.mark.needs("toolchain")
@pytest.mark.long(WHY.format("a minute"))
def test_two_nights_are_kept_in_a_branch_and_drawn(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    """The results are made up: the job that would measure them leaves them as its artifact."""
    path = site.clone / ".github/workflows/nightly.yml"
    upload = re.findall(r"actions/upload-artifact@\w+", path.read_text())[0]
    for at in (0, 1):
        (site.clone / "results").mkdir(exist_ok=True)
        (site.clone / "results/results.json").write_text(night(at, H200).to_json())
        workflow = yaml.safe_load(path.read_text())
        workflow["on"] = workflow.pop(True, None) or workflow["on"]  # YAML takes the word for that
        workflow["jobs"]["matrix"] = {
            "runs-on": "ubuntu-24.04",
            "steps": [{"uses": workflow["jobs"]["trends"]["steps"][0]["uses"]},
                      {"uses": upload, "with": {"name": "results-1-h200", "path": "results"}}],
        }  # fmt: skip
        path.write_text(yaml.safe_dump(workflow))
        git(site.clone, "add", "--all")
        git(site.clone, "commit", "--quiet", "--message", f"Night {at}")
        assert site.run("nightly", "--event", "schedule", "--job", "trends") == 0
        pushed = site.left("nightly", "pushed.git")
        kept = git(pushed, "ls-tree", "-r", "--name-only", "nights").splitlines()
        assert len([name for name in kept if name.endswith(".json")]) == at + 1
        git(site.clone, "fetch", "--quiet", str(pushed), "+nights:nights")
    assert len(git(site.clone, "rev-list", "nights").splitlines()) == 2
    said = capsys.readouterr().out
    assert said.count("Push the results: success") == 2
    assert "NVIDIA H200" in site.left("nightly", "artifacts/trends/index.html").read_text()


@pytest.mark.needs("toolchain")
@pytest.mark.long(WHY.format("a minute"))
@pytest.mark.parametrize(("body", "code"), [("%0 = addf %a, %a : tile<f32>", 0), ("%0 = addf %a : tile<f32>", 1)])
def test_a_suite_of_others_fails_with_a_test_that_fails_newly(site: Site, body: str, code: int) -> None:
    """A suite of one test in the place of cuda-tile's."""
    others = site.folder / "others"
    (others / "test").mkdir(parents=True)
    (others / "test/only.mlir").write_text(SUITE.replace("BODY", body))
    git(others, "init", "--quiet", "--initial-branch", "main")
    git(others, "add", ".")
    git(others, "commit", "--quiet", "--message", "First")
    path = site.clone / "ci/suites/suites.toml"
    head, row, rest = path.read_text().partition("[cuda-tile]")
    for key, value in (("repository", f'"{others}"'), ("commit", f'"{git(others, "rev-parse", "HEAD")}"'),
                       ("files", '["only.mlir"]')):  # fmt: skip
        rest = re.sub(rf"(?m)^{key} = .*$", f"{key} = {value}", rest, count=1)
    path.write_text(head + row + rest)
    git(site.clone, "commit", "--quiet", "--all", "--message", "Narrow the suite")
    assert site.run("suites", "--event", "push", "--matrix", "suite:cuda-tile") == code
    (log,) = site.logs("suites").values()
    assert f"1 tests of cuda-tile, {code} that newly fail" in log
    if code:
        assert log.splitlines()[-1] == ".venv/bin/nox -s suites -- cuda-tile --check"
