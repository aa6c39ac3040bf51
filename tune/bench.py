"""Runs in the process that launches: makes the arguments of a shape, checks an entry's result, and times it."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from conformance.cases import Case
from conformance.ops.inputs import Inputs
from toolchain.bundles.bundle import Bundle, BundleEntry
from toolchain.errors import BundleError, ConformanceError, DeviceError, LaunchError, OutOfMemory, TilestackError
from toolchain.runtime import Executor, Graph, Launcher, open_executor
from toolchain.runtime.launch import EntryLauncher, check_layouts

from .check import (
    Arguments,
    Oracle,
    Reference,
    Trusted,
    for_timing,
    inputs_for,
    is_small,
    nbytes,
    poison,
    results,
    upload,
)
from .worker import Machine, Outcome, Shape, Task

SAMPLE_US = 1000.0  # the least device time of a sample, so that the jitter of one launch does not matter
WARM_UP_US = 10_000.0  # before the first sample: while the host compares results, the GPU's clocks may fall
MAX_LAUNCHES = 512  # in a sample
FIRST, REST = 3, 12  # samples: FIRST are enough to recognise a slow variant, FIRST + REST to choose among fast ones
DROP = 1.5  # a variant that takes this many times the best time cannot win
MAX_SETS = 64  # of arguments that launches rotate over; for the smallest shapes even these fit the L2 cache
_DRIVER = re.compile(r"Kernel Module.*?\s(\d+\.\d+(?:\.\d+)?)\s")
_DRIVER_FILE = Path("/proc/driver/nvidia/version")


@dataclass(frozen=True)
class Setup:
    """`variants` and `own`: bundles. `executor`: its name. `seed`: of the inputs. `baseline`: the bundle to compare
    results of large shapes with, if it is not `own`."""

    variants: Path
    own: Path
    executor: str = "cuda"
    seed: int = 1
    baseline: Path | None = None


@dataclass
class _Prepared:
    """One shape: arguments for the check, sets of arguments for timing, and the expected results."""

    shape: Shape
    case: Case
    inputs: Inputs
    checked: Arguments
    timed: Sequence[Arguments]
    oracle: Oracle


class GpuBench:
    """Launches entries of a search's bundles on one executor: see `worker.Bench`."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.executor = open_executor(setup.executor)
        self._launch = EntryLauncher(self.executor)
        self.variants, self.own = Bundle.load(setup.variants), Bundle.load(setup.own)
        self.trusted = Bundle.load(setup.baseline) if setup.baseline else self.own
        self._prepared: _Prepared | None = None

    def describe(self) -> Machine:
        executor = self.executor
        gpu = getattr(executor, "gpu", None)
        return Machine(executor.kind, gpu.name if gpu else executor.name, executor.target or "cpu", driver_release())

    def prepare(self, shape: Shape) -> str:
        self._prepared = None  # free its memory before the next shape is made
        case, inputs = inputs_for(shape.op, shape.dtype, shape.dims, self.setup.seed)
        checked = upload(case, inputs, self.executor)
        if is_small(case):
            oracle: Oracle = Reference(case, shape.dtype, inputs)
        else:
            entry = self._most_general(shape, checked)
            self._launch_checked(self.trusted, entry, case, inputs, checked)
            oracle = Trusted.of(entry.spec.symbol, case, shape.dtype, results(inputs, checked))
        count = _sets(self.executor, nbytes(checked)) if shape.cold else 1
        timed = [upload(case, for_timing(case, inputs), self.executor) for _ in range(count)]
        self._prepared = _Prepared(shape, case, inputs, checked, timed, oracle)
        return f"{oracle.name}, {count} sets of arguments"

    def measure(self, task: Task) -> Outcome:
        """Measure one entry. Never raises a TilestackError: the outcome says what went wrong."""
        outcome = Outcome("error")
        try:
            bundle, entry = self._entry(task)
            outcome = replace(outcome, entry=entry.spec.symbol)
            return self._measure(bundle, entry, task, outcome)
        except ConformanceError as error:
            return replace(outcome, status="wrong", why=str(error))
        except TilestackError as error:
            # After an error of the device this process must not launch again.
            lost = isinstance(error, DeviceError) and not isinstance(error, OutOfMemory)
            return replace(outcome, why=f"{type(error).__name__}: {error}", lost=lost)

    def _measure(self, bundle: Bundle, entry: BundleEntry, task: Task, outcome: Outcome) -> Outcome:
        work = self._ready()
        self._launch_checked(bundle, entry, work.case, work.inputs, work.checked)
        share = work.oracle.check(results(work.inputs, work.checked))

        def call(arguments: Arguments) -> Callable[[], None]:
            return lambda: self._launch(bundle, entry, arguments)

        samples = times_us(self.executor, [call(arguments) for arguments in work.timed], task.best_us)
        return replace(
            outcome,
            status="ok" if len(samples) > FIRST else "dropped",
            us=statistics.median(samples),
            low=min(samples),
            high=max(samples),
            samples=len(samples),
            share=share,
        )

    def _entry(self, task: Task) -> tuple[Bundle, BundleEntry]:
        if task.symbol is not None:
            return self.variants, self.variants.find(task.source, task.symbol)
        work = self._ready()
        launcher = Launcher(self.own, task.source, self.executor)
        return self.own, launcher.select(work.shape.op, work.shape.dtype, **work.checked)

    def _most_general(self, shape: Shape, arguments: Arguments) -> BundleEntry:
        """The last entry that takes these arguments, in the bundle that results are compared with. It is the most
        general one."""
        dims, misaligned, gapped = check_layouts(shape.op, shape.op, shape.dtype, arguments)
        fitting = [
            entry
            for entry in self.trusted.entries
            if (entry.spec.op, entry.spec.dtype) == (shape.op, shape.dtype)
            and entry.spec.unmet(dims, misaligned, gapped) is None
            and entry.spec.runs_on(self.executor.target)
        ]
        if not fitting:
            raise BundleError(
                f"{self.trusted.root} has no {shape.op}[{shape.dtype}] for {dims} to compare variants with",
                hint="give a bundle that has with --baseline",
            )
        return fitting[-1]

    def _launch_checked(
        self, bundle: Bundle, entry: BundleEntry, case: Case, inputs: Inputs, arguments: Arguments
    ) -> None:
        poison(case, inputs, arguments)
        self._launch(bundle, entry, arguments)
        self.executor.synchronize()

    def _ready(self) -> _Prepared:
        if self._prepared is None:
            raise LaunchError("no shape was prepared")
        return self._prepared


