"""The jobs of events and of changes. Each list of jobs is kept in golden/, without the estimates."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from ci.matrix import EVENTS, Event, Limits, Matrix
from ci.plan.graph import Graph
from ci.plan.jobs import JobPlan, plan
from toolchain.errors import UsageError

GOLDEN = Path(__file__).parent / "golden"
CHANGES = {
    "docs": ["docs/ci.md", "README.md"],
    "one_kernel": ["kernels_mlir/gelu.mlir"],
    "both_sources": ["kernels_mlir/gelu.mlir", "kernels_py/rows/softmax.py", "docs/ci.md"],
    "one_target": ["entries/sm_90.toml"],
    "other_target": ["entries/sm_120.toml"],
    "model": ["gpt/model.py"],
    "gate": ["ci/gate.toml"],
    "lock": ["requirements.lock"],
}


def listed(made: JobPlan) -> str:
    """A plan without its estimates."""
    rows = [
        f"{kind}: {job.name}{'' if job.required else ' (may fail)'} on {' '.join(job.runs_on)}: {job.local}\n"
        for kind, jobs in made.kinds.items()
        for job in jobs
    ]
    return "".join(rows) or "nothing\n"


@pytest.mark.parametrize("event", EVENTS)
def test_an_event_runs_everything_as_the_golden_file_says(event: str, matrix: Matrix) -> None:
    assert listed(plan(matrix, matrix.events[event], None)) == (GOLDEN / f"{event}.txt").read_text()


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_runs_what_it_reaches_as_the_golden_file_says(name: str, matrix: Matrix, graph: Graph) -> None:
    made = plan(matrix, matrix.events["pull_request"], [graph.reach(path) for path in CHANGES[name]], "main")
    assert listed(made) == (GOLDEN / f"change_{name}.txt").read_text()


def test_a_change_does_not_narrow_what_runs_at_night(matrix: Matrix, graph: Graph) -> None:
    event = matrix.events["nightly"]
    assert plan(matrix, event, [graph.reach("docs/ci.md")]).kinds == plan(matrix, event, None).kinds


def test_a_run_by_hand_takes_some_ops_alone(matrix: Matrix, graph: Graph) -> None:
    event = matrix.events["pull_request"]
    made = plan(matrix, event, [graph.reach("entries/sm_90.toml")], only=["gelu"])
    (compiled,), (checked,), (gpu,) = made.compile, made.interpret, made.gpu
    assert compiled.local == "nox -s bundles -- --target sm_90 --op gelu"
    assert checked.more["options"] == "--executor cpu --op gelu"
    assert gpu.more["options"] == "--op gelu" and made.tools == []
    everything = plan(matrix, matrix.events["nightly"], None, only=["gelu"])
    assert {job.more["options"] for job in everything.gpu} == {"--op gelu"} and not everything.tools
    with pytest.raises(UsageError, match="no op gulu"):
        plan(matrix, event, None, only=["gulu"])


def test_every_gpu_job_has_its_bundle(matrix: Matrix) -> None:
    made = plan(matrix, matrix.events["nightly"], None)
    assert {job.more["artifact"] for job in made.gpu} <= {job.more["artifact"] for job in made.compile}


def with_minutes(matrix: Matrix, event: Event, minutes: int, seconds: float) -> JobPlan:
    slow = replace(matrix, limits=Limits(256, minutes), seconds=replace(matrix.seconds, gpu_cell=seconds))
    return plan(slow, event, None)


def test_cells_are_grouped_to_the_length_of_a_job(matrix: Matrix) -> None:
    event = replace(matrix.events["pull_request"], tools=False)
    made = with_minutes(matrix, event, minutes=10, seconds=30)
    assert len(made.gpu) > 3
    assert all(job.minutes < 10 + 60 / 60 + 52 / 60 + 0.1 for job in made.gpu)
    assert [job.more["gate"] for job in made.gpu] == [True] + [False] * (len(made.gpu) - 1)
    options = [job.more["options"].split() for job in made.gpu]
    ops = [word for words in options for word, before in zip(words[1:], words, strict=False) if before == "--op"]
    assert len(ops) == len(set(ops)) > 20
    assert sum(job.more["cells"] for job in made.gpu) == plan(matrix, event, None).cells


def test_more_jobs_than_github_takes_are_an_error(matrix: Matrix) -> None:
    few = replace(matrix, limits=Limits(jobs=2, minutes=20))
    with pytest.raises(UsageError, match="GitHub takes 2"):
        plan(few, matrix.events["release"], None)


def required(made: JobPlan) -> Sequence[bool]:
    return [job.required for job in made.gpu]


def test_a_job_without_a_required_cell_or_the_gate_may_fail(matrix: Matrix, graph: Graph) -> None:
    event = matrix.events["pull_request"]
    reach = [replace(graph.reach("conformance/matrix.py"), stages=frozenset({"conformance"}))]
    assert required(plan(matrix, event, reach)) == [True]
    for pattern, expected in (("^softmax-py-f32-sm_90$", True), ("-sm_100$", False)):
        assert required(plan(matrix, replace(event, required=re.compile(pattern)), reach)) == [expected]


def test_the_document_counts_what_it_holds(matrix: Matrix) -> None:
    made = plan(matrix, matrix.events["nightly"], None).to_json()
    jobs = [job for jobs in made["jobs"].values() for job in jobs]
    assert made["estimate"]["jobs"] == len(jobs)
    assert made["estimate"]["gpu_minutes"] == pytest.approx(sum(j["minutes"] for j in made["jobs"]["gpu"]), abs=0.2)
    assert all(job["timeout"] >= 3 * job["minutes"] for job in jobs)
