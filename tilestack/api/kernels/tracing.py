"""What cuTile is told of the arguments that a function is traced for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

import numpy as np

from toolchain.contract.entry import ALIGNMENT
from toolchain.errors import LaunchError
from toolchain.runtime.layout import contiguous_strides

from ..arguments.arrays import DTYPES, Array
from ..arguments.given import Given
from ..arguments.parameters import Parameter

CUTILE = {"bool": "bool_"}  # cuTile's names of element types are numpy's but for this one


class Leaf(NamedTuple):
    """An argument that is no tuple, or an item of one, with cuTile's annotation of it."""

    name: str
    value: Any
    mark: Any

    @property
    def constant(self) -> bool:
        return is_constant(self.mark)


def is_constant(mark: Any) -> bool:
    """Whether an annotation makes all of a parameter a constant."""
    items = getattr(mark, "items", None)
    if items is not None:
        return bool(items) and all(map(is_constant, items))
    each = getattr(mark, "each", None)
    return bool(getattr(mark, "constant", False)) if each is None else is_constant(each)


class Arguments:
    """The arguments of a function by its parameters' names, and their annotations. `leaves`: without the tuples;
    `plain`: those that are no constants."""

    def __init__(self, values: Mapping[str, Any], marks: Mapping[str, Any]) -> None:
        self._values, self._marks = values, marks
        self.leaves = [leaf for name, mark in marks.items() for leaf in _leaves(name, values[name], mark)]
        self.plain = [leaf for leaf in self.leaves if not leaf.constant]

    def nested(self, made: Iterable[Any]) -> list[Any]:
        """What was made of the leaves, in tuples as they were, for each parameter."""
        left = iter(made)
        return [_nested(self._values[name], mark, left) for name, mark in self._marks.items()]


def _leaves(name: str, value: Any, mark: Any) -> Iterator[Leaf]:
    if _is_leaf(value, mark):
        yield Leaf(name, value, mark)
    else:
        for at, item in enumerate(value):
            yield from _leaves(f"{name}[{at}]", item, _item(mark, at))


def _nested(value: Any, mark: Any, made: Iterator[Any]) -> Any:
    if _is_leaf(value, mark):
        return next(made)
    return tuple(_nested(item, _item(mark, at), made) for at, item in enumerate(value))


def _is_leaf(value: Any, mark: Any) -> bool:
    return type(value) is not tuple or bool(getattr(mark, "constant", False))


def _item(mark: Any, at: int) -> Any:
    """The annotation of a tuple's item. If there are too few, cuTile says so."""
    items = getattr(mark, "items", None)
    return getattr(mark, "each", mark) if items is None else next(iter(items[at:]), None)


@dataclass(frozen=True)
class Traced:
    """What a trace depends on of an array: its dtype as its library spells it, its rank, the sizes and strides that are
    compiled in (the last stride if it is 1, and what an annotation asks for), whether address and outer strides are
    multiples of 16 bytes, the first argument whose memory it shares, which may be itself, and the dtype of indices.
    `listed`: it stands for all arrays of a list."""

    dtype: str
    itemsize: int
    rank: int
    sizes: tuple[int | None, ...]
    strides: tuple[int | None, ...]
    aligned: bool
    group: int
    index: str
    listed: bool = False


def traced(leaf: Leaf, given: Given, group: int) -> Traced | str:
    """What a trace depends on of an argument that is no constant: of a number its dtype."""
    if isinstance(given, Array):
        return _array(given, getattr(leaf.mark, "array", None), group)
    if given is not None:
        asked = getattr(leaf.mark, "list", None)
        return _list([_array(one, asked and asked.element, group) for one in given], leaf.name)
    if (scalar := getattr(leaf.mark, "scalar", None)) is not None:
        return str(scalar.dtype.name)
    if isinstance(leaf.value, np.generic):
        return leaf.value.dtype.name
    return "bool" if isinstance(leaf.value, bool) else "int32" if isinstance(leaf.value, int) else "float32"


