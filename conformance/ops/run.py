"""Run the op cells of the conformance matrix on one executor.

Inputs, reference and eager results are computed once per case and dtype and shared by the sources, so that both are
compared with the same numbers. A kernel is timed only after its result was found right.
"""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from types import ModuleType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from conformance.reference import eager, float64
from toolchain.bundles.bundle import Bundle, BundleEntry
from toolchain.contract.op import ops
from toolchain.contract.targets import targets
from toolchain.errors import BundleError, ConformanceError, LaunchError, NoRoom, NotInterpretable, TilestackError
from toolchain.runtime import DeviceBuffer, Executor, Launcher
from toolchain.runtime.cpu import CpuExecutor
from toolchain.runtime.layout import dtype_name

from ..cases import Case
from ..cells import has_cell, may_borrow
from ..jobs.jobs import JobContext
from ..jobs.retries import declared
from ..results.cell import Cell
from ..results.result import CellResult
from ..results.stats import median
from .both import both
from .compare import Verdict, compare, equal, has_markers, loosest
from .inputs import Inputs, make_inputs
from .ranks import launch_ranks

Array = NDArray[np.generic]
Expected = Mapping[str, tuple[Array, Array]]  # per output: float64 and the same-dtype eager result
T = TypeVar("T")


def attempt(cell: Cell, shape: str, check: Callable[..., tuple[Verdict, Sequence[float]]], *args: object) -> CellResult:
    """The row of one check, made from what `check` returns or raises. `check` returns the verdict and the times of some
    launches in microseconds: none, one of the interpreter, or several of a GPU."""
    try:
        verdict, times_us = check(*args)
    except ConformanceError as error:
        return cell.row(shape, status="failed", detail=str(error))
    except (NotInterpretable, NoRoom) as error:
        return cell.row(shape, status="not run", detail=str(error.args[0]))
    except TilestackError as error:
        if declared(error):  # of the machine: the job is tried again
            raise
        return cell.row(shape, status="error", detail=f"{type(error).__name__}: {error}")
    row = cell.row(shape, status="passed", error=verdict.error, bound=verdict.bound, worst=verdict.worst)
    if not times_us:
        return row
    time = median(times_us)
    ends = (time.low, time.high) if len(times_us) > 1 else (None, None)
    return replace(row, time_us=time.value, time_low_us=ends[0], time_high_us=ends[1])


def run_ops(
    bundle: Bundle,
    executor: Executor,
    cases: Sequence[Case],
    *,
    sources: Sequence[str],
    dtypes: Sequence[str],
    seed: int,
) -> Iterator[CellResult]:
    """Run every op case for each source and dtype. The interpreter runs each entry that any GPU target would choose."""
    site = JobContext(bundle, executor, sources, seed, nullcontext())
    for case in cases:
        for group in same_inputs(dtype for dtype in case.dtypes() if dtype in dtypes):
            yield from OpRows(case, group)(site)


def same_inputs(dtypes: Iterable[str]) -> list[tuple[str, ...]]:
    """Group the dtypes whose inputs are the same numbers (f32 and tf32), so that they share one float64 reference."""
    groups: dict[str, list[str]] = {}
    for dtype in dtypes:
        groups.setdefault("f32" if dtype == "tf32" else dtype, []).append(dtype)
    return [tuple(group) for group in groups.values()]


class References:
    """The inputs of a case in dtypes for which they are the same, and what is computed of them once."""

    def __init__(self, case: Case, dtypes: Sequence[str], seed: int) -> None:
        self.inputs = make_inputs(case, dtypes[0], seed)
        exact = functools.cache(lambda: oracle(case, self.inputs))

        def expected(dtype: str) -> Expected:
            return pairs(case, *both(exact, lambda: eager_results(case, dtype, self.inputs)))

        self.expected = functools.cache(expected)


