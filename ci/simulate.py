"""`python -m ci.simulate`: how long a whole run of CI takes on 1 to 100 runners, from measured times.

The work: every entry for every target of the nightly event, then every cell on GPUs. The seconds of a compile are those
of `benchmarks/results/cpu.json`, where each kernel was assembled alone for one target; others are taken to be equal.
The other times stand in `[seconds]` of ci/matrix.toml. Nothing is drawn at random.
"""

from __future__ import annotations

import argparse
import heapq
import json
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.report.svg import Panel, Picture, Scale
from toolchain import command
from toolchain.contract.entries import entries_of
from toolchain.files import write_whole
from toolchain.knobs import ROOT

from .matrix import Matrix, Seconds
from .plan.jobs import plan

TIMES = ROOT / "benchmarks/results/cpu.json"
RUNNERS = (1, 2, 5, 10, 20, 50, 100)
CORES = 2  # of a hosted runner: what the times were measured on
FOUND = 0.02  # seconds for an entry of the shared cache: 768 entries in 9.4 to 15.5 s (docs/cache.md)
COLORS = ("#c05a11", "#1b6ca8", "#7a3b9a")


@dataclass(frozen=True)
class Compile:
    """One cubin: its op, and the core seconds that compiling it takes."""

    op: str
    seconds: float


def measured(path: Path = TIMES) -> dict[str, float]:
    """Seconds by `source/symbol`."""
    rows = json.loads(path.read_text())["measurements"]
    return {
        row["name"].split()[1]: row["median"] / 1e3
        for row in rows
        if row["detail"] and row["name"].startswith("assemble ")
    }


def compiles(matrix: Matrix) -> list[Compile]:
    """Every cubin of the nightly event. A kernel that was not measured takes the median."""
    times, event = measured(), matrix.events["nightly"]
    usual = statistics.median(times.values())
    specs = [spec for source in event.sources for spec in entries_of(source)]
    return [
        Compile(spec.op, times.get(f"{spec.source}/{spec.symbol}", usual))
        for target in event.targets
        for spec in specs
        if spec.runs_on(target)
    ]


def makespan(costs: Sequence[float], workers: int) -> float:
    """Seconds until the last of the workers has finished, if each next longest piece goes to the first free worker."""
    busy = [0.0] * workers
    for cost in sorted(costs, reverse=True):
        heapq.heapreplace(busy, busy[0] + cost)
    return max(busy)


@dataclass(frozen=True)
class Result:
    """Seconds of the whole run, and minutes for which GPUs are held."""

    runners: int
    seconds: float
    gpu_minutes: float


def simulate(work: Sequence[Compile], made: set[str], cells: int, seconds: Seconds, runners: int) -> Result:
    """So many hosted runners, then as many with a GPU. `made`: ops that are compiled; the rest is found."""
    costs = [each.seconds if each.op in made else FOUND for each in work]
    compiling = seconds.hosted_start + makespan(costs, CORES * runners)
    used = min(runners, cells)
    checking = seconds.gpu_start + makespan([seconds.gpu_cell] * cells + [seconds.gpu_gate], used)
    held = (used * seconds.gpu_start + cells * seconds.gpu_cell + seconds.gpu_gate) / 60
    return Result(runners, compiling + checking, held)


def cases(work: Sequence[Compile]) -> dict[str, set[str]]:
    """Which ops are compiled: all, the one whose kernels take longest, none."""
    total: dict[str, float] = {}
    for each in work:
        total[each.op] = total.get(each.op, 0.0) + each.seconds
    longest = max(total, key=lambda op: total[op])
    return {"empty cache": set(total), f"{longest} changed": {longest}, "everything found": set()}


def markdown(results: Mapping[str, Sequence[Result]], hits: Mapping[str, float]) -> str:
    """The table of docs/cache.md."""
    names = [f"{name}, {100 * hits[name]:.0f} % found: minutes" for name in results]
    lines = [f"| runners | {' | '.join(names)} | GPU minutes |", "|---|" + "---|" * (len(names) + 1)]
    for row in zip(*results.values(), strict=True):
        words = [f"{one.seconds / 60:.1f}" for one in row]
        lines.append(f"| {row[0].runners} | {' | '.join(words)} | {row[0].gpu_minutes:.0f} |")
    return "\n".join([*lines, ""])


def picture(results: Mapping[str, Sequence[Result]]) -> Picture:
    title = "A whole nightly run, simulated"
    made = Picture(640, 400, title)
    minutes = [one.seconds / 60 for rows in results.values() for one in rows]
    y = Scale(min(minutes) / 1.4, max(minutes) * 1.4, 300, 40, log=True)
    panel = Panel(made, Scale(0.9, 110, 70, 610, log=True), y)
    panel.frame(title, "runners of each kind", "minutes")
    for (name, rows), color in zip(results.items(), COLORS, strict=True):
        panel.curve([(one.runners, one.seconds / 60) for one in rows], color, name)
    made.legend(70, 356, [(name, color, "") for name, color in zip(results, COLORS, strict=True)])
    return made


def main(argv: Sequence[str] | None = None) -> int:
    top = argparse.ArgumentParser(prog="python -m ci.simulate", description="A run of CI on 1 to 100 runners.")
    top.add_argument("--output", type=Path, default=ROOT / "docs/runners", metavar="DIR", help="default docs/runners")
    args = top.parse_args(argv)
    return command.run(lambda: _write(args.output), set_up="nox -s build_toolchain")


def _write(output: Path) -> None:
    matrix = Matrix.load()
    work = compiles(matrix)
    cells = plan(matrix, matrix.events["nightly"], None).cells
    chosen = cases(work)
    results = {
        name: [simulate(work, made, cells, matrix.seconds, runners) for runners in RUNNERS]
        for name, made in chosen.items()
    }
    hits = {name: sum(each.op not in made for each in work) / len(work) for name, made in chosen.items()}
    told = (
        f"{len(work)} cubins of {sum(each.seconds for each in work) / 3600:.2f} core hours, {cells} cells on GPUs.\n\n"
    )
    write_whole(output / "runners.svg", picture(results).render(), parents=True)
    write_whole(output / "runners.md", told + markdown(results, hits))


if __name__ == "__main__":
    sys.exit(main())
