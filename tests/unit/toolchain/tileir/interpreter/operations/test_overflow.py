"""Integer overflow in operations that promise none, and undefined arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from toolchain.tileir.dialect import types

F32, I32, I64 = types.f32, types.i32, types.i64
INTS = types.PtrType(I32)
MAX, MIN = 2**31 - 1, -(2**31)


def tile(shape: tuple[int, ...] = (), element: Any = F32) -> types.TileType:
    return types.TileType(shape, element)


def loaded(k: Any, n: int) -> list[Any]:
    """The first n i32 in memory, so that nothing is known before a block runs."""
    return [k.load_pointer(k.op("offset", k.args[0], k.i32(i), out=[k.args[0].type]))[0] for i in range(n)]


@pytest.mark.parametrize("shape", [(), (4,)])
@pytest.mark.parametrize(
    ("name", "flags", "good", "bad"),
    [
        ("addi", "no_signed_wrap", (MAX, 0), (MAX, 1)),
        ("addi", "no_unsigned_wrap", (MAX, 1), (-1, 1)),
        ("addi", "no_wrap", (MAX - 1, 1), (MAX, 1)),
        ("subi", "no_signed_wrap", (MIN, 0), (MIN, 1)),
        ("subi", "no_unsigned_wrap", (1, 1), (0, 1)),
        ("muli", "no_signed_wrap", (2**30, -2), (2**30, 2)),
        ("muli", "no_unsigned_wrap", (2**30, 2), (2**30, 4)),
        ("shli", "no_signed_wrap", (1, 30), (1, 31)),
        ("shli", "no_unsigned_wrap", (1, 31), (2, 31)),
    ],
)
def test_overflow(
    builder: Any,
    trapped: Any,
    name: str,
    flags: str,
    good: tuple[int, int],
    bad: tuple[int, int],
    shape: tuple[int, ...],
) -> None:
    def kernel() -> Any:
        k = builder(INTS)
        values = [v if shape == () else k.spread(v, shape) for v in loaded(k, 2)]
        k.op(name, *values, out=[tile(shape, I32)], overflow=flags)
        return k

    kernel().run(np.array(good, np.int32))
    trapped(kernel(), f"{name} at .*(un)?signed overflow in a {flags} {name}", np.array(bad, np.int32))


@pytest.mark.parametrize("shape", [(), (4,)])
@pytest.mark.parametrize(
    ("name", "flags", "good", "bad"),
    [
        ("addi", "no_signed_wrap", [(0, 0), (0, 1), (1, 0)], [(1, 1)]),  # a 1 is -1
        ("subi", "no_signed_wrap", [(0, 0), (1, 0), (1, 1)], [(0, 1)]),
        ("muli", "no_signed_wrap", [(0, 0), (0, 1), (1, 0)], [(1, 1)]),
        ("negi", "no_signed_wrap", [(0,)], [(1,)]),
        ("addi", "no_unsigned_wrap", [(0, 0), (0, 1), (1, 0)], [(1, 1)]),
        ("subi", "no_unsigned_wrap", [(0, 0), (1, 0), (1, 1)], [(0, 1)]),
        ("muli", "no_unsigned_wrap", [(0, 0), (1, 0), (1, 1)], []),
    ],
)
def test_overflow_of_one_bit(
    builder: Any, trapped: Any, name: str, flags: str, good: list[tuple[int, ...]], bad: list[tuple[int, ...]],
    shape: tuple[int, ...],
) -> None:  # fmt: skip
    def kernel(values: tuple[int, ...]) -> Any:
        k = builder(INTS)
        bits = [k.op("trunci", v, out=[tile((), types.i1)], overflow="none") for v in loaded(k, len(values))]
        k.op(
            name, *(b if shape == () else k.spread(b, shape) for b in bits), out=[tile(shape, types.i1)], overflow=flags
        )
        return k

    for values in good:
        kernel(values).run(np.array(values, np.int32))
    for values in bad:
        trapped(kernel(values), f"{name} at .*signed overflow in a {flags} {name}", np.array(values, np.int32))


def test_overflow_of_i64_and_of_negation_and_truncation(builder: Any, trapped: Any) -> None:
    def kernel(name: str, flags: str, value: int, element: Any = I64) -> Any:
        k = builder()
        x = k.constant(np.array([value] * 2, np.int64), I64)
        operands = (x, x) if name in ("addi", "muli") else (x,)
        k.op(name, *operands, out=[tile((2,), element)], overflow=flags)
        return k

    for name, flags, good, bad, element in (
        ("addi", "no_signed_wrap", 2**62 - 1, 2**62, I64),
        ("muli", "no_signed_wrap", 2**31, 2**32, I64),
        ("negi", "no_signed_wrap", 5, -(2**63), I64),
        ("trunci", "no_signed_wrap", -(2**31), 2**31, I32),
        ("trunci", "no_unsigned_wrap", 2**32 - 1, -1, I32),
    ):
        kernel(name, flags, good, element).run()
        trapped(kernel(name, flags, bad, element), f"{name} at")


@pytest.mark.parametrize("shape", [(), (4,)])
@pytest.mark.parametrize(
    ("name", "bad", "message"),
    [
        ("divi", (5, 0), "division by zero"),
        ("remi", (5, 0), "division by zero"),
        ("divi", (MIN, -1), "smallest i32 divided by -1"),
        ("shli", (1, 32), "shift of i32 by its width"),
        ("shri", (1, -1), "shift of i32 by its width"),
    ],
)
def test_undefined_integer_arithmetic(
    builder: Any, trapped: Any, name: str, bad: tuple[int, int], message: str, shape: tuple[int, ...]
) -> None:
    fields = {"divi": {"rounding": "zero"}, "shli": {"overflow": "none"}}.get(name, {})
    k = builder(INTS)
    values = [v if shape == () else k.spread(v, shape) for v in loaded(k, 2)]
    signed = {} if name == "shli" else {"signedness": "signed"}
    k.op(name, *values, out=[tile(shape, I32)], **fields, **signed)
    trapped(k, message, np.array(bad, np.int32), runs_unchecked=name.startswith("sh"))
