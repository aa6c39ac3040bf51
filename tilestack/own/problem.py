"""What one cell of a matrix.toml computes: its inputs, drawn from a seed, and what its outputs should be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.ops.compare import Tolerance, Verdict, compare
from toolchain.errors import ConformanceError, UsageError

from .table import DTYPES, INTEGERS, Op
from .table import Array as OwnArray

Array = NDArray[np.generic]
SOURCE = "own"


@dataclass(frozen=True)
class Problem:
    """An op at one dtype and some sizes."""

    op: Op
    dtype: str
    sizes: Mapping[str, int]
    seed: int

    @property
    def shape(self) -> str:
        return " ".join(f"{name}={size}" for name, size in self.sizes.items())

    @property
    def case(self) -> str:
        """Its name among benchmarks."""
        return f"{self.op.name} {self.shape} {self.dtype}"

    def cell(self, target: str) -> str:
        return f"{self.op.name}-{SOURCE}-{self.dtype}-{target or 'cpu'}"

    @cached_property
    def inputs(self) -> Mapping[str, Array]:
        rng = np.random.default_rng(self.seed)
        return {
            name: _drawn(array, array.storage(self.dtype), self.sizes, rng) for name, array in self.op.inputs.items()
        }

    def outputs(self) -> dict[str, Array]:
        """Before the launch: what no kernel should write."""
        arrays = self.op.outputs.items()
        return {name: _empty(array.shape(self.sizes), array.storage(self.dtype)) for name, array in arrays}

    def expected(self, reference: Callable[..., Any]) -> tuple[dict[str, Array], dict[str, Array]]:
        """The outputs of the reference by name, taken as exact, and in the kernel's dtype. Raises UsageError."""
        wide = {name: _widened(array) for name, array in self.inputs.items()}
        return _computed(self.op, reference, wide), _computed(self.op, reference, self.inputs)

    def tolerance(self, name: str) -> tuple[str, Tolerance]:
        """The dtype of an output, and what is allowed there."""
        storage = self.op.outputs[name].storage(self.dtype)
        return storage, Tolerance(self.op.f32_ulps, storage in INTEGERS, (), self.op.why)

    def compared(
        self, outputs: Mapping[str, Array], exact: Mapping[str, Array], eager: Mapping[str, Array]
    ) -> Iterator[Verdict]:
        """A verdict for each output. Raises ConformanceError."""
        for name, result in outputs.items():
            storage, allowed = self.tolerance(name)
            same = eager[name].astype(result.dtype)  # numpy may have computed in a wider dtype
            yield compare(self.op.name, storage, result, exact[name], same, name, allowed)
            if storage in INTEGERS and not np.array_equal(result, exact[name]):  # which float64 does not tell apart
                raise ConformanceError(f"{self.op.name} {storage}: {name} differs from the reference beyond 2^53")


def _drawn(array: OwnArray, dtype: str, sizes: Mapping[str, int], rng: np.random.Generator) -> Array:
    """An input of this dtype."""
    if dtype in INTEGERS:
        return rng.integers(*array.range(sizes), array.shape(sizes)).astype(INTEGERS[dtype])
    return rng.standard_normal(array.shape(sizes)).astype(DTYPES[dtype])


def _empty(shape: tuple[int, ...], dtype: str) -> Array:
    fill = np.iinfo(INTEGERS[dtype].name).min if dtype in INTEGERS else np.nan
    return np.full(shape, fill, DTYPES[dtype])


def _widened(array: Array) -> Array:
    """For the reference that is taken as exact. The sums and products of narrow integers are not to overflow there."""
    return array.astype(np.int64 if np.issubdtype(array.dtype, np.integer) else np.float64)


def _computed(op: Op, reference: Callable[..., Any], arrays: Mapping[str, Array]) -> dict[str, Array]:
    """The outputs of the reference by name: it returns one array, or a tuple of them in the table's order."""
    made = reference(**arrays, **op.numbers)
    made = made if isinstance(made, tuple) else (made,)
    if len(made) != len(op.outputs):
        raise UsageError(
            f"{op.name}: its reference returns {len(made)} arrays, the table has {len(op.outputs)} outputs"
        )
    return dict(zip(op.outputs, map(np.asarray, made), strict=True))
