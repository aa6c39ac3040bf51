"""The `run:` blocks of all workflows, in their order, in a clean container, on a clone of the last commit.

Only what GitHub fills in is made up here: expressions, and artifacts. Tests are narrowed to one, and kernels to one op.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from ci.matrix import Matrix
from ci.plan.jobs import plan
from ci.scripts import Script, scripts
from toolchain.errors import ToolFailed
from toolchain.knobs import ROOT
from toolchain.native.build import container
from toolchain.native.engine import Engine
from toolchain.native.images import image
from toolchain.native.make_images import ensure

NOT_RUN = {
    "again.yml: again: Run the jobs again whose runner was lost": "asks GitHub which runner was lost",
    "audit.yml: audit: Check out the commit": "needs GitHub's token",
    "audit.yml: audit: Look for known vulnerabilities in the locked dependencies": "asks a service of advisories",
    "canary.yml: newest: Take the newest versions": "depends on what was published today",
    "canary.yml: newest: Run lint and tests": "depends on what was published today",
    "canary.yml: llvm: Build the stack with each LLVM": "takes hours",
    "gpu.yml: comment: Comment on the pull request": "writes to GitHub",
    "matrix.yml: bench: Run the benchmarks that ci/bench.toml asks for": "times kernels on a GPU",
    "matrix.yml: tools: Compile the support table's entries with one tileiras": "takes minutes",
    "matrix.yml: support: Make the page anew, and show what differs": "needs the results of every tileiras",
    "nightly.yml: everything: Make the images and run all tests": "is what runs this test",
    "nightly.yml: checkpoint: Run a real checkpoint on the interpreter": "downloads 93 MB and takes minutes",
    "nightly.yml: trends: Keep the results and make the page": "needs the results of a night",
    "nightly.yml: trends: Push the results": "writes to GitHub",
    "own-kernels.yml: check: Check the kernels": "runs in another repository",
    "own-kernels.yml: record: Compile": "runs in another repository",
    "own-kernels.yml: gpu: Install tilestack, where the runner has none": "runs in another repository",
    "own-kernels.yml: gpu: Check the kernels": "runs in another repository",
    "own-kernels.yml: gpu: Compare the speed with the commit before": "runs in another repository",
    "release.yml: publish: Make the release": "writes to GitHub",
    "suites.yml: suite: Run the suite and compare it with the page": "fetches somebody else's repository",
}
NO_GPU = {  # the exit code, and a part of what is said
    "matrix.yml: gpu: Run the conformance matrix": (7, "no NVIDIA driver"),
    "matrix.yml: gpu: Compare the speed with the commit before": (4, ""),
}
ONE_OP = "--op gelu --dtype f32 --source mlir"
WORK, HOME = "/work", "/home/ci"
FEW_TESTS = "-p no:lint-beside-tests-runner tests/unit/ci/test_cells.py"  # one file: to collect all takes a minute


@dataclass(frozen=True)
class CleanClone:
    """A clone in a container. `home` keeps downloads from step to step."""

    engine: Engine
    image: str
    clone: Path
    home: Path

    def run(self, script: Script, environment: Mapping[str, str]) -> tuple[int, str]:
        """Runs a block as GitHub does; returns its exit code and output."""
        where = container(self.image, {self.clone: (WORK, "rw"), self.home: (HOME, "rw")}, {
            "HOME": HOME, "PYTEST_ADDOPTS": FEW_TESTS, "GITHUB_OUTPUT": f"{HOME}/output",
            "GITHUB_STEP_SUMMARY": f"{HOME}/summary", "RUNNER_TEMP": f"{HOME}/temp", **environment,
        })  # fmt: skip
        words = ["bash", "-e", "-o", "pipefail", "-c", f"cd {WORK}\n{script.text}"]
        try:
            return 0, self.engine.run(where, words)
        except ToolFailed as error:
            return error.returncode, error.stderr


@pytest.fixture
def site(tmp_path: Path) -> CleanClone:
    clone, home = tmp_path / "clone", tmp_path / "home"
    home.mkdir()
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(clone)], check=True)
    engine = Engine.find()
    return CleanClone(engine, ensure(engine, image("llvm-22")), clone, home)


def expressions(planned: Mapping[str, Any]) -> dict[str, str]:
    """What stands for GitHub's expressions in the environments of steps, by job where they differ."""
    (compiled, *_), (interpreted, *_), (gpu, *_) = (planned[kind] for kind in ("compile", "interpret", "gpu"))
    return {
        "github.workspace": WORK, "inputs.event": "pull_request", "inputs.base": "HEAD^", "inputs.ops": "",
        "vars.GPU_PYTHON || 'python3'": ".toolchain/venv/bin/python",
        "compile matrix.options": f"{compiled['options']} {ONE_OP}", "compile matrix.local": compiled["local"],
        "interpret matrix.options": f"{interpreted['options']} {ONE_OP}",
        "interpret matrix.local": interpreted["local"],
        "gpu matrix.options": "--op gelu", "gpu matrix.local": gpu["local"],
        "pythons matrix.python": "3",  # the container's own: nothing is downloaded
    }  # fmt: skip


