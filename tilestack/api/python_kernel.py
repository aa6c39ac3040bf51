"""PythonKernel: a function in cuTile Python, traced for the arrays that it is launched on."""

from __future__ import annotations

import inspect
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from toolchain.contract.artifact import tile_ir
from toolchain.contract.entry import ALIGNMENT
from toolchain.contract.targets import BYTECODE
from toolchain.errors import LaunchError, SourceError, UsageError
from toolchain.runtime.layout import contiguous_strides

from . import plan
from .arrays import DTYPES, Array
from .binding import Grid, arrays_of
from .code import Bytecode
from .kernel import Entry, EntryKernel, Kernel
from .needs import packages_for
from .parameters import Parameter

CUTILE = {"bool": "bool_"}  # cuTile's names of element types are numpy's but for this one


@dataclass(frozen=True)
class Traced:
    """What a trace depends on of an array: its dtype as its library spells it, its rank, the sizes and strides that are
    compiled in (the last stride if it is 1, and what an annotation asks for), whether address and outer strides are
    multiples of 16 bytes, the first argument that is the very same array, if there is one, and the dtype of indices."""

    dtype: str
    itemsize: int
    rank: int
    sizes: tuple[int | None, ...]
    strides: tuple[int | None, ...]
    aligned: bool
    same_as: int | None
    index: str