def times_us(executor: Executor, calls: Sequence[Callable[[], object]], best_us: float | None) -> list[float]:
    """Device time of one call in microseconds, per sample. A sample is a replayed graph of many calls, back to back.

    There are FIRST samples if their median is DROP times `best_us` or more, else FIRST + REST.
    """

    def captured(rounds: int) -> Graph:
        with executor.capture() as graph:
            for _ in range(rounds):
                for call in calls:
                    call()
        return graph

    for call in calls:  # loads the kernels, which is forbidden during a capture
        call()
    graph = captured(1)
    (round_us,) = executor.times_us(graph.replay, 1)
    rounds = max(1, min(math.ceil(SAMPLE_US / max(round_us, 1.0)), MAX_LAUNCHES // len(calls)))
    if rounds > 1:
        graph = captured(rounds)
    launches = rounds * len(calls)
    for _ in range(math.ceil(WARM_UP_US / max(round_us * rounds, 1.0))):
        graph.replay()
    samples = [us / launches for us in executor.times_us(graph.replay, FIRST)]
    if best_us is None or statistics.median(samples) <= DROP * best_us:
        samples += [us / launches for us in executor.times_us(graph.replay, REST)]
    return samples


def _sets(executor: Executor, size: int) -> int:
    """The number of sets of arguments that together exceed twice the L2 cache, so that a launch does not find its own
    arguments there."""
    return max(1, min(MAX_SETS, math.ceil((2 * _l2_bytes(executor) + 1) / max(size, 1))))


def _l2_bytes(executor: Executor) -> int:
    if executor.kind == "cpu":
        return 0
    from toolchain.runtime.driver import check, load

    driver = load()
    device = check("cuDeviceGet", driver.cuDeviceGet(executor.device[1]))
    size = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE
    return int(check("cuDeviceGetAttribute", driver.cuDeviceGetAttribute(size, device)))


def driver_release(file: Path = _DRIVER_FILE) -> str:
    """The release of the NVIDIA kernel driver, such as "580.159"; "unknown" if `file` does not say."""
    try:
        match = _DRIVER.search(file.read_text())
    except OSError:
        return "unknown"
    return match[1] if match else "unknown"