def environment(script: Script, workflow: Mapping[str, Any], known: Mapping[str, str]) -> dict[str, str]:
    """A step's environment with that of its job. An expression that is not known is an error."""
    job = workflow["jobs"][script.job]
    step = next(step for step in job["steps"] if step.get("name") == script.step)
    found: dict[str, str] = {}
    for name, value in {**job.get("env", {}), **step.get("env", {})}.items():
        keys: list[str] = re.findall(r"\$\{\{ (.*?) \}\}", value)
        assert keys, f"{script.name}: {name}"
        for key in keys:
            value = value.replace(f"${{{{ {key} }}}}", known[key if key in known else f"{script.job} {key}"])
        found[name] = value
    return found


@pytest.mark.needs("engine", "llvm-images")
@pytest.mark.long("3 minutes; tests/unit/ci/test_workflows.py checks every command line")
def test_the_scripts_of_every_workflow_run_in_a_clean_container(site: CleanClone) -> None:
    matrix = Matrix.load()
    planned = plan(matrix, matrix.events["pull_request"], None).to_json()["jobs"]
    known = expressions(planned)
    ran: set[str] = set()
    for script in scripts(site.clone / ".github/workflows"):
        if script.name in NOT_RUN or script.step.startswith("Show the same command"):
            continue
        if script.name == "release.yml: publish: Make what is released":
            artifact = site.clone / "build/artifacts" / planned["compile"][0]["artifact"]
            artifact.mkdir(parents=True)
            for name in ("bundle", "before"):
                shutil.copytree(site.clone / "build" / name, artifact / name)
        workflow = yaml.safe_load((site.clone / ".github/workflows" / script.workflow).read_text())
        code, said = site.run(script, environment(script, workflow, known))
        wanted, part = NO_GPU.get(script.name, (0, ""))
        assert (code, part in said) == (wanted, True), f"{script.name}: exit code {code}\n{said}"
        ran.add(script.name)
    assert len(ran) >= 9
    outputs = dict(line.split("=", 1) for line in (site.home / "output").read_text().splitlines())
    assert json.loads(outputs["gpu"])["include"] or outputs["any_gpu"] == "false"
    summary = (site.home / "summary").read_text()
    assert "### Plan" in summary and "### Compile cache" in summary
    assert (site.clone / "build/cache/runs.jsonl").is_file()
    assert (site.clone / "build/report/results.json").is_file()
    assert len((site.clone / "build/release/SHA256SUMS").read_text().splitlines()) == 4


def test_what_is_not_run_stands_in_a_workflow() -> None:
    assert NOT_RUN.keys() | NO_GPU.keys() <= {script.name for script in scripts()}
