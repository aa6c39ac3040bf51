"""The matrix in processes: the same rows as in one, and an end that says what happened."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import pytest

from conformance.cases import Case
from conformance.jobs import Job, Plan, Site, run_here, run_in_processes
from conformance.matrix import op_jobs
from conformance.result import Row
from toolchain.bundle import Bundle, write
from toolchain.errors import ConformanceError
from toolchain.runtime import CpuExecutor

CASES = [Case("gelu", {"M": rows, "N": 8}, "") for rows in (1, 2, 3)]


@dataclass(frozen=True)
class Dies:
    """Its process ends as it is unpacked there."""

    def __reduce__(self) -> tuple[object, tuple[int]]:
        return os._exit, (3,)

    def __call__(self, site: Site) -> Iterator[Row]:
        raise AssertionError(site)


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    return write(tmp_path / "bundle", [], {})


def test_processes_give_the_rows_of_one(bundle: Bundle) -> None:
    """Of an empty bundle: each row is an error that names its case."""
    jobs = op_jobs(CASES, ["f32", "bf16"], None)
    here = list(run_here(jobs, Site(bundle, CpuExecutor(), ["mlir", "py"], 7, nullcontext())))
    assert [number for number, _ in here] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    apart = list(run_in_processes(jobs, Plan(bundle.root, "cpu", ["mlir", "py"], 7), 2))
    assert sorted(apart, key=lambda pair: pair[0]) == here


def test_a_process_that_dies_is_an_error_that_says_what_to_do(bundle: Bundle) -> None:
    with pytest.raises(ConformanceError, match="ended without an answer") as caught:
        list(run_in_processes([Job(1, Dies())], Plan(bundle.root, "cpu", ["mlir"], 1), 1))
    assert "--jobs 1" in str(caught.value)
