"""Measures two bundles beside each other, and once more what that leaves in doubt, in a process of its own."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.cases.cases import CASES
from benchmarks.harness.status import MACHINE, TRY_AGAIN
from benchmarks.report.result import Results
from conformance.retries import retries
from toolchain.errors import ToolFailed, UsageError

from .measurement import Key, measurements
from .thresholds import Thresholds
from .verdict import doubtful

BASE, NEW = "base", "new"
ANSWERS = (0, 1, 9, TRY_AGAIN)  # of `benchmarks gpu`: the results say which rows failed

Start = Callable[[Sequence[str]], int]


@dataclass(frozen=True)
class Job:
    """`bundle` is judged, `base` is what it is compared with. `case`: a pattern of the cases' names."""

    bundle: Path
    base: Path
    output: Path
    only: Sequence[str]
    case: str
    sources: Sequence[str]

    def expected(self) -> list[str]:
        """The names of its cases. Raises UsageError if there are none."""
        names = [one.name for one in CASES if one.group in self.only and re.search(self.case, one.name)]
        if not names:
            raise UsageError(
                f"no case of {', '.join(self.only)} matches {self.case!r}", hint="python -m benchmarks list shows all"
            )
        return names


def command(job: Job, case: str, rounds: int, output: Path, *, swapped: bool) -> list[str]:
    """One measurement, in a process of its own."""
    bundle, name, other = (job.base, NEW, job.bundle) if swapped else (job.bundle, BASE, job.base)
    sources = ["--sources", ",".join(job.sources)] if job.sources else []
    return [
        sys.executable, "-m", "benchmarks", "gpu", "--bundle", str(bundle), "--against", f"{name}={other}",
        "--peers", "", "--only", ",".join(job.only), "--case", case, "--samples", str(rounds), *sources,
        "--output", str(output),
    ]  # fmt: skip


def _start(argv: Sequence[str]) -> int:
    return subprocess.run(argv, check=False).returncode


def measure(job: Job, rules: Thresholds, start: Start = _start) -> tuple[Path, Path | None, list[str]]:
    """The results of the first measurement, and of the second, if there was a doubt; and why measurements were tried
    again, for each time. Raises ToolFailed if a measurement left no results, UsageError if no case matches."""
    job.expected()
    again: list[str] = []
    argv = command(job, job.case, rules.measure.rounds, job.output / "first", swapped=False)
    first = _results(argv, start, again)
    doubts = doubtful(measurements(Results.load(first), BASE), rules)
    if not doubts:
        return first, None, again
    print(f"measured again, with the bundles' roles swapped: {', '.join(map(' '.join, doubts))}", flush=True)
    argv = command(job, _pattern(doubts), rules.measure.again, job.output / "again", swapped=True)
    return first, _results(argv, start, again), again


def _pattern(keys: Sequence[Key]) -> str:
    """Cases, whatever the source: the others of a case are measured along."""
    return f"^(?:{'|'.join(dict.fromkeys(re.escape(case) for case, _ in keys))})$"


def _results(argv: Sequence[str], start: Start, again: list[str]) -> Path:
    """What a measurement wrote, after as many tries as retries.toml allows; `again` gets why there were more than one.
    The last has rows with errors if all were in vain, and these cells have no verdict."""
    table = retries()
    for _ in range(table.job):
        found, code = _measured(argv, start)
        if code != TRY_AGAIN:
            return found
        again.append(_why(found))
        print(f"tried again after an {again[-1]}", flush=True)
        time.sleep(table.pause_s)
    return _measured(argv, start)[0]


def _why(results: Path) -> str:
    """The first error of the machine that results name."""
    return next(row.detail for row in Results.load(results).rows if row.detail.startswith(MACHINE))


def _measured(argv: Sequence[str], start: Start) -> tuple[Path, int]:
    """What a measurement wrote, and its exit code. An older file is removed first: it must not stand for a run that
    wrote none."""
    folder = Path(argv[argv.index("--output") + 1])
    for old in folder.glob("*.json"):
        old.unlink()
    code = start(argv)
    found = sorted(folder.glob("*.json"))
    if code not in ANSWERS or len(found) != 1:
        told = f"it wrote {len(found)} results into {folder}; its messages stand above"
        raise ToolFailed(argv, code, told, version="this checkout's benchmarks", hint="run it alone")
    return found[0], code