def _array(array: Array, asked: Any, group: int) -> Traced:
    """`asked`: an annotation of the array, or None."""
    rank = len(array.shape)
    if array.packed:
        unit, steps, address = True, contiguous_strides(array.shape)[:-1], 0
    else:
        unit = not rank or array.strides[-1] == 1 or array.shape[-1] <= 1
        steps, address = array.strides[:-1], array.address
    aligned = unit and not any(number % ALIGNMENT for number in (address, *(step * array.itemsize for step in steps)))
    sizes = _asked(array.shape, asked.static_shape_dims if asked else ())
    strides = (*[None] * (rank - 1), 1 if unit else None) if rank else ()
    if asked and asked.static_stride_dims:  # then cuTile takes these, and no other
        strides = _asked((*steps, 1 if unit else array.strides[-1]), asked.static_stride_dims)
    index = asked.index_dtype.name if asked else "int32"
    return Traced(array.name, array.itemsize, rank, sizes, strides, aligned, group, index)


def _list(items: Sequence[Traced], name: str) -> Traced:
    """What is true of all arrays of a list."""
    first = items[0]
    if any(one.sizes != first.sizes for one in items):
        raise LaunchError(f"{name}: its arrays differ in a size that an annotation compiles in")
    each_dim = zip(*(one.strides for one in items), strict=True)
    strides = tuple(found[0] if len(set(found)) == 1 else None for found in each_dim)
    return replace(first, strides=strides, aligned=all(one.aligned for one in items), listed=True)


def _asked(numbers: Sequence[int], dims: Sequence[int]) -> tuple[int | None, ...]:
    """The numbers of these dimensions, which count from the end if negative; None for the others."""
    rank = len(numbers)
    return tuple(number if dim in dims or dim - rank in dims else None for dim, number in enumerate(numbers))


def constant(value: Any, what: str) -> Any:
    """What cuTile compiles in for a constant."""
    import cuda.tile as ct
    from cuda.tile.compilation import ConstantConstraint

    if isinstance(value, tuple):
        return tuple(constant(item, what) for item in cast("tuple[Any, ...]", value))
    if isinstance(value, bool | int | float):
        return value
    if value is None or isinstance(value, str | np.dtype | ct.DType) or _is_numpy_type(value):
        made = object.__new__(ConstantConstraint)  # a launch of cuTile's own takes these, only its constructor does not
        object.__setattr__(made, "value", value)
        return made
    raise LaunchError(f"{what} is {value!r}: a constant is a number, a dtype, a string, None, or a tuple of these")


def _is_numpy_type(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, np.generic)


def constraint(kind: Traced | str, kinds: Sequence[Traced | str], what: str) -> Any:
    """What cuTile may take for granted of an argument, one of `kinds`."""
    import cuda.tile as ct
    from cuda.tile.compilation import ArrayConstraint, ListConstraint, ScalarConstraint

    name = kind if isinstance(kind, str) else kind.dtype
    if name not in DTYPES:
        raise LaunchError(f"{what} is of {name}, which no kernel takes")
    dtype = getattr(ct, CUTILE.get(name, name))
    if isinstance(kind, str):
        return ScalarConstraint(dtype)
    shared = sum(isinstance(other, Traced) and other.group == kind.group for other in kinds) > 1
    array = ArrayConstraint(
        dtype, kind.rank, index_dtype=getattr(ct, kind.index), stride_lower_bound_incl=0, may_alias_internally=False,
        alias_groups=[f"argument {kind.group}"] if shared else [],
        stride_constant=list(kind.strides) if kind.rank else None,
        shape_constant=list(kind.sizes) if kind.rank else None,
        stride_divisible_by=[_step(kind)] * (kind.rank - 1) + [1] if kind.rank else 1,
        base_addr_divisible_by=ALIGNMENT if kind.aligned else 1,
    )  # fmt: skip
    return ListConstraint(array, alias_groups=[], elements_may_alias=True) if kind.listed else array


def _step(kind: Traced) -> int:
    """What outer strides are multiples of, in elements."""
    return ALIGNMENT // kind.itemsize if kind.aligned else 1


def as_traced(parameter: Parameter, kind: Traced | str) -> Parameter:
    """The parameter with the promises of its trace, which the code shows only where it uses them."""
    if isinstance(kind, str):
        return parameter
    outer = {1 + kind.rank + dim: _step(kind) for dim in range(kind.rank - 1)}
    divisors = {0: ALIGNMENT, **outer} if kind.aligned else {}
    found = replace(parameter, sizes=kind.sizes, strides=kind.strides, divisors=divisors)
    return replace(found, dtype=DTYPES[kind.dtype], rank=kind.rank, index=DTYPES[kind.index]) if kind.listed else found