class PythonKernel(Kernel):
    """A `@ct.kernel` function. It is traced once for each combination of dtypes, ranks and constants that it is
    launched with; `verify`, `disassemble`, `inspect` and `parameters` are about the last one."""

    def __init__(self, function: Any) -> None:
        """Raises UsageError if `function` is no kernel of cuTile Python."""
        with packages_for("a kernel in cuTile Python"):
            import cuda.tile as ct
        if not isinstance(function, ct.kernel):
            raise UsageError(f"{function!r} is not a kernel of cuTile Python", hint="decorate it with @ct.kernel")
        annotated: Any = vars(function)["_annotated_function"]  # cuTile has no public way to a kernel's parameters
        self._function, self.name = function, annotated.pyfunc.__name__
        self._signature: inspect.Signature = annotated.pysig
        marked = zip(self._signature.parameters, annotated.parameter_annotations, strict=True)
        self._marks: dict[str, Any] = dict(marked)
        self._constants = [name for name, mark in self._marks.items() if getattr(mark, "constant", False)]
        self._entries: dict[object, Entry] = {}
        self._last: Entry | None = None
        self._plans = plan.Plans()

    @property
    def names(self) -> list[str]:
        """Its parameters that are no constants."""
        return [name for name in self._signature.parameters if name not in self._constants]

    @property
    def compiled(self) -> Entry:
        if self._last is None:
            raise UsageError(
                f"{self.name} was not traced yet: dtypes and ranks of its arrays are unknown",
                hint=f"launch it first, or k.specialize({', '.join(str(p) for p in self._signature.parameters)})",
            )
        return self._last

    @property
    def arguments(self) -> Mapping[str, Parameter | None]:
        return dict.fromkeys(self.names)

    def specialize(self, *args: Any, **constants: Any) -> EntryKernel:
        """The kernel traced for arguments such as these, without a launch: an entry of its own, as from a file. Raises
        SourceError that names the line of the kernel, and LaunchError."""
        return EntryKernel(self._entry(args, self._arrays(args, constants), constants))

    def launch(self, grid: Grid | None, args: Sequence[Any], *, on: str, constants: Mapping[str, Any]) -> None:
        call = plan.read(grid, args, on, constants)
        if (repeated := self._plans.repeat(call)) is not None:
            if self._last is None or self._last.code is not repeated.code:
                self._last = next(entry for entry in self._entries.values() if entry.code is repeated.code)
            return
        arrays = self._arrays(args, constants)
        self._plans.keep(call, self._entry(args, arrays, constants).launch(grid, args, arrays, on))

    def __repr__(self) -> str:
        if self._last is None:
            return f"<kernel {self.name}({', '.join(self._signature.parameters)}), not traced yet>"
        return super().__repr__()

    def _arrays(self, args: Sequence[Any], constants: Mapping[str, Any]) -> list[Array | None]:
        if len(args) != len(self.names):
            hint = f"constants are given by name: {', '.join(self._constants)}" if self._constants else None
            if plain := [name for name in constants if name in self.names]:
                hint = f"{plain[0]} was given by name, but is no constant: annotate it with ct.Constant"
            raise LaunchError(
                f"{self.name} was given {len(args)} arguments; it takes {', '.join(self.names)}", hint=hint
            )
        return arrays_of(self.name, args, self.names)

    def _entry(self, args: Sequence[Any], arrays: Sequence[Array | None], constants: Mapping[str, Any]) -> Entry:
        if missing := [name for name in self._constants if name not in constants]:
            raise LaunchError(f"{self.name}: no constant {', '.join(missing)}", hint=f"give it by name: {missing[0]}=")
        if unknown := [name for name in constants if name not in self._constants]:
            raise LaunchError(f"{self.name} has no constant {', '.join(unknown)}")
        kinds = [_traced(at, arrays, args[at], self._marks[name]) for at, name in enumerate(self.names)]
        # As it is written: 1, 1.0 and True, or 0.0 and -0.0, are equal in Python, and each makes another kernel.
        known = (*kinds, *(repr(constants[name]) for name in self._constants))
        if known not in self._entries:
            self._entries[known] = self._trace(kinds, constants)
        self._last = self._entries[known]
        return self._last

    def _trace(self, kinds: Sequence[Traced | str], constants: Mapping[str, Any]) -> Entry:
        import cuda.tile as ct
        from cuda.tile.compilation import CallingConvention, KernelSignature, export_kernel

        from toolchain.tileir import bytecode
        from toolchain.tileir.dialect import verify

        from .reading import parameters

        given = dict(zip(self.names, kinds, strict=True))
        values = [
            _constant(constants[name], f"{self.name}: {name}") if name in constants
            else _constraint(given[name], kinds, f"{self.name}: {name}")
            for name in self._signature.parameters
        ]  # fmt: skip
        out = io.BytesIO()
        try:
            signature = KernelSignature(values, CallingConvention.cutile_python_v2(), symbol=self.name)
            export_kernel(
                self._function, [signature], out, output_format="tileir_bytecode", bytecode_version=BYTECODE
            )  # fmt: skip
        except ct.TileError as error:
            raise SourceError(f"{self.name}: {error}") from error
        except (TypeError, ValueError) as error:  # of an annotation that does not fit the arguments
            raise LaunchError(f"{self.name}: {error}") from error
        module = bytecode.read(out.getvalue(), name=self.name)
        verify(module, filename=self.name)
        ranks = [kind.rank for kind in kinds if isinstance(kind, Traced)]
        found = parameters(module.entries[self.name], ranks, self.names)
        made = tuple(_as_traced(p, kind) for p, kind in zip(found, kinds, strict=True))
        # Compiled without the places of operations: the same kernel in another file is the same code.
        artifact = tile_ir(bytecode.write(module, BYTECODE), BYTECODE)
        return Entry(Bytecode(artifact.payload, self.name, artifact.form, module), made)


