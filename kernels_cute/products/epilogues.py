"""Epilogues: what a product does with its sums. Every schedule takes every epilogue.

A schedule (linear.py, linear_sm90.py) ends with a thread's sums in f32 registers, and a `Place` that says where in the
output they lie. An `Epilogue` turns them into the values to write; it reads its operands (bias, residual) through the
place. The schedule decides how the values are written: `Place.write`, or a way of its own.

    values = epilogue(sums, place, operands)  # in registers, of the output's dtype, in the order of the sums
    place.write(values, operands["out"])

`Place` is made for any tile that a tiled MMA divides among threads, so a schedule may take a tile in slices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from toolchain.contract.op import Param, ops
from toolchain.cute import dsl as cute
from toolchain.cute.atoms.tiled import TiledCopy, TiledMma
from toolchain.cute.dsl import arch
from toolchain.cute.dsl.values import Scalar, TensorValue
from toolchain.cute.layout import Layout, size
from toolchain.cute.layout import tuples as nested
from toolchain.errors import UsageError

VECTOR = 8  # elements of 16 bits in 16 bytes: aligned arrays have strides that are multiples of it
ANY = 1 << 30  # a bound that every coordinate is below
# sqrt(2/pi) (x + 0.044715 x^3) of x = 2h is h (LINEAR + CUBIC h^2)
LINEAR = 2 * 0.7978845608028654
CUBIC = 8 * 0.7978845608028654 * 0.044715

Operands = Mapping[str, Any]  # the kernel's parameters by their names in ops.toml
Values = list[Scalar]  # f32, in the order of the sums


@dataclass(frozen=True)
class Place:
    """Where a thread's sums lie in the output. `tile`: rows and columns of a tile; `at`: which tile it is; `shape`: of
    the output; `thread`: its number among those of the MMA; `side_by_side`: elements that are moved at once."""

    mma: TiledMma
    tile: tuple[int, int]
    at: tuple[Any, Any]
    shape: tuple[Any, Any]
    thread: Any
    side_by_side: int = 2

    @property
    def layout(self) -> Layout:
        """That of the sums: the first mode holds an atom's."""
        return Layout(self.mma.partition("c", Layout(self.tile))[1].shape)

    def fragment(self, dtype: str) -> TensorValue:
        """Registers for a value beside each sum."""
        return cute.make_fragment(self.layout, dtype)

    def part(self, tensor: TensorValue) -> TensorValue:
        """The thread's part of a tensor (M, N), such as the output."""
        return cute.partition(self.mma, "C", cute.local_tile(tensor, self.tile, self.at), self.thread)

    @cached_property
    def where(self) -> TensorValue:
        """The coordinate of each sum."""
        return self.part(cute.make_identity_tensor(self.shape))

    def read(self, tensor: TensorValue) -> Values:
        """The elements of a tensor (M, N) as f32, zero outside of it."""
        held = self.fragment(tensor.dtype)
        cute.copy(
            self._copy(tensor.dtype, self.side_by_side), self.part(tensor), held, where=self.where, inside=self.shape
        )
        return [held[i].to("f32") for i in range(size(held.layout))]

    def read_row(self, tensor: TensorValue) -> Values:
        """The elements of a tensor (N) at the sums' columns as f32, zero outside of it; each is read once."""
        return self._read_once(cute.broadcast_rows(tensor, self.shape[0]), self.side_by_side)

    def read_column(self, tensor: TensorValue) -> Values:
        """The same of a tensor (M) at the sums' rows."""
        return self._read_once(cute.broadcast_columns(tensor, self.shape[1]), 1)

    def _read_once(self, tensor: TensorValue, side_by_side: int) -> Values:
        """`read` of a tensor many of whose elements are the same."""
        layout, values = self.part(tensor).layout, self._different(tensor, side_by_side)
        return [values[number] for number in Layout(layout.shape, _numbering(layout)).offsets()]

    def _different(self, tensor: TensorValue, side_by_side: int, inside: tuple[Any, Any] | None = None) -> Values:
        """The same, each element once. `inside`: bounds of the coordinates, the output's shape if not given."""
        part, once = self._once(tensor)
        different = part[once]
        held = cute.make_fragment(different.layout.shape, tensor.dtype)
        copy = self._copy(tensor.dtype, side_by_side)
        cute.copy(copy, different, held, where=self.where[once], inside=inside or self.shape)
        return [held[i].to("f32") for i in range(size(held.layout))]

    def _once(self, tensor: TensorValue) -> tuple[TensorValue, Any]:
        """The thread's part of a tensor many of whose elements are the same, and a coordinate of each element."""
        part = self.part(tensor)
        return part, nested.transform(_first_if_same, part.layout.shape, part.layout.stride)

    def rows(self, tensor: TensorValue) -> Values:
        """The elements of a tensor (M) at the thread's rows, each once, as f32 and zero outside of it."""
        return self._different(cute.broadcast_columns(tensor, self.shape[1]), 1, (self.shape[0], ANY))

    def write_rows(self, values: Values, tensor: TensorValue) -> None:
        """Writes a value for each of the thread's rows to a tensor (M)."""
        part, once = self._once(cute.broadcast_columns(tensor, self.shape[1]))
        held = cute.make_fragment(len(values), tensor.dtype)
        for i, value in enumerate(values):
            held[i] = value
        held = cute.with_layout(held, Layout(part[once].layout.shape))
        copy = self._copy(tensor.dtype, 1)
        cute.copy(copy, held, part[once], where=self.where[once], inside=(self.shape[0], ANY))

    @cached_property
    def row_numbers(self) -> list[int]:
        """Of each sum, which of the thread's rows it lies in."""
        by_row = self.mma.partition("c", Layout(self.tile, (1, 0)))[1]
        return [*Layout(by_row.shape, _numbering(by_row)).offsets()]

    def write(self, values: TensorValue, out: TensorValue) -> None:
        """Writes what lies in the output."""
        cute.copy(self._copy(out.dtype, self.side_by_side), values, self.part(out), where=self.where, inside=self.shape)

    def _copy(self, dtype: str, side_by_side: int) -> TiledCopy:
        bits = cute.BITS[dtype]
        return cute.make_tiled_copy_like(cute.CopyAtom(f"universal.b{bits * side_by_side}", bits), self.mma, "c")


