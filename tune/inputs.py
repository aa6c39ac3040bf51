"""Arguments of one shape on an executor: the conformance matrix's own inputs, laid out as the model has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from conformance.cases import Case
from conformance.inputs import DECODING, IN_OUT, Inputs, make_inputs
from conformance.run import fused_qkv
from toolchain.entry import ops
from toolchain.runtime import DeviceBuffer, Executor
from toolchain.runtime.layout import dtype_name

from .shapes import Dims

Arguments = Mapping[str, "DeviceBuffer | float"]
_POISON = {"i32": float(np.iinfo(np.int32).min)}  # of other dtypes NaN
BATCH = "B"


def inputs_for(op: str, dtype: str, dims: Dims, seed: int) -> tuple[Case, Inputs]:
    """Seeded inputs. In decoding, sequences are from 1 / B of the cache long to all of it: the conformance matrix has
    an empty one too, which alone (B = 1) would test and cost nothing."""
    case = Case(op, dims, "tuning")
    if op not in DECODING:
        return case, make_inputs(case, dtype, seed)
    more = make_inputs(Case(op, {**dims, BATCH: dims[BATCH] + 1}, case.why), dtype, seed)
    batched = {p.name for p in ops()[op].params if BATCH in p.dims}
    arrays = {name: array[1:] if name in batched else array for name, array in more.arrays.items()}
    outputs = {name: array[1:] if name in batched else array for name, array in more.outputs.items()}
    return case, replace(more, arrays=arrays, outputs=outputs)


def for_timing(case: Case, inputs: Inputs) -> Inputs:
    """The same with full caches: what a length costs is not to be averaged over lengths."""
    if case.op not in DECODING:
        return inputs
    full = np.full_like(inputs.arrays["positions"], case.dims["P"] - 1)
    return replace(inputs, arrays={**inputs.arrays, "positions": full})


def upload(case: Case, inputs: Inputs, executor: Executor) -> dict[str, DeviceBuffer | float]:
    """Arguments with memory of their own; outputs undefined, but those that are read too."""
    buffers: dict[str, DeviceBuffer | float] = {}
    if case.op == "attention" and case.dims["T"] == case.dims["S"]:
        buffers |= fused_qkv(inputs, executor)
    buffers |= {name: executor.from_numpy(a) for name, a in inputs.arrays.items() if name not in buffers}
    for name, array in inputs.outputs.items():
        empty = executor.empty(array.shape, dtype_name(array.dtype))
        buffers[name] = empty
        if name in IN_OUT.get(case.op, ()):
            empty.copy_from(np.ascontiguousarray(array))
    return buffers | dict(inputs.scalars)


def poison(case: Case, inputs: Inputs, arguments: Arguments) -> None:
    """Makes outputs what they must be before a checked launch: nothing that a right result has, or, where the op reads
    them too, what they were."""
    for name, buffer in results(inputs, arguments).items():
        if name in IN_OUT.get(case.op, ()):
            buffer.copy_from(np.ascontiguousarray(inputs.outputs[name]))
        else:
            buffer.fill(_POISON.get(buffer.dtype, float("nan")))


def results(inputs: Inputs, arguments: Arguments) -> dict[str, DeviceBuffer]:
    """The outputs among the arguments."""
    named = {name: arguments[name] for name in inputs.outputs}
    return {name: buffer for name, buffer in named.items() if isinstance(buffer, DeviceBuffer)}


def nbytes(arguments: Arguments) -> int:
    """Of the device memory that a launch with these may touch."""
    return sum(value.nbytes for value in arguments.values() if isinstance(value, DeviceBuffer))
