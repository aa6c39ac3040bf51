"""`python -m ci.plan.history`: what the last commits of this repository would have run, each planned as a pull request.

The commits' paths are planned by today's tables and imports, so a path that is gone by now is one of which nothing is
known: it reaches everything.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from toolchain import command
from toolchain.knobs import ROOT
from toolchain.pinned.manifest import REPAIR

from ..matrix import STAGES, Matrix
from .graph import Graph, Reach, git, union
from .jobs import JobPlan, plan

FELL = ("nothing is known", "no stage is known")  # how a reach begins that is everything for want of knowledge


@dataclass(frozen=True)
class Planned:
    """A commit with its plan. `fell`: its paths that reach everything only because nothing is known of them."""

    commit: str
    made: JobPlan
    fell: Sequence[Reach]

    @property
    def kind(self) -> str:
        stages = union(self.made.reaches)
        if not stages:
            return "nothing: no bundle, no GPU"
        if not all(reach.narrow for reach in self.made.reaches if reach.stages):
            return "everything" if stages == frozenset(STAGES) else "some stages, every op"
        return "some ops"


def changed(count: int, root: Path = ROOT) -> Mapping[str, list[str]]:
    """The paths of each of the last commits without merges, newest first. Raises UsageError."""
    found: dict[str, list[str]] = {}
    log = git(root, "log", f"-{count}", "--no-merges", "--no-renames", "--name-only", "--format=commit %h", "-z")
    commit = ""
    for word in filter(None, log.replace("\n", "\0").split("\0")):
        if word.startswith("commit "):
            commit = word.removeprefix("commit ")
            found[commit] = []
        else:
            found[commit].append(word)
    return found


def planned(matrix: Matrix, graph: Graph, commits: Mapping[str, Sequence[str]]) -> list[Planned]:
    event = matrix.events["pull_request"]
    rows: list[Planned] = []
    for commit, paths in commits.items():
        reaches = [graph.reach(path) for path in paths]
        fell = [reach for reach in reaches if reach.why.startswith(FELL)]
        rows.append(Planned(commit, plan(matrix, event, reaches), fell))
    return rows


def markdown(rows: Sequence[Planned], root: Path = ROOT) -> Iterator[str]:
    """A table of the kinds of plans, then the paths that fell through most often."""
    yield "| a commit runs | commits | jobs, median | GPU minutes, median | hosted minutes, median |"
    yield "|---|---|---|---|---|"
    kinds = Counter(row.kind for row in rows)
    for kind, count in kinds.most_common():
        plans = [row.made for row in rows if row.kind == kind]
        jobs = statistics.median(sum(map(len, made.kinds.values())) for made in plans)
        gpu = statistics.median(made.minutes("gpu") for made in plans)
        hosted = statistics.median(made.minutes("compile", "interpret", "tools") for made in plans)
        yield f"| {kind} | {count} | {jobs:g} | {gpu:.1f} | {hosted:.0f} |"
    total = sum(row.made.minutes("gpu") for row in rows)
    yield f"\n{len(rows)} commits, {total:.0f} GPU minutes in all.\n"
    gone = sum(not (root / reach.path).exists() for row in rows for reach in row.fell)
    only = sum(bool(row.fell) and all(r in row.fell or not r.stages for r in row.made.reaches) for row in rows)
    some = sum(bool(row.fell) for row in rows)
    yield f"{some} commits have a path that fell through to everything; of {only} it is the only reason. {gone} such"
    yield "paths are gone by now.\n"
    yield "| fell through | commits | why |\n|---|---|---|"
    paths = Counter((r.path, r.why) for row in rows for r in row.fell if (root / r.path).exists())
    for (path, why), count in paths.most_common(12):
        yield f"| `{path}` | {count} | {why} |"


def main(argv: Sequence[str] | None = None) -> int:
    top = argparse.ArgumentParser(prog="python -m ci.plan.history", description="Plan the last commits.")
    top.add_argument("--commits", type=int, default=100, help="default 100")
    args = top.parse_args(argv)
    return command.run(lambda: _main(args.commits), set_up=REPAIR)


def _main(count: int) -> None:
    matrix = Matrix.load()
    print(*markdown(planned(matrix, Graph(matrix), changed(count))), sep="\n")


if __name__ == "__main__":
    sys.exit(main())