def _first_if_same(extent: int, stride: Any) -> int | None:
    """A coordinate that keeps a mode, or the first of elements that are the same."""
    del extent
    return 0 if stride == 0 else None


def _numbering(layout: Layout) -> Any:
    """Strides that count a layout's different elements from left to right, and are 0 where elements are the same."""
    made: list[int] = []
    count = 1
    for extent, stride in zip(nested.flatten(layout.shape), nested.flatten(layout.stride), strict=True):
        made.append(0 if stride == 0 else count)
        count *= 1 if stride == 0 else extent
    return nested.like(iter(made), layout.shape)


Step = Callable[[Values, Place, Operands], Values]


def add_bias(values: Values, place: Place, operands: Operands) -> Values:
    """values + bias, the same for each row."""
    added = place.read_row(operands["bias"])
    return [value + one for value, one in zip(values, added, strict=True)]


def add_residual(values: Values, place: Place, operands: Operands) -> Values:
    """values + residual. The thread that reads an element writes it, so the output may be the residual itself."""
    return [value + one for value, one in zip(values, place.read(operands["residual"]), strict=True)]


def gelu(values: Values, place: Place, operands: Operands) -> Values:  # noqa: ARG001 - a Step
    """gelu(x) = h + h tanh(sqrt(2/pi) (x + 0.044715 x^3)) with h = x/2. The results have 16 bits, for which the GPU's
    approximate tanh (to 2^-11) does."""
    return [_gelu(value) for value in values]


def _gelu(value: Scalar) -> Scalar:
    half = value * 0.5
    inner = half * (half * half).fma(CUBIC, LINEAR)
    return arch.tanh(inner).fma(half, half)


