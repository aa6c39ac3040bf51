"""Arguments of a kernel on the command line, from files, at random, or zero; and what is saved and shown of them."""

from __future__ import annotations

import io
import tokenize
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.contract.launching import DTYPES, MAX_GRID
from toolchain.errors import UsageError
from toolchain.runtime.layout import contiguous_strides

from .options import write

SHOWN = 6  # elements of an array
Array = NDArray[Any]
Value = Array | int | float


def grid_of(text: str, option: str) -> tuple[int, int, int]:
    """Blocks of a grid, or threads of a block, in x, y and z. Raises UsageError."""
    parts = text.split(",")
    if not 1 <= len(parts) <= 3 or not all(part.isdecimal() and len(part) < 20 for part in parts):
        raise UsageError(f"{option} {text!r}: write one to three numbers, such as 8,4")
    x, y, z = (int(part) for part in [*parts, "1", "1"][:3])
    if not all(1 <= blocks <= most for blocks, most in zip((x, y, z), MAX_GRID, strict=True)):
        raise UsageError(f"{option} {text!r}: a GPU runs 1 to {MAX_GRID[0]} blocks in x, 1 to {MAX_GRID[1]} in y and z")
    return x, y, z


def value_of(text: str, rng: np.random.Generator) -> Value:
    """What an `--arg` says. Raises UsageError."""
    parts = text.split(":")
    if text.endswith(".npy"):
        dtype = DTYPES.get(parts[0]) if len(parts) > 1 else None
        return _array(text, Path(text.removeprefix(f"{parts[0]}:") if dtype else text), dtype)
    zeros = parts[0] == "zeros"
    if zeros:
        parts = parts[1:]
    if len(parts) == 2 and parts[0] in DTYPES and all(size.isdecimal() for size in parts[1].split("x")):
        try:
            shape = tuple(int(size) for size in parts[1].split("x"))
            return np.zeros(shape, DTYPES[parts[0]]) if zeros else _random(parts[0], rng.standard_normal(shape))
        except (MemoryError, ValueError) as error:
            raise UsageError(f"--arg {text}: {error}") from error
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    raise UsageError(f"--arg {text!r} is not a .npy file, DTYPE:SIZES, zeros:DTYPE:SIZES or a number")


def arguments_of(texts: Sequence[str], rng: np.random.Generator) -> list[Value | list[Array]]:
    """What the `--arg`s of a command say, which may be lists of arrays and views of arrays before them. Raises
    UsageError."""
    found: list[Value | list[Array]] = []
    for text in texts:
        if not (text.startswith("[") and text.endswith("]")):
            found.append(_value_or_view(text, found, rng))
            continue
        items = [_value_or_view(item, found, rng) for item in text[1:-1].split(",")]
        arrays = [item for item in items if isinstance(item, np.ndarray)]
        if len(arrays) < len(items) or len({(array.dtype, array.ndim) for array in arrays}) != 1:
            raise UsageError(f"--arg {text!r}: a list holds arrays of one dtype and rank")
        found.append(arrays)
    return found


def _value_or_view(text: str, before: Sequence[Value | list[Array]], rng: np.random.Generator) -> Value:
    if not text.startswith("view:"):
        return value_of(text, rng)
    head, *numbers = text.split(":")[1:]
    usage = f"--arg {text!r}: write view:N:FIRST:SIZES or view:N:FIRST:SIZES:STRIDES, such as view:0:4:2x8:16x1"
    parts = [number.split("x") for number in numbers]
    if not head.isdecimal() or len(parts) not in (2, 3) or not all(n.isdecimal() for part in parts for n in part):
        raise UsageError(usage)
    base = before[int(head)] if int(head) < len(before) else None
    if not isinstance(base, np.ndarray) or not base.flags.c_contiguous:
        raise UsageError(f"--arg {text!r}: argument {head} is no array without gaps before this one")
    (first, *_), sizes, *given = ([int(number) for number in part] for part in parts)
    strides = given[0] if given else list(contiguous_strides(tuple(sizes)))
    if len(strides) != len(sizes):
        raise UsageError(usage)
    last = first + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
    if not all(sizes) or last >= base.size:
        raise UsageError(f"--arg {text!r}: it reaches to element {last} of an array of {base.size}")
    steps = [stride * base.itemsize for stride in strides]
    return np.lib.stride_tricks.as_strided(base.reshape(-1)[first:], sizes, steps)


def named(arguments: Sequence[Value | list[Array]]) -> dict[str, Array]:
    """The arrays among arguments, by their numbers: "0", or "1[2]" in a list."""
    found: dict[str, Array] = {}
    for at, argument in enumerate(arguments):
        if isinstance(argument, list):
            found |= {f"{at}[{item}]": array for item, array in enumerate(argument)}
        elif isinstance(argument, np.ndarray):
            found[str(at)] = argument
    return found


def _random(name: str, normal: Array) -> Array:
    """Numbers of a normal distribution as a dtype has them: integers up to some hundred, none that it has not."""
    dtype = DTYPES[name]
    if name == "i1":
        return normal > 0
    if name == "f8E8M0FNU":  # powers of two
        return np.abs(normal).astype(dtype)
    return (normal * (1 if name.startswith(("f", "b", "t")) else 20 if name == "i8" else 100)).astype(dtype)


def _array(text: str, path: Path, dtype: np.dtype[Any] | None) -> Array:
    """The numbers in a file, without gaps and in this machine's byte order, which is what kernels read."""
    try:
        with path.open("rb") as file:
            array = np.lib.format.read_array(file, allow_pickle=False)
    except (OSError, ValueError, EOFError, MemoryError, SyntaxError, tokenize.TokenError) as error:
        raise UsageError(f"--arg {text}: {error}") from error  # the last two: of a header that does not parse
    if dtype is not None and dtype.isbuiltin != 1 and array.dtype == np.dtype(f"V{dtype.itemsize}"):
        return np.ascontiguousarray(array).view(dtype)  # numpy's save keeps bf16 and 8-bit floats as bytes
    if array.dtype.kind not in "biuf":
        raise UsageError(f"--arg {text}: it holds {array.dtype}, which is neither an integer nor a real number")
    return array.astype(dtype or array.dtype.newbyteorder("="), order="C")


def saving(text: str, arrays: Mapping[str, Array]) -> tuple[Array, Path]:
    """The array and the file that a `--save` names. Raises UsageError."""
    index, _, name = text.partition("=")
    if not name or index not in arrays:
        raise UsageError(
            f"--save {text!r}: write N=FILE.npy, N the number of an array argument from 0",
            hint=f"one of {', '.join(arrays)}" if arrays else None,
        )
    if not Path(name).parent.is_dir():  # before the run, whose results it would lose
        raise UsageError(f"--save {text!r}: there is no folder {Path(name).parent}")
    return arrays[index], Path(name)


def describe(array: Array) -> str:
    """An array in a line."""
    values = array.astype(np.float64)
    head = ", ".join(f"{v:.6g}" for v in values.reshape(-1)[:SHOWN])
    more = ", ..." if values.size > SHOWN else ""
    return f"{array.dtype} {'x'.join(map(str, array.shape))}  sum {values.sum():.6g}  [{head}{more}]"


def save(array: Any, path: Path) -> None:
    """Writes an array as .npy."""
    content = io.BytesIO()
    own = array.dtype.isbuiltin == 1  # bf16 and 8-bit floats are not numpy's own
    np.save(content, array if own else array.astype(np.float32))
    write(path, content.getvalue())
