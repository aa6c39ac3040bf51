"""A plan in words, as Markdown, and as outputs of a step."""

from __future__ import annotations

import json

import pytest

from ci.matrix import Matrix
from ci.plan import show
from ci.plan.graph import Graph
from ci.plan.jobs import JobPlan, plan


@pytest.fixture
def made(matrix: Matrix, graph: Graph) -> JobPlan:
    paths = ["kernels_mlir/gelu.mlir", *(f"docs/{n}.md" for n in range(30))]
    return plan(matrix, matrix.events["pull_request"], [graph.reach(path) for path in paths], "main")


def test_each_path_says_what_it_reaches_and_why(made: JobPlan) -> None:
    lines = list(show.text(made))
    assert lines[0] == "planned: what the change reaches"
    assert lines[1].startswith("kernels_mlir/gelu.mlir reaches compile, ") and lines[1].endswith("(mlir: gelu)")
    assert lines[2] == "docs/0.md reaches nothing: a file that ci/matrix.toml lists"
    assert "GPU minutes (10 cells)" in lines[-1]


def test_the_step_summary_is_bounded(made: JobPlan) -> None:
    text = "\n".join(show.markdown(made))
    assert text.count("| `docs/") == show.SHOWN - 1
    assert "and 11 more files" in text


def test_outputs_of_a_step_are_one_line_each_and_say_which_matrix_is_empty(made: JobPlan) -> None:
    outputs = dict(line.split("=", 1) for line in show.github_outputs(made))
    assert all("\n" not in value for value in outputs.values())
    assert [job["target"] for job in json.loads(outputs["gpu"])["include"]] == ["sm_90"]
    assert outputs["any_gpu"] == "true"
    assert (json.loads(outputs["tools"]), outputs["any_tools"]) == ({"include": []}, "false")
