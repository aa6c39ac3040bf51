"""Arguments beside a kernel's parameters: counted, checked, and put in the order of the compiled code."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from toolchain.contract import launching
from toolchain.contract.launching import BITS
from toolchain.errors import LaunchError
from toolchain.runtime.layout import contiguous_strides
from toolchain.runtime.overlaps import Placed, meet, overlaps_itself, share_elements

from .arrays import SAME, Array, is_array, view
from .parameters import Parameter

Grid = int | tuple[int, ...]  # blocks in x, or in x, y and z


@dataclass(frozen=True)
class Argument:
    """An argument that fits its parameter. `array`: None for a number. `numbers`: sizes and strides that follow the
    address, or the number itself, each with its dtype."""

    parameter: Parameter
    array: Array | None
    numbers: tuple[tuple[str, int | float], ...]


def arrays_of(symbol: str, args: Sequence[Any], names: Sequence[str] = ()) -> list[Array | None]:
    """The arrays among arguments, in their places. Raises LaunchError."""
    found: list[Array | None] = []
    for at, arg in enumerate(args):
        name = f" ({names[at]})" if at < len(names) else ""
        what = f"{symbol}: argument {at}{name}"
        if is_array(arg):
            found.append(view(arg, what))
        elif isinstance(arg, bool | int | float | np.generic):
            found.append(None)
        else:
            hint = "numpy.asarray makes an array of it" if isinstance(arg, list | tuple) else None
            raise LaunchError(f"{what} is a {type(arg).__name__}: neither an array nor a number", hint=hint)
    return found


def bind(
    symbol: str, parameters: Sequence[Parameter], args: Sequence[Any], arrays: Sequence[Array | None]
) -> list[Argument]:
    """The arguments of a launch. An array in the host's memory is seen as one without gaps: the launch copies it if it
    has any. Raises LaunchError that names the argument."""
    found: list[Argument] = []
    left = list(parameters)
    for at, (arg, array) in enumerate(zip(args, arrays, strict=True)):
        if not left:
            raise LaunchError(_wrong_count(symbol, parameters, args))
        parameter = left.pop(0)
        what = f"{symbol}: argument {at} ({parameter.name})"
        if array is None:
            found.append(Argument(parameter, None, ((parameter.dtype, number(parameter, arg, what)),)))
            continue
        if parameter.kind == "number":
            raise LaunchError(f"{what} is an array, {array}; the kernel takes a number of {parameter.dtype} there")
        if parameter.kind == "pointer":
            following = list(itertools.takewhile(lambda p: p.kind == "number", left))
            given = len(list(itertools.takewhile(lambda a: a is None, arrays[at + 1 :])))
            parameter = _with_rank(parameter, array, following, given, what)
            del left[: 2 * (parameter.rank or 0)]
        found.append(_array(parameter, array, what))
    if left:
        raise LaunchError(_wrong_count(symbol, parameters, args))
    _check_overlaps(symbol, found)
    return found


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
    strides = array.strides if array.device is not None else contiguous_strides(array.shape)
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
    if parameter.kind == "pointer" and array.device is not None and not array.contiguous:
        raise LaunchError(f"{what} has strides {list(strides)}, and the kernel takes no strides", hint="copy it first")
    return Argument(parameter, array, tuple((parameter.index, n) for n in numbers))


def _check_promises(parameter: Parameter, array: Array, numbers: Sequence[int], what: str) -> None:
    """Raises LaunchError where an address, size or stride is not the multiple that the kernel relies on."""
    rank = len(array.shape)
    for place, divisor in parameter.divisors.items():
        if place == 0:
            if array.device is None:  # what the kernel gets is aligned to 256 bytes
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


def number(parameter: Parameter, arg: Any, what: str) -> int | float:
    """A number that fits its parameter. Raises LaunchError."""
    if parameter.kind != "number":
        raise LaunchError(f"{what} is {arg!r}; the kernel takes an array of {parameter.dtype} there")
    value = launching.number(parameter.dtype, arg, what)
    if (divisor := parameter.divisors.get(0)) and value % divisor:
        raise LaunchError(f"{what} is {arg}; the kernel relies on a multiple of {divisor}")
    return value


def _check_overlaps(symbol: str, arguments: Sequence[Argument]) -> None:
    """Raises LaunchError where an array that is written shares a part of its memory with another. The same array twice
    is allowed."""
    on_host = [(a.parameter, a.array, range(0)) for a in arguments if a.array is not None and a.array.device is None]
    others = [
        (a.parameter, a.array, a.array.span) for a in arguments if a.array is not None and a.array.device is not None
    ]
    pairs = itertools.chain(itertools.combinations(on_host, 2), itertools.combinations(others, 2))
    for (one, a, at), (other, b, there) in pairs:
        if not (one.written or other.written) or a.place == b.place:
            continue
        if a.host is not None and b.host is not None:
            shared = np.shares_memory(a.host, b.host)
        else:
            shared = a.device == b.device and meet(at, there) and _share(a, b)
        if shared:
            raise LaunchError(
                f"{symbol}: {one.name} and {other.name} overlap in memory, and one of them is written",
                hint="copy one first; to work in place pass the very same array twice",
            )


def _share(a: Array, b: Array) -> bool:
    return share_elements(*(Placed(x.address, x.itemsize, x.shape, x.byte_strides) for x in (a, b)))


def three(grid: object) -> tuple[int, int, int]:
    """A grid of blocks in x, y and z. Raises LaunchError for what is none."""
    sizes: tuple[Any, ...] = grid if isinstance(grid, tuple) else (grid,)
    if not 1 <= len(sizes) <= 3 or not all(isinstance(n, int | np.integer) and n >= 0 for n in sizes):
        raise LaunchError(f"a grid is one to three numbers of blocks, not {grid!r}", hint="k[(8, 2)](...)")
    x, y, z = (*map(int, sizes), 1, 1)[:3]
    return x, y, z


def flatten(arguments: Sequence[Argument]) -> Iterator[tuple[str, Array | int | float]]:
    """The compiled code's parameters in order: an array's address, which is of dtype "ptr", and numbers."""
    for argument in arguments:
        if argument.array is not None:
            yield "ptr", argument.array
        yield from argument.numbers