def _traced(at: int, arrays: Sequence[Array | None], arg: Any, mark: Any) -> Traced | str:
    """What a trace depends on of an argument: of a number its dtype. `mark`: the parameter's annotation."""
    array = arrays[at]
    if array is None:
        if (scalar := getattr(mark, "scalar", None)) is not None:
            return str(scalar.dtype.name)
        if isinstance(arg, np.generic):
            return arg.dtype.name
        return "bool" if isinstance(arg, bool) else "int32" if isinstance(arg, int) else "float32"
    same = next((i for i, other in enumerate(arrays[:at]) if other is not None and other.place == array.place), None)
    rank = len(array.shape)
    if array.device is None:  # the kernel gets it without gaps, at a multiple of 256 bytes
        unit, steps, address = True, contiguous_strides(array.shape)[:-1], 0
    else:
        unit = not rank or array.strides[-1] == 1 or array.shape[-1] <= 1
        steps, address = array.strides[:-1], array.address
    aligned = unit and not any(number % ALIGNMENT for number in (address, *(step * array.itemsize for step in steps)))
    asked = getattr(mark, "array", None)
    sizes = _asked(array.shape, asked.static_shape_dims if asked else ())
    strides = (*[None] * (rank - 1), 1 if unit else None) if rank else ()
    if asked and asked.static_stride_dims:  # then cuTile takes these, and no other
        strides = _asked((*steps, 1 if unit else array.strides[-1]), asked.static_stride_dims)
    index = asked.index_dtype.name if asked else "int32"
    return Traced(array.name, array.itemsize, rank, sizes, strides, aligned, same, index)


def _asked(numbers: Sequence[int], dims: Sequence[int]) -> tuple[int | None, ...]:
    """The numbers of these dimensions, which count from the end if negative; None for the others."""
    rank = len(numbers)
    return tuple(number if dim in dims or dim - rank in dims else None for dim, number in enumerate(numbers))


def _constant(value: Any, what: str) -> Any:
    """What cuTile compiles in for a constant."""
    import cuda.tile as ct
    from cuda.tile.compilation import ConstantConstraint

    if isinstance(value, tuple):
        return tuple(_constant(item, what) for item in cast("tuple[Any, ...]", value))
    if isinstance(value, bool | int | float):
        return value
    if value is None or isinstance(value, str | np.dtype | ct.DType) or _is_numpy_type(value):
        made = object.__new__(ConstantConstraint)  # a launch of cuTile's own takes these, only its constructor does not
        object.__setattr__(made, "value", value)
        return made
    raise LaunchError(f"{what} is {value!r}: a constant is a number, a dtype, a string, None, or a tuple of these")


def _is_numpy_type(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, np.generic)


def _constraint(kind: Traced | str, kinds: Sequence[Traced | str], what: str) -> Any:
    """What cuTile may take for granted of an argument."""
    import cuda.tile as ct
    from cuda.tile.compilation import ArrayConstraint, ScalarConstraint

    name = kind if isinstance(kind, str) else kind.dtype
    if name not in DTYPES:
        raise LaunchError(f"{what} is of {name}, which no kernel takes")
    dtype = getattr(ct, CUTILE.get(name, name))
    if isinstance(kind, str):
        return ScalarConstraint(dtype)
    first = kind.same_as if kind.same_as is not None else kinds.index(kind)
    shared = any(isinstance(other, Traced) and other.same_as == first for other in kinds)
    return ArrayConstraint(
        dtype, kind.rank, index_dtype=getattr(ct, kind.index), stride_lower_bound_incl=0, may_alias_internally=False,
        alias_groups=[f"argument {first}"] if shared else [], stride_constant=list(kind.strides) if kind.rank else None,
        shape_constant=list(kind.sizes) if kind.rank else None,
        stride_divisible_by=[_step(kind)] * (kind.rank - 1) + [1] if kind.rank else 1,
        base_addr_divisible_by=ALIGNMENT if kind.aligned else 1,
    )  # fmt: skip


def _step(kind: Traced) -> int:
    """What outer strides are multiples of, in elements."""
    return ALIGNMENT // kind.itemsize if kind.aligned else 1


def _as_traced(parameter: Parameter, kind: Traced | str) -> Parameter:
    """The parameter with the promises of its trace, which the code shows only where it uses them."""
    if isinstance(kind, str):
        return parameter
    outer = {1 + kind.rank + dim: _step(kind) for dim in range(kind.rank - 1)}
    divisors = {0: ALIGNMENT, **outer} if kind.aligned else {}
    return replace(parameter, sizes=kind.sizes, strides=kind.strides, divisors=divisors)
