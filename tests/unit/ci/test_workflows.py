"""The workflows of .github: the commands that they call exist, and runners with a GPU run reviewed code alone."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

import ci.bench.__main__
import ci.gate.__main__
import ci.suites.__main__
import ci.support.__main__
import tilestack.__main__
from ci.matrix import EVENTS, Matrix
from ci.plan.jobs import plan
from ci.suites.checkout import TABLE as SUITES
from toolchain import knobs
from toolchain.knobs import ROOT
from toolchain.setup.update import read_lock
from toolchain.tables import read_table

WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.y*ml"))
PARSERS = {
    "tilestack": tilestack.__main__.parser, "ci.gate": ci.gate.__main__.parser, "ci.bench": ci.bench.__main__.parser,
}  # fmt: skip
MATRIX = "./.github/workflows/matrix.yml"
WRITES = {("again.yml", "again"): {"contents": "read", "actions": "write", "checks": "read"},
          ("gpu.yml", "comment"): {"pull-requests": "write"},
          ("nightly.yml", "trends"): {"contents": "write"},
          ("release.yml", "publish"): {"contents": "write", "id-token": "write", "attestations": "write"}}  # fmt: skip
SESSIONS = [
    name
    for path in ("noxfile.py", "tilestack/own/template/noxfile.py")  # the other is of those who call own-kernels.yml
    for name in re.findall(r"@nox\.session.*\ndef (\w+)", (ROOT / path).read_text())
]


def load(path: Path) -> dict[Any, Any]:
    return yaml.safe_load(path.read_text())


def steps() -> list[dict[str, Any]]:
    jobs = [job for path in WORKFLOWS for job in load(path)["jobs"].values()]
    return [step for job in jobs for step in job.get("steps", ())]


def called(pattern: str) -> list[Any]:
    """All matches of a pattern in the scripts of the workflows."""
    found = [match for step in steps() for match in re.findall(pattern, step.get("run", ""))]
    assert found
    return found


@pytest.mark.parametrize(
    ("module", "words"), called(r"-m (tilestack|ci\.gate|ci\.bench) ([^\"\n]*?)(?: \|\| .*)?(?=\"?\n|$)")
)
def test_what_they_call_takes_these_words(module: str, words: str) -> None:
    options = "--source mlir --op gelu" if "matrix run" in words else ""
    PARSERS[module]().parse_args(shlex.split(words.replace("$OPTIONS", options)))


@pytest.mark.parametrize("event", EVENTS)
def test_the_options_of_planned_jobs_are_taken(event: str) -> None:
    matrix = Matrix.load()
    made = plan(matrix, matrix.events[event], None)
    for words, jobs in (("compile", made.compile), ("matrix run", made.interpret), ("matrix run", made.gpu)):
        for job in jobs:
            PARSERS["tilestack"]().parse_args([*words.split(), *job.more["options"].split()])


def test_every_field_that_a_job_reads_is_in_the_plan() -> None:
    matrix = Matrix.load()
    planned = plan(matrix, matrix.events["release"], None).to_json()["jobs"]
    for name, job in load(ROOT / MATRIX)["jobs"].items():
        read = set(re.findall(r"matrix\.(\w+)", yaml.safe_dump(job)))
        assert all(read <= made.keys() for made in planned.get(name, ())), name


@pytest.mark.parametrize("session", called(r"nox\"? -s (\w+)"))
def test_the_sessions_are_on_the_menu(session: str) -> None:
    assert session in SESSIONS


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_what_passes_gpu_runs_reviewed_code_alone(path: Path) -> None:
    workflow = load(path)
    triggers: dict[str, Any] = workflow[True]  # YAML takes the word `on` for that
    if any(job.get("with", {}).get("gpu") for job in workflow["jobs"].values()):
        assert triggers.keys() <= {"push", "schedule", "workflow_dispatch"}
        branches = {"branches": ["main", "pull-request/[0-9]+"]}
        assert triggers.get("push", branches) in (branches, {"tags": ["v[0-9]+.[0-9]+.[0-9]+"]})


def test_only_two_jobs_of_the_matrix_run_on_our_machines_and_they_check_again() -> None:
    for path in WORKFLOWS:
        for name, job in load(path)["jobs"].items():
            if name not in ("gpu", "bench") and "runs-on" in job:
                assert job["runs-on"] == "ubuntu-24.04" or job["runs-on"] == "${{ matrix.runs_on }}"
    matrix = Matrix.load()
    planned = plan(matrix, matrix.events["release"], None)
    assert {tuple(j.runs_on) for j in (*planned.compile, *planned.interpret, *planned.tools)} == {
        tuple(matrix.hosted.labels)
    }
    jobs = load(ROOT / MATRIX)["jobs"]
    condition = jobs["gpu"]["if"]
    assert condition.startswith("inputs.gpu && ") and "github.event_name != 'pull_request'" in condition
    assert jobs["bench"]["if"] == condition.replace("any_gpu", "any_bench")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_jobs_may_do_what_they_must_and_no_more(path: Path) -> None:
    workflow = load(path)
    assert workflow["permissions"] == {}
    for name, job in workflow["jobs"].items():
        assert job["permissions"] == WRITES.get((path.name, name), {"contents": "read"})


def test_a_job_that_may_write_runs_nothing_of_a_pull_request() -> None:
    comment = load(ROOT / ".github/workflows/gpu.yml")["jobs"]["comment"]
    assert not any("checkout" in step.get("uses", "") for step in comment["steps"])


def test_actions_are_pinned_by_their_commit() -> None:
    used = {step["uses"] for step in steps() if "uses" in step}
    assert used and all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", action) for action in used)
    assert len({action.split("@")[1] for action in used if "/cache/" in action}) == 1


def test_a_job_that_fails_ends_with_the_command_for_a_laptop() -> None:
    for path in WORKFLOWS:
        for name, job in load(path)["jobs"].items():
            if "steps" in job and name not in ("comment", "publish", "audit"):
                assert job["steps"][-1].get("if") == "failure()", f"{path.name}: {name}"


def test_caches_are_written_by_main_alone() -> None:
    saves = [step for step in steps() if "/cache/save@" in step.get("uses", "") or "/cache@" in step.get("uses", "")]
    assert [step["if"] for step in saves] == ["github.ref == 'refs/heads/main'"]


def test_the_folder_that_is_kept_is_the_one_that_compiles_use() -> None:
    job = load(ROOT / MATRIX)["jobs"]["compile"]
    names = {knob.name for knob in vars(knobs).values() if isinstance(knob, knobs.Knob)}
    assert job["env"].keys() <= names
    paths = {step["with"]["path"] for step in job["steps"] if "actions/cache/" in step.get("uses", "")}
    assert {f"${{{{ github.workspace }}}}/{path}" for path in paths} == {job["env"][knobs.CACHE_DIR.name]}


def test_every_tileiras_of_the_matrix_is_tried_every_night_and_the_page_is_compared() -> None:
    matrix = Matrix.load()
    planned = plan(matrix, matrix.events["nightly"], None)
    assert [job.more["tileiras"] for job in planned.tools] == matrix.tools["tileiras"]
    jobs = load(ROOT / MATRIX)["jobs"]
    tools, page = (jobs[name]["steps"][-3 if name == "tools" else -2]["run"] for name in ("tools", "support"))
    parser = ci.support.__main__.parser()
    words = re.findall(r"nox -s support -- (.*)", tools)
    assert parser.parse_args(["compile", *shlex.split(words[0])]).tileiras == ["$TILEIRAS"]
    words = re.findall(r"nox -s support_page -- (.*)", page)
    assert parser.parse_args(["page", *shlex.split(words[0])]).check
    upload = jobs["tools"]["steps"][-2]["with"]
    download = jobs["support"]["steps"][1]["with"]
    assert upload["path"] == download["path"] and upload["name"].startswith(download["pattern"].rstrip("*"))


def test_every_night_all_tests_run() -> None:
    nightly = load(ROOT / ".github/workflows/nightly.yml")
    assert nightly[True]["schedule"]
    assert any(".ci/run" in step.get("run", "") for step in nightly["jobs"]["everything"]["steps"])
    (tests,) = re.findall(r"nox -s tests -- (.*)", (ROOT / ".ci/run").read_text())
    assert "--all" in tests.split()


def test_every_suite_of_others_runs_each_night_and_when_the_pinned_cutile_changes() -> None:
    workflow = load(ROOT / ".github/workflows/suites.yml")
    job = workflow["jobs"]["suite"]
    assert job["strategy"]["matrix"]["suite"] == list(read_table(SUITES))
    assert all("requirements.lock" in workflow[True][event]["paths"] for event in ("pull_request", "push"))
    assert read_lock((ROOT / "requirements.lock").read_text())["cuda-tile"]
    assert load(ROOT / ".github/workflows/nightly.yml")["jobs"]["suites"]["uses"] == "./.github/workflows/suites.yml"
    (words,) = re.findall(r"nox -s suites -- (.*)", job["steps"][1]["run"])
    assert ci.suites.__main__.parsed(shlex.split(words)).check
