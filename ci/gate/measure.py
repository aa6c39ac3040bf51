"""Measures two bundles beside each other, and once more what that leaves in doubt, in a process of its own."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.cases.cases import CASES
from benchmarks.report.result import Results
from toolchain.errors import ToolFailed, UsageError

from .measurement import Key, measurements
from .thresholds import Thresholds
from .verdict import doubtful

BASE, NEW = "base", "new"
ANSWERS = (0, 1, 9)  # of `benchmarks gpu`: the results say which rows failed

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


def measure(job: Job, rules: Thresholds, start: Start = _start) -> tuple[Path, Path | None]:
    """The results of the first measurement, and of the second, if there was a doubt. Raises ToolFailed if a measurement
    left no results, UsageError if no case matches."""
    job.expected()
    first = _results(command(job, job.case, rules.measure.rounds, job.output / "first", swapped=False), start)
    doubts = doubtful(measurements(Results.load(first), BASE), rules)
    if not doubts:
        return first, None
    print(f"measured again, with the bundles' roles swapped: {', '.join(map(' '.join, doubts))}", flush=True)
    argv = command(job, _pattern(doubts), rules.measure.again, job.output / "again", swapped=True)
    return first, _results(argv, start)


def _pattern(keys: Sequence[Key]) -> str:
    """Cases, whatever the source: the others of a case are measured along."""
    return f"^(?:{'|'.join(dict.fromkeys(re.escape(case) for case, _ in keys))})$"


def _results(argv: Sequence[str], start: Start) -> Path:
    """What a measurement wrote. An older file is removed first: it must not stand for a run that wrote none."""
    folder = Path(argv[argv.index("--output") + 1])
    for old in folder.glob("*.json"):
        old.unlink()
    code = start(argv)
    found = sorted(folder.glob("*.json"))
    if code not in ANSWERS or len(found) != 1:
        told = f"it wrote {len(found)} results into {folder}; its messages stand above"
        raise ToolFailed(argv, code, told, version="this checkout's benchmarks", hint="run it alone")
    return found[0]
