"""What a run of a workflow tells: a line for each step, the log of each job, and a table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from toolchain.files import write_whole

from .runner import Job, Run, Step

LAST = 12  # lines of a failed job


def line(job: Job, step: Step | None) -> str:
    if step is None:
        return f"{job.name}: {job.result}, {job.seconds:.1f} s"
    return f"  {job.name}: {step.name}: {step.result}, {step.seconds:.1f} s"


def file_name(job: Job) -> str:
    """A job's name as a file's."""
    return re.sub(r"[^\w.-]+", "-", job.name).strip("-")


def write(run: Run, output: Path) -> None:
    """Each job's log and step summary, as files in a folder."""
    for number, job in enumerate(run.jobs):
        name = f"{number:02d}-{file_name(job)}"
        write_whole(output / "logs" / f"{name}.log", "".join(f"{text}\n" for text in job.lines), parents=True)
        if job.summary:
            write_whole(output / "logs" / f"{name}.md", job.summary)


def table(run: Run, output: Path) -> Iterator[str]:
    """The jobs with their results, the last lines of each that failed, and where the rest is."""
    yield ""
    for job in run.jobs:
        where = f", at the step: {job.failed}" if job.failed else ""
        yield f"{job.result or 'not ended':9} {job.seconds:7.1f} s  {job.name}{where}"
    for job in run.jobs:
        if job.result != "success":
            yield f"\nthe last lines of {job.name}:"
            yield from (f"  {text}" for text in job.lines[-LAST:])
    if run.code:
        yield from (f"act: {error}" for error in run.errors)
    yield f"\nlogs, and what the jobs left: {output}"
