from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ci.report import load
from ci.report.runs import machine, table
from ci.report.summary import headline, verdict
from toolchain.errors import UsageError

from .conftest import bench_row, make_origin, make_row, two_machines

Save = Callable[..., Path]


@pytest.mark.parametrize(
    ("executor", "target", "name"),
    [
        ("cuda:1 NVIDIA H100 80GB HBM3 sm_90", "sm_90", "NVIDIA H100 80GB HBM3"),
        ("cpu interpreter", "cpu", "CPU interpreter"),
        ("native tools", "native", "C++ tools"),
    ],
)
def test_a_machine_has_the_same_name_whatever_the_number_of_its_gpu(executor: str, target: str, name: str) -> None:
    assert machine(executor, target) == name


def test_a_line_says_it_all(save: Save, save_times: Save) -> None:
    runs = [*two_machines(save), *load([save_times("b.json", bench_row())])]
    assert verdict(runs) == "failed"
    assert headline(runs) == "1 of 3 passed, 1 failed, 1 error, 1 not run, 1 timed · NVIDIA H100, NVIDIA H200"


def test_of_a_shape_that_ran_twice_the_last_result_counts(save: Save) -> None:
    old = save("old.json", make_row("failed"), origin=make_origin(date="2026-11-20T04:00:00Z"))
    new = save("new.json", make_row(), origin=make_origin())
    assert headline(load([new, old])) == "1 of 1 passed · NVIDIA H200"
    assert verdict(load([new, old])) == "passed"
    other = save("other.json", make_row("failed", executor="cuda:0 NVIDIA H100 sm_90"))
    assert verdict(load([new, other])) == "failed"


def test_a_wrong_result_of_the_benchmarks_is_a_failure(save_times: Save) -> None:
    assert verdict(load([save_times("a.json", bench_row())])) == "passed"
    assert verdict(load([save_times("b.json", bench_row(status="wrong"))])) == "failed"


def test_nothing_ran(save: Save) -> None:
    assert verdict(load([save("r.json", make_row("not run"))])) == "nothing"


def test_what_is_no_file_of_the_benchmarks(tmp_path: Path, save_times: Save) -> None:
    path = save_times("b.json", {"group": "ops"})
    with pytest.raises(UsageError, match="no results of the benchmarks"):
        load([path])
    path.write_text(json.dumps({"format": 9, "kind": "benchmarks"}))
    with pytest.raises(UsageError, match="format 9"):
        load([path])
    with pytest.raises(UsageError, match="no such file"):
        load([tmp_path / "absent.json"])


def test_what_another_tool_wrote(tmp_path: Path) -> None:
    path = tmp_path / "diff.json"
    assert table(None, "changed", "tilestack diff --json") is None
    for text, said in (
        (None, "cannot be read"), ("{", "is no JSON"), ("[]", "has no list"), ("{}", "has no list"),
        ('{"changed": 1}', "has no list 'changed'\n  next: it should be what `tilestack diff --json` writes"),
    ):  # fmt: skip
        if text is not None:
            path.write_text(text)
        with pytest.raises(UsageError) as error:
            table(path, "changed", "tilestack diff --json")
        assert said in str(error.value)
    path.write_text('{"changed": []}')
    assert table(path, "changed", "tilestack diff --json") == {"changed": []}