@dataclass(frozen=True)
class OpRows:
    """A job: one case in dtypes whose inputs are the same. `only`: the symbols of the entries to run, by dtype and
    source; None runs every entry that a target would choose."""

    case: Case
    dtypes: tuple[str, ...]
    only: Mapping[tuple[str, str], frozenset[str]] | None = None
    made: dict[int, References] = field(default_factory=dict[int, References], compare=False, repr=False)  # by seed

    def ahead(self, seed: int) -> None:
        """Computes the inputs, and the references in one dtype, unless there may be no room for what needs them."""
        if ops()[self.case.op].peers:
            return
        self.made[seed] = References(self.case, self.dtypes, seed)
        self.made[seed].expected(self.dtypes[0])

    def __call__(self, site: JobContext) -> Iterator[CellResult]:
        case, executor = self.case, site.executor
        cells = [
            cell
            for dtype in self.dtypes
            for source in site.sources
            if has_cell(site.bundle, source, case.op, dtype)
            and site.filter.may_take((cell := Cell.on(case.op, source, dtype, executor)).name, case.shape)
        ]
        if not cells:
            return
        if case.gpu_only and executor.kind == "cpu":
            yield from (c.row(case.shape, status="not run", detail="too slow for the interpreter") for c in cells)
            return
        references = self.made.pop(site.seed, None) or References(case, self.dtypes, site.seed)
        inputs, expected = references.inputs, references.expected
        for cell in cells:
            only = None if self.only is None else self.only.get((cell.dtype, cell.source))
            if self.only is not None and only is None:
                continue
            for shape, launcher in launchers(case, cell.dtype, inputs, site.bundle, cell.source, executor, only):
                if not site.filter.takes(cell.name, shape):
                    continue
                if isinstance(launcher, NotInterpretable):
                    yield cell.row(shape, status="not run", detail=str(launcher.args[0]))
                elif isinstance(launcher, TilestackError):
                    yield cell.row(shape, status="error", detail=f"{type(launcher).__name__}: {launcher}")
                else:
                    wanted = partial(expected, cell.dtype)
                    yield attempt(
                        cell, shape, check_op, case, cell.dtype, inputs, wanted, launcher, executor, site.gate
                    )


def launchers(
    case: Case, dtype: str, inputs: Inputs, bundle: Bundle, source: str, executor: Executor,
    only: frozenset[str] | None = None,
) -> Iterator[tuple[str, Launcher | TilestackError]]:  # fmt: skip
    """The launchers of a case, each with the shape that its row shows. A GPU uses the entries of its own target. The
    interpreter stands for every target: it runs each entry that any target would choose, once, or only those in `only`.
    For a target of the bundle without a fitting entry, and for an entry that it cannot run, the error that says so
    comes instead of a launcher. There is neither where a source may borrow what it lacks, nor of a whole step that was
    compiled for other targets alone."""
    borrows = may_borrow(source, case.op)
    if executor.target is not None and not borrows:
        made = (entry.spec.runs_on(executor.target) for entry in bundle.entries_of(source, case.op, dtype))
        if any(made) or not ops()[case.op].whole:
            yield case.shape, Launcher(bundle, source, executor)
        return
    arguments = {**upload(case, inputs, executor), **inputs.scalars}
    if executor.target is not None:
        launcher = Launcher(bundle, source, executor)
        try:
            launcher.select(case.op, dtype, **arguments)
        except LaunchError:  # no entry fits: what is launched for these sizes is the other's, and so is their row
            return
        yield case.shape, launcher
        return
    seen: set[str] = set()
    for target in filter(ops()[case.op].runs_on, targets()):
        launcher = Launcher(bundle, source, executor, target)
        try:
            entry = launcher.select(case.op, dtype, **arguments)
        except BundleError as error:  # the bundle has no entry of this op and dtype, whatever the target
            yield case.shape, error
            return
        except TilestackError as error:
            if target in (bundle.targets or targets()) and not borrows:
                yield f"{case.shape} {target}", error
            continue
        symbol, shape = entry.spec.symbol, " ".join([case.shape, *entry.spec.targets])
        if symbol in seen or (only is not None and symbol not in only):
            continue
        seen.add(symbol)
        refused = _refused(entry, only)
        yield shape, refused or launcher


def _refused(entry: BundleEntry, only: frozenset[str] | None) -> NotInterpretable | None:
    """Why a CPU does not run an entry, known before the reference is computed. Kernels of PTX run thread by thread,
    which takes seconds, so only the cases that were picked for them are run."""
    if entry.interpretable:
        return None
    if entry.ir is None:
        return entry.no_bytecode()
    if only is None:
        said = f"{entry.spec.source}/{entry.spec.symbol} is {entry.form.kind}: a CPU runs its smallest case alone"
        return NotInterpretable(said)
    return None


