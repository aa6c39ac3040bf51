"""Tries a job again after an error of the machine: a lost GPU, damaged memory, a process that gives no answer.

`retries.toml` declares these errors. After one the CUDA context is dead, so the job runs in a new process. Every retry
stands in the journal, and from there in the results. A wrong number is a result: it is never tried again.
"""

from __future__ import annotations

import functools
import time
from collections import Counter
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from toolchain.errors import DeviceError
from toolchain.tables import Check, check_keys, is_table, natural, read_table, tables, text

from ..results.result import CellResult

TABLE = Path(__file__).parents[1] / "retries.toml"
LIMITS: Mapping[str, Check] = {"job": natural, "run": natural, "pause_s": natural, "silent_s": natural}
ERROR: Mapping[str, Check] = {"code": natural, "name": text, "why": text}

Rows = Generator[tuple[int, list[CellResult]]]  # the number and the rows of each job that ends


@dataclass(frozen=True)
class Retries:
    """The table. `why`: what each declared error means, by its code."""

    job: int
    run: int
    pause_s: int
    silent_s: int
    why: Mapping[int, str]


class DeviceLost(Exception):
    """A declared error ended these jobs. Their process, or its context, is gone."""

    def __init__(self, jobs: Sequence[int], why: str) -> None:
        super().__init__(why)
        self.jobs, self.why = jobs, why


def load(path: Path = TABLE) -> Retries:
    """Read and check the table. Raises UsageError."""
    table = read_table(path)
    check_keys(table, {"limits": is_table, "error": tables}, str(path))
    check_keys(table["limits"], LIMITS, f"{path}: limits")
    for row in table["error"]:
        check_keys(row, ERROR, f"{path}: error {row.get('code')}")
    return Retries(**table["limits"], why={row["code"]: row["why"] for row in table["error"]})


@functools.cache
def retries() -> Retries:
    """The table of this repository."""
    return load()


def declared(error: Exception) -> str:
    """What a declared error means; empty for any other."""
    code = error.code if isinstance(error, DeviceError) else None
    return "" if code is None else retries().why.get(code, "")


def with_retries(
    jobs: Collection[int],
    first: Callable[[Collection[int]], Rows],
    again: Callable[[Collection[int]], Rows],
    *,
    note: Callable[[int, str], object],
    give_up: Callable[[int, str], list[CellResult]],
    table: Retries,
    pause: Callable[[float], object] = time.sleep,
) -> Rows:
    """Run the jobs with `first`; after a DeviceLost those that are left with `again`, which starts new processes.

    `note` gets each retry: the job, and why. `give_up` makes the rows of a job that was tried too often. Raises
    DeviceError when `table.run` is exceeded."""
    left, run, tries, starts = list(jobs), first, Counter[int](), 0
    while left:
        try:
            with closing(run(tuple(left))) as rows:
                for number, found in rows:
                    left.remove(number)
                    yield number, found
        except DeviceLost as lost:
            starts += 1
            if starts > table.run:
                raise DeviceError(
                    f"errors of the machine ended the run's processes {starts} times, at last: {lost.why}",
                    hint="`python3 -m ci.runner health` checks the GPU; --resume runs the rest",
                ) from lost
            for number in lost.jobs:
                tries[number] += 1
                if tries[number] <= table.job:
                    note(number, lost.why)
                else:
                    left.remove(number)
                    yield number, give_up(number, f"{lost.why}; tried {tries[number]} times")
            pause(table.pause_s)
            run = again