@dataclass(frozen=True)
class Epilogue:
    """The steps from the sums of an op to its output. `op`: its name in ops.toml. `first`: reads what the steps need of
    a tile's rows, and gives the operands with it, once for a tile. `last`: writes what the steps have summed up over
    part z of the columns."""

    op: str
    steps: tuple[Step, ...] = ()
    first: Callable[[Place, Operands], Operands] | None = None
    last: Callable[[Place, Operands, Any], None] | None = None

    @property
    def adds_residual(self) -> bool:
        return any(param.name == "residual" for param in ops()[self.op].params)

    @property
    def weight_has_columns(self) -> bool:
        """True if the weight is (N, K), so that each of its rows makes a column of the product."""
        return self._param("x").dims[-1] == self._param("weight").dims[-1]

    def dtype(self, name: str, dtype: str) -> str:
        """That of a parameter, for an entry of `dtype`."""
        return _stored(self._param(name), dtype)

    @property
    def is_narrow(self) -> bool:
        """True if the output has 8 bits."""
        return self._param("out").dtype == "f8E4M3FN"

    def width(self, dtype: str) -> int:
        """Bytes of an element of x and of the weight."""
        return cute.BITS[self.dtype("x", dtype)] // 8

    def _param(self, name: str) -> Param:
        return next(param for param in ops()[self.op].params if param.name == name)

    def parameters(self, dtype: str, multiple: int = VECTOR) -> tuple[cute.Parameter, ...]:
        """The kernel's parameters in ABI order: x, weight, what the steps read, out. `multiple`: see
        `parameters`."""
        return parameters(self.op, dtype, multiple)

    def operands(self, arguments: Sequence[Any]) -> dict[str, Any]:
        """The kernel's arguments by their names in ops.toml. Tensor maps may follow them."""
        params = ops()[self.op].params
        return {param.name: argument for param, argument in zip(params, arguments[: len(params)], strict=True)}

    def shape(self, operands: Operands) -> tuple[Any, Any]:
        """Rows and columns of the sums that count: squares may have more rows than the output."""
        rows, columns = operands["out"].shape
        return (operands["squares"].shape[1] if self.last else rows), columns

    def begin(self, place: Place, operands: Operands) -> Operands:
        """The operands for the steps of a tile, of which `place` is any part."""
        return self.first(place, operands) if self.first else operands

    def __call__(self, sums: TensorValue, place: Place, operands: Operands) -> TensorValue:
        """The values to write, in registers of the output's dtype. `operands`: as `begin` gives them."""
        values = [sums[i] for i in range(size(sums.layout))]
        for step in self.steps:
            values = step(values, place, operands)
        whole, made = (cute.make_fragment(sums.layout.shape, dtype) for dtype in ("f32", operands["out"].dtype))
        for i, value in enumerate(values):
            whole[i] = value
        cute.convert(whole, made)
        return made


def parameters(op: str, dtype: str, multiple: int = 1) -> tuple[cute.Parameter, ...]:
    """The parameters of an op's kernel in ABI order, from ops.toml. `multiple`: the arrays' outer strides are multiples
    of so many elements, and their addresses are aligned to as many."""
    return tuple(_parameter(param, dtype, multiple) for param in ops()[op].params)


def _stored(param: Param, dtype: str) -> str:
    """The dtype of an array, as `toolchain.cute` names it."""
    stored = param.storage(dtype)
    return {"f8E4M3FN": "e4m3"}.get(stored, stored)


def _parameter(param: Param, dtype: str, multiple: int) -> cute.Parameter:
    if param.dims:
        stored = _stored(param, dtype)
        if stored == "i32":  # flags, which lie as they come
            multiple = 1
        return cute.Array(stored, rank=len(param.dims), multiple=multiple, align=multiple * cute.BITS[stored] // 8)
    if param.dtype == "i32":
        return cute.Number32()
    if param.dtype != "f32":
        raise UsageError(f"a scalar of {param.dtype}, {param.name}, is no parameter of a kernel here")
    return cute.Float32()


EPILOGUES = {
    made.op: made
    for made in (
        Epilogue("linear", (add_bias,)),
        Epilogue("linear_gelu", (add_bias, gelu)),
        Epilogue("linear_residual", (add_bias, add_residual)),
        Epilogue("logits"),
    )
}
PLAIN = EPILOGUES["linear"]