@contextmanager
def by_threads(executor: Executor) -> Generator[None]:
    """On a CPU, kernels of PTX are run too."""
    if not isinstance(executor, CpuExecutor):
        yield
        return
    executor.by_threads = True
    try:
        yield
    finally:
        executor.by_threads = False


def references(case: Case, dtype: str, inputs: Inputs) -> Expected:
    """Per output: the float64 reference and the same-dtype eager result."""
    return pairs(case, oracle(case, inputs), eager_results(case, dtype, inputs))


def oracle(case: Case, inputs: Inputs) -> tuple[Array, ...]:
    """The outputs in float64."""
    return _compute(float64, case, inputs)


def eager_results(case: Case, dtype: str, inputs: Inputs) -> tuple[Array, ...]:
    """The outputs, computed in the dtype as an eager framework does."""
    return _compute(eager, case, inputs, dtype=dtype)


def pairs(case: Case, exact: tuple[Array, ...], rounded: tuple[Array, ...]) -> Expected:
    names = [param.name for param in ops()[case.op].results]
    return dict(zip(names, zip(exact, rounded, strict=True), strict=True))


def _compute(module: ModuleType, case: Case, inputs: Inputs, **extra: Any) -> tuple[Array, ...]:
    """The outputs that are compared; of a collective those of each rank, stacked."""
    if not ops()[case.op].peers:
        return _compute_one(module, case, inputs, **extra)
    ranks = range(case.dims[ops()[case.op].ranks])
    each = [_compute_one(module, case, inputs, **extra, rank=rank) for rank in ranks]
    return tuple(np.stack(one) for one in zip(*each, strict=True))


def _compute_one(module: ModuleType, case: Case, inputs: Inputs, **extra: Any) -> tuple[Array, ...]:
    arguments = {**inputs.arrays, **inputs.scalars, **extra}
    wanted = inspect.signature(getattr(module, case.op)).parameters
    # Some ops read what they write, and for some the shape of an output says how many parts to compute.
    arguments |= {name: array for name, array in inputs.outputs.items() if name in wanted}
    result = getattr(module, case.op)(**arguments)
    return result if isinstance(result, tuple) else (result,)


def check_op(
    case: Case,
    dtype: str,
    inputs: Inputs,
    wanted: Callable[[], Expected],
    launcher: Launcher,
    executor: Executor,
    gate: AbstractContextManager[Any] | None = None,
) -> tuple[Verdict, Sequence[float]]:
    """Launch once on poisoned outputs, time further launches, compare what the first has made. Returns the loosest
    verdict and the times in µs; the interpreter is timed by its one launch. `gate` is held while the device works, and
    by a GPU for that alone: kernels are loaded and results read without it. `wanted`: the references, for which ranks
    do not ask before they know that there is room for them."""
    gate = gate or nullcontext()
    if ops()[case.op].peers:
        with by_threads(executor):
            results, times = launch_ranks(case, dtype, inputs, launcher, gate=gate)
        return judged(case, dtype, results, wanted()), times
    expected = wanted()
    buffers = upload(case, inputs, executor)
    arguments = {**buffers, **inputs.scalars}

    def launch() -> None:
        launcher(case.op, dtype, **arguments)

    if executor.kind == "cpu":
        with gate, by_threads(executor):
            _, first_us = timed(launch, executor)
        times = [first_us]
        made = {name: buffers[name] for name in expected}
    else:
        launcher.prepare(case.op, dtype, **arguments)
        made = {name: beside(buffers[name], executor) for name in expected}
        executor.synchronize()
        with gate:
            launch()
            for name, copy in made.items():  # later launches may change what they find there
                copy_whole(copy, buffers[name], executor)
            times = executor.times_us(launch, repeats=20)
    return judged(case, dtype, {name: buffer.numpy() for name, buffer in made.items()}, expected), times


