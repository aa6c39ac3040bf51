"""Arguments beside a kernel's parameters: counted, checked, and put in the order of the compiled code."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from toolchain.contract import launching
from toolchain.contract.launching import BITS
from toolchain.errors import LaunchError
from toolchain.runtime.layout import contiguous_strides
from toolchain.runtime.overlaps import overlaps_itself

from .arrays import SAME, Array
from .given import Given
from .parameters import Parameter
from .sharing import shared

Grid = int | tuple[int, ...]  # blocks in x, or in x, y and z


@dataclass(frozen=True)
class Argument:
    """An argument that fits its parameter. `array`: None for a number and for a list, whose arrays are `items`.
    `numbers`: sizes and strides that follow the address, the number itself or that of the items, each with its dtype.
    """

    parameter: Parameter
    array: Array | None
    numbers: tuple[tuple[str, int | float], ...]
    items: tuple[Argument, ...] = ()

    def table(self, address: Callable[[Array], int]) -> np.ndarray[Any, np.dtype[np.int64]]:
        """What stands for a list in memory: of each array its address, sizes and strides, (items, 1 + 2 * rank)."""
        rows = [(address(item.array), *(n for _, n in item.numbers)) for item in self.items if item.array is not None]
        return np.array(rows, np.int64)


def each(arguments: Iterable[Argument]) -> Iterator[Argument]:
    """Some arguments, the items of a list in its place."""
    for argument in arguments:
        yield from argument.items or (argument,)


def bind(
    symbol: str,
    parameters: Sequence[Parameter],
    args: Sequence[Any],
    given: Sequence[Given],
    *,
    may_share: bool = False,
) -> list[Argument]:
    """The arguments of a launch. An array in the host's memory is seen as one without gaps: the launch copies it if it
    has any. `may_share`: the kernel knows which of them share memory. Raises LaunchError that names the argument."""
    found: list[Argument] = []
    left = list(parameters)
    for at, (arg, array) in enumerate(zip(args, given, strict=True)):
        if not left:
            raise LaunchError(_wrong_count(symbol, parameters, args))
        parameter = left.pop(0)
        what = f"{symbol}: argument {at} ({parameter.name})"
        if array is None:
            found.append(Argument(parameter, None, ((parameter.dtype, number(parameter, arg, what)),)))
            continue
        if isinstance(array, tuple):
            if parameter.kind == "pointer" and left and left[0].kind == "number":
                left.pop(0)
                found.append(_list(parameter, array, what))
            elif parameter.kind == "list":
                found.append(_list(parameter, array, what))
            else:
                raise LaunchError(f"{what} is a list of arrays; the kernel takes {parameter} there")
            continue
        if parameter.kind in ("number", "list"):
            wanted = f"a number of {parameter.dtype}" if parameter.kind == "number" else "a list of arrays"
            raise LaunchError(f"{what} is an array, {array}; the kernel takes {wanted} there")
        if parameter.kind == "pointer":
            following = list(itertools.takewhile(lambda p: p.kind == "number", left))
            behind = len(list(itertools.takewhile(lambda a: a is None, given[at + 1 :])))
            parameter = _with_rank(parameter, array, following, behind, what)
            del left[: 2 * (parameter.rank or 0)]
        found.append(_array(parameter, array, what))
    if left:
        raise LaunchError(_wrong_count(symbol, parameters, args))
    _check_overlaps(symbol, list(each(found)), may_share)
    return found


def _list(parameter: Parameter, items: Sequence[Array], what: str) -> Argument:
    """A list of arrays. What a file's kernel takes of them only the list tells: its parameter is the table's."""
    if parameter.kind == "pointer" and parameter.dtype != "i64":
        raise LaunchError(f"{what} is a list of arrays; the kernel takes an array of {parameter.dtype} there")
    found: list[Argument] = []
    for at, array in enumerate(items):
        name, rank = f"{parameter.name}[{at}]", len(array.shape)
        one = replace(parameter, name=name, kind="array")
        if parameter.kind == "pointer":
            any_ = (None,) * rank
            one = Parameter(name, "array", array.dtype, rank, any_, any_, parameter.writes_items, "i64")
        found.append(_array(one, array, f"{what}, item {at}"))
    return Argument(parameter, None, (("i32", len(items)),), tuple(found))


def _wrong_count(symbol: str, parameters: Sequence[Parameter], args: Sequence[Any]) -> str:
    return f"{symbol} was given {len(args)} arguments; it takes {', '.join(map(str, parameters)) or 'none'}"


def _with_rank(parameter: Parameter, array: Array, following: Sequence[Parameter], given: int, what: str) -> Parameter:
    """A pointer whose rank the code does not tell: sizes and strides follow it, or it stands alone. The numbers that
    the caller gives after it decide."""
    rank = len(array.shape)
    if len(following) == given:
        return replace(parameter, rank=0)
    if len(following) == given + 2 * rank:
        return replace(
            parameter, kind="array", rank=rank, sizes=(None,) * rank, strides=(None,) * rank,
            index=following[0].dtype if rank else "i32",
        )  # fmt: skip
    raise LaunchError(
        f"{what} has rank {rank} and {given} numbers follow it; in the code {len(following)} follow its pointer: "
        f"2 for each dimension, or none, and the numbers that you give"
    )


def _array(parameter: Parameter, array: Array, what: str) -> Argument:
    if array.dtype != SAME.get(parameter.dtype, parameter.dtype):
        raise LaunchError(f"{what} is {array}, but must be of {parameter.dtype}", hint="convert it first")
    if parameter.kind == "array" and len(array.shape) != parameter.rank:
        raise LaunchError(f"{what} is {array}, of rank {len(array.shape)}; the kernel takes rank {parameter.rank}")
    if parameter.written and not array.writeable:
        raise LaunchError(f"{what} is read-only, and the kernel writes it")
    if parameter.written and overlaps_itself(array.shape, array.strides):
        raise LaunchError(
            f"{what} is {array} with strides {list(array.strides)}: elements share memory, and the kernel writes it",
            hint="give it an array of its own, or copy it first",
        )
    strides = contiguous_strides(array.shape) if array.packed else array.strides
    if array.shape and array.shape[-1] <= 1:  # no element is reached by it
        strides = (*strides[:-1], 1)
    if any(stride < 0 for stride in strides):
        raise LaunchError(f"{what} has negative strides {list(strides)}", hint="copy it first")
    for name, sizes, wanted in (("size", array.shape, parameter.sizes), ("stride", strides, parameter.strides)):
        for dim, (number_, want) in enumerate(zip(sizes, wanted, strict=bool(wanted))):
            if want is not None and number_ != want and (name == "size" or array.shape[dim] > 1):
                raise LaunchError(
                    f"{what} has {name} {number_} in dimension {dim}; the kernel is compiled for {want}",
                    hint="copy it first, for example with .contiguous()" if name == "stride" else None,
                )
    numbers = (*array.shape, *strides) if parameter.kind == "array" else ()
    if numbers and max(numbers) >= 2 ** (BITS[parameter.index] - 1):
        raise LaunchError(f"{what} is {array}: a size or stride does not fit {parameter.index}")
    _check_promises(parameter, array, numbers, what)
    if parameter.kind == "pointer" and not array.packed and not array.contiguous:
        raise LaunchError(f"{what} has strides {list(strides)}, and the kernel takes no strides", hint="copy it first")
    return Argument(parameter, array, tuple((parameter.index, n) for n in numbers))


def _check_promises(parameter: Parameter, array: Array, numbers: Sequence[int], what: str) -> None:
    """Raises LaunchError where an address, size or stride is not the multiple that the kernel relies on."""
    rank = len(array.shape)
    for place, divisor in parameter.divisors.items():
        if place == 0:
            if array.packed:
                continue
            value, which = array.address, "address"
        else:
            value, which = numbers[place - 1], "size" if place <= rank else "stride"
            if which == "stride" and array.shape[place - 1 - rank] <= 1:  # no element is reached by it
                continue
        if value % divisor:
            raise LaunchError(
                f"{what} has {which} {value}; the kernel relies on a multiple of {divisor}", hint="copy it first"
            )


def _check_overlaps(symbol: str, arguments: Sequence[Argument], may_share: bool) -> None:
    """Raises LaunchError where an array that is written shares a part of its memory with another. The same array twice
    is allowed; others with `may_share` if the kernel sees both where they lie."""
    placed = [(argument.parameter, argument.array) for argument in arguments if argument.array is not None]
    for (one, a), (other, b) in itertools.combinations(placed, 2):
        if not (one.written or other.written) or a.place == b.place or (may_share and not (a.packed or b.packed)):
            continue
        if shared(a, b):
            raise LaunchError(
                f"{symbol}: {one.name} and {other.name} overlap in memory, and one of them is written",
                hint="copy one first; to work in place pass the very same array twice",
            )


def number(parameter: Parameter, arg: Any, what: str) -> int | float:
    """A number that fits its parameter. Raises LaunchError."""
    if parameter.kind != "number":
        raise LaunchError(f"{what} is {arg!r}; the kernel takes an array of {parameter.dtype} there")
    value = launching.number(parameter.dtype, arg, what)
    if (divisor := parameter.divisors.get(0)) and value % divisor:
        raise LaunchError(f"{what} is {arg}; the kernel relies on a multiple of {divisor}")
    return value


def three(grid: object) -> tuple[int, int, int]:
    """A grid of blocks in x, y and z. Raises LaunchError for what is none."""
    sizes: tuple[Any, ...] = grid if isinstance(grid, tuple) else (grid,)
    if not 1 <= len(sizes) <= 3 or not all(isinstance(n, int | np.integer) and n >= 0 for n in sizes):
        raise LaunchError(f"a grid is one to three numbers of blocks, not {grid!r}", hint="k[(8, 2)](...)")
    x, y, z = (*map(int, sizes), 1, 1)[:3]
    return x, y, z


def flatten(arguments: Sequence[Argument]) -> Iterator[tuple[str, Array | Argument | int | float]]:
    """The compiled code's parameters in order: the address of an array or of a list's table, which is of dtype "ptr",
    and numbers."""
    for argument in arguments:
        if argument.items:
            yield "ptr", argument
        elif argument.array is not None:
            yield "ptr", argument.array
        yield from argument.numbers
