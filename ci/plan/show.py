"""A plan for a terminal, for the step summary, and for the jobs that follow."""

from __future__ import annotations

import json
from collections.abc import Iterator

from .jobs import JobPlan

SHOWN = 20  # paths of a change in the step summary


def text(plan: JobPlan) -> Iterator[str]:
    """Lines for a terminal."""
    yield reason(plan)
    for reach in plan.reaches:
        ops = "; ".join(f"{source}: {', '.join(sorted(ops))}" for source, ops in reach.ops.items())
        stages = ", ".join(sorted(reach.stages)) or "nothing"
        yield f"{reach.path} reaches {stages}: {reach.why}{f' ({ops})' if ops else ''}"
    for kind, jobs in plan.kinds.items():
        for job in jobs:
            optional = "" if job.required else ", may fail"
            yield f"{kind:9} {job.name:20} {job.minutes:5.1f} min{optional}  {job.local}"
    yield summary(plan)


def reason(plan: JobPlan) -> str:
    """What is planned, and why."""
    planned = "everything" if plan.full else "what the change reaches" if any(plan.kinds.values()) else "no job"
    return f"planned: {planned}; {plan.why}" if plan.why else f"planned: {planned}"


def summary(plan: JobPlan) -> str:
    jobs = sum(map(len, plan.kinds.values()))
    gpu, hosted = plan.minutes("gpu", "bench"), plan.minutes("compile", "interpret", "tools")
    return f"{plan.event}: {jobs} jobs, about {gpu:.1f} GPU minutes ({plan.cells} cells), {hosted:.0f} hosted minutes"


def markdown(plan: JobPlan) -> Iterator[str]:
    """The plan for GitHub's step summary."""
    yield f"### Plan\n\n{summary(plan)}\n"
    yield f"P{reason(plan)[1:]}.\n"
    if plan.reaches:
        yield "| changed | reaches | why |\n|---|---|---|"
        for reach in plan.reaches[:SHOWN]:
            yield f"| `{reach.path}` | {', '.join(sorted(reach.stages)) or 'nothing'} | {reach.why} |"
        if more := len(plan.reaches) - SHOWN:
            yield f"\nand {more} more files\n" if more > 0 else ""
    yield "\n| job | minutes | required | the same on a laptop |\n|---|---|---|---|"
    for jobs in plan.kinds.values():
        for job in jobs:
            yield f"| {job.name} | {job.minutes:.1f} | {'yes' if job.required else 'no'} | `{job.local}` |"


def github_outputs(plan: JobPlan) -> Iterator[str]:
    """Lines for the file that GITHUB_OUTPUT names: of each kind a matrix for fromJSON, and whether it has a job, for an
    empty matrix is an error there."""
    for kind, jobs in plan.to_json()["jobs"].items():
        yield f"{kind}={json.dumps({'include': jobs}, separators=(',', ':'))}"
        yield f"any_{kind}={json.dumps(bool(jobs))}"
