"""Runs a benchmark in several processes: each case with torch.compile as a peer gets its own.

After two compiled forwards in one process the driver reported a launch failure in PyTorch's own graph. A lost device
makes every later case in that process fail. The results are merged after each process.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from toolchain.errors import ConformanceError

from ..cases.cases import Case, OpCase
from ..cases.options import Options
from ..report.result import Results, join

Start = Callable[[Sequence[str]], int]


def parts(cases: Sequence[Case], peers: Sequence[str]) -> list[list[Case]]:
    """The cases of each process, in their order. A case with a model and torch.compile gets a process of its own."""
    found: list[list[Case]] = []
    together = False  # whether the last part takes more
    for case in cases:
        alone = "compile" in peers and not isinstance(case, OpCase) and case.compiled
        if alone or not together:
            found.append([])
        found[-1].append(case)
        together = not alone
    return found


def command(options: Options, part: Sequence[Case], output: Path, left_s: float) -> list[str]:
    """The command that measures one part. `left_s`: no case is begun after this many seconds; 0 means no limit."""
    names = "|".join(re.escape(case.name) for case in part)
    groups = dict.fromkeys(case.group for case in part)
    sources = ["--sources", ",".join(options.sources)] if options.sources else []
    against = [word for name, folder in options.against.items() for word in ("--against", f"{name}={folder}")]
    return [
        sys.executable, "-m", "benchmarks", "gpu", "--bundle", str(options.bundle), "--output", str(output),
        "--only", ",".join(groups), "--case", f"^(?:{names})$", "--samples", str(options.samples),
        "--peers", ",".join(options.peers), "--limit", str(options.limit_s), "--stop-after", str(left_s),
        "--tree", json.dumps(dict(options.tree)), *sources, *against,
        "--at-least", str(options.at_least),
    ]  # fmt: skip


def _start(argv: Sequence[str]) -> int:
    return subprocess.run(argv, check=False).returncode


def run(options: Options, found: Sequence[Sequence[Case]], start: Start = _start) -> int:
    """Measure the parts one after the other, and save the merged results after each. Returns the exit code: that of
    ConformanceError if an output was wrong, 1 if a process or a kernel of ours failed, or a case was not measured."""
    began, codes = time.perf_counter(), set[int]()
    paths: list[Path] = []
    for number, part in enumerate(found):
        left = 0.0
        if options.stop_after_s:
            left = options.stop_after_s - (time.perf_counter() - began)
            if left <= 0:
                print(f"stopped: {sum(map(len, found[number:]))} cases are not measured", flush=True)
                break
        output = options.output / "parts" / str(number)
        for old in output.glob("*.json"):  # the results of an earlier run
            old.unlink()
        code = start(command(options, part, output, left))
        codes.add(code)
        made = sorted(output.glob("*.json"))
        if lost := _lost(part, made):
            print(f"not measured, their process ended with code {code}:", *lost, sep="\n  ", flush=True)
            over = options.stop_after_s and time.perf_counter() - began > options.stop_after_s
            codes.add(0 if over else 1)  # a process that stopped because its time was over did not fail
        if not made:
            continue
        paths += made
        runs = [Results.load(path) for path in paths]
        joined = join(runs, [str(path) for path in paths])
        if joined.origin:  # the command of all parts, not that of the last
            joined = replace(joined, origin=replace(joined.origin, command=options.words))
        joined.save(options.output / joined.file_name)
    if paths:
        print(f"wrote {options.output / Results.load(paths[0]).file_name}, of {len(paths)} processes", flush=True)
    return ConformanceError.exit_code if ConformanceError.exit_code in codes else int(codes != {0})


def _lost(part: Sequence[Case], made: Sequence[Path]) -> list[str]:
    """The names of the cases without a row in the results of their process."""
    measured = {row.case for path in made for row in Results.load(path).rows}
    return [case.name for case in part if case.name not in measured]
