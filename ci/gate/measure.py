"""Measures two bundles beside each other, and once more what that leaves in doubt, in a process of its own."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.cases.cases import CASES, Case
from benchmarks.harness.kernels import choose
from benchmarks.harness.status import MACHINE, TRY_AGAIN
from benchmarks.report.result import Results
from conformance.jobs.retries import retries
from toolchain.bundles.bundle import Bundle
from toolchain.errors import ToolFailed, UsageError

from .measurement import Key, measurements
from .same_code import same_cells
from .thresholds import Thresholds
from .verdict import doubtful

BASE, NEW = "base", "new"
ANSWERS = (0, 1, 9, TRY_AGAIN)  # of `benchmarks gpu`: the results say which rows failed

Start = Callable[[Sequence[str]], int]


@dataclass(frozen=True)
class Job:
    """`bundle` is judged, `base` is what it is compared with. `case`: a pattern of the cases' names. `all_cells`:
    measure those of the same machine code too."""

    bundle: Path
    base: Path
    output: Path
    only: Sequence[str]
    case: str
    sources: Sequence[str]
    all_cells: bool = False

    def cases(self) -> list[Case]:
        """Raises UsageError if there are none."""
        found = [one for one in CASES if one.group in self.only and re.search(self.case, one.name)]
        if not found:
            raise UsageError(
                f"no case of {', '.join(self.only)} matches {self.case!r}", hint="python -m benchmarks list shows all"
            )
        return found


@dataclass(frozen=True)
class Measured:
    """The results of the first measurement and of the second; None if there was nothing to measure, or no doubt.
    `same`: the cells that were left out because of their machine code. `retries`: why measurements were tried again,
    for each time."""

    first: Path | None
    again: Path | None = None
    same: Sequence[Key] = ()
    retries: Sequence[str] = ()


def command(
    job: Job, case: str, rounds: int, output: Path, *, swapped: bool, only: Sequence[str] = ()
) -> list[str]:  # fmt: skip
    """One measurement, in a process of its own. `only`: of these sources; none means those of the job."""
    bundle, name, other = (job.base, NEW, job.bundle) if swapped else (job.bundle, BASE, job.base)
    sources = ["--sources", ",".join(only or job.sources)] if only or job.sources else []
    return [
        sys.executable, "-m", "benchmarks", "gpu", "--bundle", str(bundle), "--against", f"{name}={other}",
        "--peers", "", "--only", ",".join(job.only), "--case", case, "--samples", str(rounds), *sources,
        "--output", str(output),
    ]  # fmt: skip


def start_process(argv: Sequence[str]) -> int:
    return subprocess.run(argv, check=False).returncode


def measure(job: Job, rules: Thresholds, start: Start = start_process) -> Measured:
    """Measures the cells whose machine code differs, and those in doubt a second time. Raises ToolFailed if a
    measurement left no results, UsageError if no case matches, BundleError."""
    cases, bundle, base = job.cases(), Bundle.load(job.bundle), Bundle.load(job.base)
    cells = [(case.name, source) for case in cases for source in _sources(job, bundle, base)]
    same = [] if job.all_cells else same_cells(bundle, base, cases, job.sources)
    differ = [cell for cell in cells if cell not in same]
    if same:
        print(f"{len(same)} of {len(cells)} cells have the same machine code, and are not measured", flush=True)
    if not differ:
        return Measured(None, same=same)
    tried: list[str] = []
    case = _pattern(differ) if same else job.case
    only = list(dict.fromkeys(source for _, source in differ)) if same else []
    argv = command(job, case, rules.measure.rounds, job.output / "first", swapped=False, only=only)
    first = measured(argv, start, tried)
    doubts = [key for key in doubtful(measurements(Results.load(first), BASE), rules) if key not in same]
    if not doubts:
        return Measured(first, None, same, tried)
    print(f"measured again, with the bundles' roles swapped: {', '.join(map(' '.join, doubts))}", flush=True)
    argv = command(job, _pattern(doubts), rules.measure.again, job.output / "again", swapped=True, only=only)
    return Measured(first, measured(argv, start, tried), same, tried)


def _sources(job: Job, bundle: Bundle, base: Bundle) -> list[str]:
    return [kernels.source for kernels in choose(bundle, {BASE: base}, job.sources) if not kernels.against]


def _pattern(keys: Sequence[Key]) -> str:
    """Cases, whatever the source: the others of a case are measured along."""
    return f"^(?:{'|'.join(dict.fromkeys(re.escape(case) for case, _ in keys))})$"


def measured(argv: Sequence[str], start: Start, again: list[str]) -> Path:
    """What a measurement wrote, after as many tries as retries.toml allows; `again` gets why there were more than one.
    The last has rows with errors if all were in vain, and these cells have no verdict."""
    table = retries()
    for _ in range(table.job):
        found, code = _once(argv, start)
        if code != TRY_AGAIN:
            return found
        again.append(_why(found))
        print(f"tried again after an {again[-1]}", flush=True)
        time.sleep(table.pause_s)
    return _once(argv, start)[0]


def _why(results: Path) -> str:
    """The first error of the machine that results name."""
    return next(row.detail for row in Results.load(results).rows if row.detail.startswith(MACHINE))


def _once(argv: Sequence[str], start: Start) -> tuple[Path, int]:
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
