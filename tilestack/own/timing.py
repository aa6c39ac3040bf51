"""Times the cells of a recording, beside those of another one, in turns: rows of benchmarks, which the gate judges.

A sample is a graph of back-to-back runs over several copies of the arrays, so that none is in the L2 cache, with at
least SAMPLE_US of work. What a kernel writes besides its outputs is set again before each run, which is timed along.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.cases.cases import Group
from benchmarks.harness import environment
from benchmarks.harness.harness import Contender, Maker, MeasurementPlan, rows, run_contenders
from benchmarks.harness.our_side import OurSide
from benchmarks.harness.status import exit_code
from benchmarks.report.result import BenchmarkRow, Results
from benchmarks.report.table import headline, summary
from conformance.ops.compare import Verdict, loosest
from toolchain.errors import DeviceError, UsageError
from toolchain.runtime import Executor, smi

from .problem import SOURCE
from .recording import Cell, Recording
from .replay import Played, check_targets, timed_cells

SAMPLE_US = 200.0
CALLS_MAX, SETS_MAX = 256, 64
FLUSHED = 256 << 20  # bytes that are written between samples: more than any L2 cache holds


@dataclass(frozen=True)
class TimedCase:
    """A cell as a case of the benchmarks."""

    name: str
    dtype: str
    shape: str
    dims: Mapping[str, int]
    group: Group = "ops"


@dataclass
class _Sample:
    """How many runs a sample has, over how many copies of the arrays: the same for both sides of a case."""

    sets: int = 0
    calls: int = 0


def named(recording: Recording) -> dict[str, Cell]:
    """The timed cells by the names of their cases."""
    return {case_name(cell): cell for cell in timed_cells(recording)}


def case_name(cell: Cell) -> str:
    return f"{cell.op} {shape_of(cell)} {cell.dtype}"


def shape_of(cell: Cell) -> str:
    return " ".join(f"{name}={size}" for name, size in cell.sizes.items())


def measure(
    executor: Executor, recording: Recording, others: Mapping[str, Recording], pattern: str, samples: int,
    output: Path, say: Callable[[str], object],
) -> tuple[Results, int]:  # fmt: skip
    """Checks and times the cells whose names have a match, and saves after each. Returns the results, and the exit
    code of a benchmark. Raises UsageError if there is none."""
    cells = {name: cell for name, cell in named(recording).items() if re.search(pattern, name)}
    if not cells:
        raise UsageError(
            f"no timed cell of {recording.root} matches {pattern!r}", hint=f"it has {', '.join(named(recording))}"
        )
    for one in (recording, *others.values()):
        check_targets(executor, one)
    state = _State(executor)
    results = Results(_environment(executor, state, recording, others), {}, [])
    ours = OurSide(executor, FLUSHED if executor.kind == "cuda" else 0)
    plan = MeasurementPlan(samples, 0, lambda: not state.lost, say)
    for number, (name, cell) in enumerate(cells.items(), 1):
        say(f"[{number}/{len(cells)}] {name}")
        before = state.read()
        made = _rows(executor, ours, plan, (recording, cell), _same(others, name), state, before)
        for row in headline(made):
            say(f"  = {summary(row)}")
        results = Results(results.environment, {}, [*results.rows, *made])
        results.save(output / results.file_name)
    return results, exit_code(results, [])


def _same(others: Mapping[str, Recording], name: str) -> dict[str, tuple[Recording, Cell]]:
    found = {other: (recording, named(recording).get(name)) for other, recording in others.items()}
    return {other: (recording, cell) for other, (recording, cell) in found.items() if cell is not None}


def _rows(
    executor: Executor, ours: OurSide, plan: MeasurementPlan, new: tuple[Recording, Cell],
    others: Mapping[str, tuple[Recording, Cell]], state: _State, before: Mapping[str, str],
) -> list[BenchmarkRow]:  # fmt: skip
    sample, (_, cell) = _Sample(), new
    build = functools.partial(_contender, executor, ours, sample)
    makers = [Maker(SOURCE, "ours", functools.partial(build, *new))]
    makers += [
        Maker(f"{name} {SOURCE}", "against", functools.partial(build, *side), beside=SOURCE)
        for name, side in others.items()
    ]
    outcomes = run_contenders(makers, plan)
    case = TimedCase(case_name(cell), cell.dtype, shape_of(cell), cell.sizes)
    return rows(case, outcomes, {}, gpu_before=before, gpu_after=state.read())


def _contender(executor: Executor, ours: OurSide, sample: _Sample, recording: Recording, cell: Cell) -> Contender:
    loaded: dict[str, Any] = {}
    played = [Played(executor, recording, cell, loaded)]
    if not sample.sets:
        l2 = l2_bytes(executor)
        sample.sets = max(1, min(SETS_MAX, math.ceil(2 * l2 / played[0].nbytes)))
        us = max(executor.time_us(played[0].run, 3), 0.1)
        sample.calls = sample.sets * math.ceil(min(CALLS_MAX, math.ceil(SAMPLE_US / us)) / sample.sets)
    played += [Played(executor, recording, cell, loaded) for _ in range(sample.sets - 1)]
    for one in played:  # a capture must not load kernels
        one.run()
    executor.synchronize()
    with executor.capture() as graph:
        for index in range(sample.calls):
            played[index % sample.sets].run()

    def check() -> _Checked:
        for one in played:
            one.poison()
        graph.replay()
        return _Checked(loosest(one.check() for one in played))

    entry = ", ".join(dict.fromkeys(launch.symbol for launch in cell.launches))
    return Contender(check, functools.partial(ours.time_us, graph.replay), sample.calls, sample.sets, entry)


@dataclass(frozen=True)
class _Checked:
    """The loosest verdict on a cell's outputs, as a row has it."""

    verdict: Verdict

    def to_json(self) -> dict[str, float]:
        return {"worst": self.verdict.error, "worst_bound": self.verdict.bound}


def l2_bytes(executor: Executor) -> int:
    """Of a GPU's L2 cache; 0 on a CPU."""
    if executor.kind != "cuda":
        return 0
    from toolchain.runtime.cuda import CudaExecutor

    assert isinstance(executor, CudaExecutor)
    attribute = executor.driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE
    return int(executor.ask("cuDeviceGetAttribute", attribute, executor.device[1]))


class _State:
    """What nvidia-smi says of the executor's GPU, and whether the device is lost."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self.name = smi.name_of(executor.device[1]) if executor.kind == "cuda" else ""

    def read(self) -> Mapping[str, str]:
        return smi.read(self.name) if self.name else {}

    def query(self, field: str) -> str:
        found = smi.query([field], self.name) if self.name else None
        return found[0] if found else ""

    @property
    def lost(self) -> bool:
        try:
            self._executor.synchronize()
        except DeviceError:
            return True
        return False


def _environment(
    executor: Executor, state: _State, recording: Recording, others: Mapping[str, Recording]
) -> dict[str, Any]:
    gpu = state.query("name") or executor.name
    against = {name: described(other) for name, other in others.items()}
    own = described(recording)
    return {
        "gpu": gpu, "target": executor.target or "", "sms": executor.sms, "driver": state.query("driver_version"),
        **environment.host(), **own, "bundle_commit": own["commit"], **({"against": against} if against else {}),
    }  # fmt: skip


def described(recording: Recording) -> dict[str, Any]:
    """Its commit, its hash and the tools that compiled it."""
    commit = recording.commit
    return {
        "commit": commit.get("commit", ""), "changes": commit.get("changes", ""), "bundle": recording.sha256,
        "tools": {name: dict(row) for name, row in recording.tools.items()},
    }  # fmt: skip
