"""Run the op cells of the conformance matrix on one executor.

Inputs, reference and eager results are computed once per case and dtype and shared by the sources, so that both face
the same numbers. Nothing is timed before it is right.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from conformance.reference import eager, float64
from toolchain.bundle import Bundle
from toolchain.entry import ops
from toolchain.errors import BundleError, ConformanceError, NotInterpretable, TilestackError
from toolchain.runtime import DeviceBuffer, Executor, Launcher
from toolchain.targets import targets

from .cases import Case
from .compare import Verdict, compare, loosest, set_aside
from .inputs import Inputs, make_inputs
from .result import Row

Array = NDArray[np.generic]
T = TypeVar("T")


@dataclass(frozen=True)
class Cell:
    """One combination of the matrix: `layernorm-mlir-bf16-sm_90`; on the interpreter the last part is `cpu`."""

    op: str
    source: str
    dtype: str
    executor: Executor

    @property
    def target(self) -> str:
        return self.executor.target or "cpu"

    @property
    def name(self) -> str:
        return f"{self.op}-{self.source}-{self.dtype}-{self.target}"

    def row(self, shape: str, **outcome: Any) -> Row:
        return Row(
            cell=self.name, source=self.source, op=self.op, dtype=self.dtype,
            target=self.target, executor=self.executor.name, shape=shape, **outcome,
        )  # fmt: skip


def attempt(cell: Cell, shape: str, check: Callable[..., tuple[Verdict, float | None]], *args: object) -> Row:
    """The row of one check: what it returns, or how it failed."""
    try:
        verdict, time_us = check(*args)
    except ConformanceError as error:
        return cell.row(shape, status="failed", detail=str(error))
    except NotInterpretable as error:
        return cell.row(shape, status="not run", detail=str(error.args[0]))
    except TilestackError as error:
        return cell.row(shape, status="error", detail=f"{type(error).__name__}: {error}")
    return cell.row(shape, status="passed", error=verdict.error, bound=verdict.bound, time_us=time_us)


def run_ops(
    bundle: Bundle,
    executor: Executor,
    cases: Sequence[Case],
    *,
    sources: Sequence[str],
    dtypes: Sequence[str],
    seed: int,
) -> Iterator[Row]:
    """Every op case for each source and dtype; on the interpreter with each entry that some GPU target takes for it."""
    for case in cases:
        for dtype in (d for d in case.dtypes() if d in dtypes):
            cells = [Cell(case.op, source, dtype, executor) for source in sources]
            if case.gpu_only and executor.kind == "cpu":
                yield from (c.row(case.shape, status="not run", detail="too slow for the interpreter") for c in cells)
                continue
            inputs = make_inputs(case, dtype, seed)
            expected = references(case, dtype, inputs)
            for cell in cells:
                for shape, launcher in launchers(case, dtype, inputs, bundle, cell.source, executor):
                    if isinstance(launcher, TilestackError):
                        yield cell.row(shape, status="error", detail=f"{type(launcher).__name__}: {launcher}")
                    else:
                        yield attempt(cell, shape, check_op, case, dtype, inputs, expected, launcher, executor)


def launchers(
    case: Case, dtype: str, inputs: Inputs, bundle: Bundle, source: str, executor: Executor
) -> Iterator[tuple[str, Launcher | TilestackError]]:
    """What to launch a case with, each with the shape that its row shows; an error stands for a target of the bundle
    that has no fitting entry. A GPU takes its own entries. The interpreter stands for every target, and runs each entry
    that some target takes once."""
    if executor.target is not None:
        yield case.shape, Launcher(bundle, source, executor)
        return
    arguments = {**upload(case, inputs, executor), **inputs.scalars}
    seen: set[str] = set()
    for target in targets():
        launcher = Launcher(bundle, source, executor, target)
        try:
            spec = launcher.select(case.op, dtype, **arguments).spec
        except BundleError as error:  # the bundle has no entry of this op and dtype, whatever the target
            yield case.shape, error
            return
        except TilestackError as error:
            if target in (bundle.targets or targets()):
                yield f"{case.shape} {target}", error
            continue
        if spec.symbol not in seen:
            seen.add(spec.symbol)
            yield " ".join([case.shape, *spec.targets]), launcher


def references(case: Case, dtype: str, inputs: Inputs) -> Mapping[str, tuple[Array, Array]]:
    """Per output: the float64 reference and the same-dtype eager result."""
    outputs = [p.name for p in ops()[case.op].outputs]

    def compute(module: ModuleType, **extra: Any) -> tuple[Array, ...]:
        arguments = {**inputs.arrays, **inputs.scalars, **extra}
        wanted = inspect.signature(getattr(module, case.op)).parameters
        # Some read what they write, and some go by how many parts an output has.
        arguments |= {name: array for name, array in inputs.outputs.items() if name in wanted}
        result = getattr(module, case.op)(**arguments)
        return result if isinstance(result, tuple) else (result,)

    exact = compute(float64)
    rounded = compute(eager, dtype=dtype)
    return dict(zip(outputs, zip(exact, rounded, strict=True), strict=True))


def check_op(
    case: Case,
    dtype: str,
    inputs: Inputs,
    expected: Mapping[str, tuple[Array, Array]],
    launcher: Launcher,
    executor: Executor,
) -> tuple[Verdict, float | None]:
    """Launch once on poisoned outputs, compare each output, then time. Returns the loosest verdict and microseconds."""
    buffers = upload(case, inputs, executor)

    def launch() -> None:
        launcher(case.op, dtype, **buffers, **inputs.scalars)

    _, first_us = timed(launch, executor)
    verdicts = [verdict(case.op, dtype, name, buffers[name].numpy(), *pair) for name, pair in expected.items()]
    # The interpreter has no warm-up worth repeating; on a GPU the first launch also loads the module.
    time_us = first_us if executor.kind == "cpu" else executor.time_us(launch, repeats=20)
    return loosest(verdicts), time_us


def verdict(op: str, dtype: str, output: str, result: Array, exact: Array, rounded: Array) -> Verdict:
    """Of one output, to the precision in which it is stored."""
    (param,) = (p for p in ops()[op].outputs if p.name == output)
    stored = dtype if param.dtype == "T" else param.dtype
    if stored == "i32":
        stored = dtype
    return compare(op, stored, *set_aside(op, result, exact, rounded), output)


def timed(run: Callable[[], T], executor: Executor) -> tuple[T, float]:
    """What `run` returns, and the wall time in microseconds until the executor is done with it."""
    started = time.perf_counter()
    value = run()
    executor.synchronize()
    return value, (time.perf_counter() - started) * 1e6


def upload(case: Case, inputs: Inputs, executor: Executor) -> dict[str, DeviceBuffer]:
    """The arrays of a launch, inputs and outputs, as the case has them in memory."""
    copy = misaligned if case.misaligned else Executor.from_numpy
    buffers = {name: copy(executor, array) for name, array in {**inputs.arrays, **inputs.outputs}.items()}
    if case.op == "attention" and case.dims["T"] == case.dims["S"] and not case.misaligned:
        buffers |= fused_qkv(inputs, executor)
    if case.in_place:
        buffers[case.in_place] = buffers["out"]
    return buffers


def fused_qkv(inputs: Inputs, executor: Executor) -> dict[str, DeviceBuffer]:
    """q, k and v as the model passes them: strided slices of one buffer (B, T, 3, H, D)."""
    stacked = np.stack([inputs.arrays[n] for n in ("q", "k", "v")], axis=2)
    qkv = executor.from_numpy(np.ascontiguousarray(stacked))
    return {name: qkv.select(2, index) for index, name in enumerate(("q", "k", "v"))}


def misaligned(executor: Executor, array: Array) -> DeviceBuffer:
    """A copy of an array whose address and rows are not at multiples of 16 bytes: one element is left free before each
    row."""
    room = np.zeros((*array.shape[:-1], array.shape[-1] + 1), array.dtype)
    room[..., 1:] = array
    return executor.from_numpy(room).slice(-1, 1, room.shape[-1])