def beside(buffer: DeviceBuffer, executor: Executor) -> DeviceBuffer:
    """Memory for a copy of all that a buffer's memory holds, in its layout."""
    taken = executor.allocate(buffer.allocation.nbytes)
    return DeviceBuffer(executor, taken, buffer.offset, buffer.dtype, buffer.shape, buffer.strides)


def copy_whole(copy: DeviceBuffer, buffer: DeviceBuffer, executor: Executor) -> None:
    """Copies all that a buffer's memory holds to what `beside` has made for it."""
    size = buffer.allocation.nbytes
    executor.view(copy.allocation, 0, (size,), "i8").copy_from(executor.view(buffer.allocation, 0, (size,), "i8"))


def judged(case: Case, dtype: str, results: Mapping[str, Array], expected: Expected) -> Verdict:
    """The loosest verdict on the outputs."""
    return loosest(verdict(case.op, dtype, name, results[name], *pair) for name, pair in expected.items())


def verdict(op: str, dtype: str, output: str, result: Array, exact: Array, rounded: Array) -> Verdict:
    """Compare one output, with the bound of the dtype in which it is stored."""
    (param,) = (p for p in ops()[op].outputs if p.name == output)
    stored = dtype if param.dtype == "T" else param.dtype
    if stored == "i32":
        stored = dtype
    if result.dtype == rounded.dtype and (same := equal(op, result, exact, output)):
        return same
    reference = float64.f64(exact)
    return compare(op, stored, result, reference, rounded, output, marked=has_markers(op, result, reference))


def timed(run: Callable[[], T], executor: Executor) -> tuple[T, float]:
    """The value that `run` returns, and the wall time in microseconds until the executor has finished its work."""
    started = time.perf_counter()
    value = run()
    executor.synchronize()
    return value, (time.perf_counter() - started) * 1e6


def upload(case: Case, inputs: Inputs, executor: Executor) -> dict[str, DeviceBuffer]:
    """The arrays of a launch, inputs and outputs, copied to the executor in the memory layout of the case; of a
    collective those of rank 0."""
    own = ops()[case.op].own
    arrays = {**{name: array[0] if name in own else array for name, array in inputs.arrays.items()}, **inputs.outputs}
    shapes = {name: (array.shape, dtype_name(array.dtype)) for name, array in arrays.items()}
    buffers = arrange(case, shapes, executor.empty)
    for name, array in arrays.items():
        buffers[name].copy_from(array)
    return buffers


def arrange(
    case: Case, arrays: Mapping[str, tuple[tuple[int, ...], str]], make: Callable[[Sequence[int], str], DeviceBuffer]
) -> dict[str, DeviceBuffer]:
    """A buffer for each array (given as shape and dtype), in the memory layout of the case: misaligned, in place, or q,
    k and v as slices of one buffer. `make` allocates."""
    place = partial(_misaligned, make) if case.misaligned else make
    buffers = {name: place(*array) for name, array in arrays.items()}
    if case.op in ("attention", "attention_to_f8") and case.dims["T"] == case.dims["S"] and not case.misaligned:
        (batch, length, heads, size), dtype = arrays["q"]
        qkv = make((batch, length, 3, heads, size), dtype)  # the layout that the model uses
        buffers |= {name: qkv.select(2, index) for index, name in enumerate(("q", "k", "v"))}
    if case.in_place:
        buffers[case.in_place] = buffers[case.in_place_output]
    return buffers


def _misaligned(make: Callable[[Sequence[int], str], DeviceBuffer], shape: tuple[int, ...], dtype: str) -> DeviceBuffer:
    """An array whose address and rows are not at multiples of 16 bytes: one element is left free before each row."""
    return make((*shape[:-1], shape[-1] + 1), dtype).slice(-1, 1, shape[-1] + 1)


def fused_qkv(inputs: Inputs, executor: Executor) -> dict[str, DeviceBuffer]:
    """q, k and v as the model passes them: strided slices of one buffer (B, T, 3, H, D)."""
    stacked = np.stack([inputs.arrays[n] for n in ("q", "k", "v")], axis=2)
    qkv = executor.from_numpy(np.ascontiguousarray(stacked))
    return {name: qkv.select(2, index) for index, name in enumerate(("q", "k", "v"))}
