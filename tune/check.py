"""Makes the arguments of a launch and checks its result. A variant is only timed after its result was found right.

Results of small shapes are compared with the float64 reference, with the bounds of the conformance matrix. For large
shapes numpy takes too long. There the result is compared, in the relative Frobenius norm, with that of an entry that
the conformance matrix tests: the last of the source's own entries that takes the shape, which is its most general one.
The norm is taken over a million elements at a time, so that one wrong tile shows even in the largest result.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Protocol

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from conformance.cases import Case
from conformance.ops.inputs import DECODING, GROUPED_DECODING, IN_OUT, Inputs, make_inputs
from conformance.ops.run import fused_qkv, references, verdict
from toolchain.contract.op import ops
from toolchain.errors import ConformanceError
from toolchain.runtime import DeviceBuffer, Executor
from toolchain.runtime.layout import dtype_name

from .spaces import Dims

Arguments = Mapping[str, "DeviceBuffer | float"]
_POISON = {"i32": float(np.iinfo(np.int32).min)}  # for integer outputs; other dtypes get NaN
BATCH = "B"
OVER_A_CACHE = (*DECODING, *GROUPED_DECODING)  # attention of one token to what is written of a cache


def inputs_for(op: str, dtype: str, dims: Dims, seed: int) -> tuple[Case, Inputs]:
    """Seeded inputs. In decoding, the lengths of the B sequences go from 1 / B of the cache to all of it. An empty
    sequence, as the conformance matrix has, would be the only one if B = 1, and test nothing."""
    case = Case(op, dims, "tuning")
    if op not in OVER_A_CACHE:
        return case, make_inputs(case, dtype, seed)
    more = make_inputs(Case(op, {**dims, BATCH: dims[BATCH] + 1}, case.why), dtype, seed)
    batched = {p.name for p in ops()[op].params if BATCH in p.dims}
    arrays = {name: array[1:] if name in batched else array for name, array in more.arrays.items()}
    outputs = {name: array[1:] if name in batched else array for name, array in more.outputs.items()}
    return case, replace(more, arrays=arrays, outputs=outputs)


def for_timing(case: Case, inputs: Inputs) -> Inputs:
    """The same inputs with full caches, so that the time is that of one length, not an average over several."""
    if case.op not in OVER_A_CACHE:
        return inputs
    full = np.full_like(inputs.arrays["positions"], case.dims["P"] - 1)
    return replace(inputs, arrays={**inputs.arrays, "positions": full})


def upload(case: Case, inputs: Inputs, executor: Executor) -> dict[str, DeviceBuffer | float]:
    """The arguments on the executor. Outputs are uninitialised unless the op also reads them."""
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
    """Prepare the outputs for a checked launch: fill them with a value that no right result has. An output that the op
    also reads gets its former values instead."""
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
    """Bytes of device memory that a launch with these arguments may touch."""
    return sum(value.nbytes for value in arguments.values() if isinstance(value, DeviceBuffer))


Array = NDArray[Any]
F32 = NDArray[np.float32]

SMALL = 1 << 24  # a shape whose sizes multiply to at most this has a float64 reference
BOUNDS = {"f32": 1e-4, "tf32": 1e-4, "f16": 1e-2, "bf16": 1e-2}  # relative, in the Frobenius norm
_NO_NUMBER = 1e29  # larger magnitudes are not compared: LEAST, or unused places of a cache
_CHUNK = 1 << 20  # elements, about: few enough that a wrong tile of 16 x 64 exceeds the bounds
_THREADS = 8


class Oracle(Protocol):
    """The expected results of a shape. `name` is shown to the user."""

    @property
    def name(self) -> str: ...

    def check(self, outputs: Mapping[str, DeviceBuffer]) -> float:
        """Compare the outputs. Returns the largest error as a share of its bound. Raises ConformanceError above 1."""
        ...


def is_small(case: Case) -> bool:
    return math.prod(case.dims.values()) <= SMALL


class Reference:
    """The float64 reference and the bounds of the conformance matrix."""

    name = "float64 reference"

    def __init__(self, case: Case, dtype: str, inputs: Inputs) -> None:
        self.case, self.dtype = case, dtype
        self.expected = references(case, dtype, inputs)

    def check(self, outputs: Mapping[str, DeviceBuffer]) -> float:
        found = [
            verdict(self.case.op, self.dtype, name, outputs[name].numpy(), *pair)
            for name, pair in self.expected.items()
        ]
        return max(v.error / v.bound if v.bound else 0.0 for v in found)


@dataclass(frozen=True)
class Trusted:
    """The results of a trusted entry for the same inputs. `name`: its symbol."""

    name: str
    dtype: str
    wanted: Mapping[str, Array]

    @classmethod
    def of(cls, symbol: str, case: Case, dtype: str, outputs: Mapping[str, DeviceBuffer]) -> Trusted:
        """Take the outputs of the entry `symbol`. Raises ConformanceError if it left an output unwritten, or not
        finite."""
        wanted = {name: buffer.numpy() for name, buffer in outputs.items()}
        for name, array in wanted.items():
            pure = name not in IN_OUT.get(case.op, ())
            if pure and any(np.isnan(_f32(c)).any() for c in _chunks(array)):
                raise ConformanceError(f"{symbol}, which variants are compared with, left NaN in {name}")
        return cls(symbol, dtype, wanted)

    def check(self, outputs: Mapping[str, DeviceBuffer]) -> float:
        bound = BOUNDS[self.dtype]
        shares: list[float] = []
        for name, wanted in self.wanted.items():
            error = relative_error(outputs[name].numpy(), wanted)
            if not error <= bound:
                raise ConformanceError(f"{name} differs from that of {self.name} by {error:.3g}, allowed {bound:g}")
            shares.append(error / bound)
        return max(shares)


def relative_error(got: Array, wanted: Array) -> float:
    """|got - wanted| / |wanted| in the Frobenius norm, the largest of all chunks; 0 for equal integers. Where `wanted`
    holds a marker instead of a number, `got` must hold the same. Infinite if it does not, or is not finite."""
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        return math.inf
    if got.dtype == np.int32:
        return 0.0 if np.array_equal(got, wanted) else math.inf
    with ThreadPoolExecutor(_THREADS) as pool:
        return max(pool.map(_error, _chunks(got), _chunks(wanted)))


def _error(got: Array, wanted: Array) -> float:
    g, w = _f32(got), _f32(wanted)
    with np.errstate(all="ignore"):
        aside = ~(np.abs(w) < _NO_NUMBER)
        if aside.any():
            same = (g == w) | (np.isnan(g) & np.isnan(w))
            if not same[aside].all():
                return math.inf
            g, w = np.where(aside, 0, g), np.where(aside, 0, w)
        g = g - w
        difference, size = float(np.dot(g, g)), float(np.dot(w, w))
    if not math.isfinite(difference):
        return math.inf
    return math.sqrt(difference / size) if size else math.sqrt(difference)


def _f32(array: Array) -> F32:
    if array.dtype == ml_dtypes.bfloat16:  # its upper half; numpy does this without holding the interpreter's lock
        return (array.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float32)


def _chunks(array: Array) -> list[Array]:
    """The elements in pieces of nearly one size, so that none is too small to have a norm."""
    return np.array_split(array.reshape(-1), max(1, round(array.size / _CHUNK)))
