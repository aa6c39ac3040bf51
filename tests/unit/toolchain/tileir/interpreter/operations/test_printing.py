"""The output of kernels that print."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from toolchain.errors import UsageError
from toolchain.tileir.dialect import types

F16, BF16, F32, F64, F8 = types.f16, types.bf16, types.f32, types.f64, types.f8e5m2
I1, I8, I16, I32, I64 = types.i1, types.i8, types.i16, types.i32, types.i64


def printed(builder: Any, capsys: pytest.CaptureFixture[str], template: str, *values: tuple[Any, Any]) -> str:
    """What a kernel prints of (array, element type) constants."""
    k = builder()
    k.op("print_tko", [k.constant(*value) for value in values], [], out=[types.token], str=template)
    k.run()
    return capsys.readouterr().out


def test_scalars_and_tiles(builder: Any, capsys: pytest.CaptureFixture[str]) -> None:
    values = (np.int32(-3), I32), (np.array([1.5, 2.25], np.float32), F32)
    assert printed(builder, capsys, "n=%lld t=%.1f 100%%\n", *values) == "n=-3 t=[1.5, 2.2] 100%\n"


@pytest.mark.parametrize(
    ("conversion", "value", "element", "shown"),
    [
        ("%u", np.int32(-5), I32, "4294967291"),
        ("%x", np.int32(-5), I32, "fffffffb"),
        ("%#llo", np.int64(-1), I64, "01777777777777777777777"),
        ("%d", np.bool_(True), I1, "1"),
        ("%+08.3f", np.float32(1.5), F32, "+001.500"),
        ("%c%%", np.int32(65), I32, "A%"),
        ("%d", np.float32(np.nan), F32, "nan"),  # undefined: the value as it is
        ("%f", np.int32(7), I32, "7"),
        ("%s", np.float32(1.5), F32, "1.5"),
        ("%s", np.int32(7), I32, "7"),
        ("%a", np.float32(1.5), F32, "0x1.8p+0"),
        ("%a", np.float32(-0.0), F32, "-0x0p+0"),
        ("%.1a", np.float32(1.96875), F32, "0x2.0p+0"),
        ("%A", np.float64(2.0**-1074), F64, "0X0.0000000000001P-1022"),
        ("%05.1f", np.float32(np.nan), F32, "  nan"),
        ("%08f", np.float32(np.inf), F32, "     inf"),
        ("%06g", np.float32(-np.inf), F32, "  -inf"),
        ("%+F", np.float32(np.inf), F32, "+INF"),
        ("%f", np.float32(-np.nan), F32, "nan"),
        ("%.3d", np.int32(-5), I32, "-005"),
        ("%05.3d", np.int32(-5), I32, " -005"),
        ("%.d", np.int32(0), I32, ""),
        ("%-6d|", np.int32(7), I32, "7     |"),
        ("%+ d", np.int32(7), I32, "+7"),
        ("%#x", np.int32(0), I32, "0"),
        ("%#010X", np.int32(255), I32, "0X000000FF"),
        ("%u", np.int16(-5), I16, "4294967291"),  # measured on a GPU
        ("%x", np.int8(-5), I8, "fffffffb"),
        ("%hhx", np.int8(-5), I8, "fb"),
        ("%hu", np.int32(-5), I32, "65531"),
        ("%lld", np.int32(-5), I32, "-5"),
        ("%d", np.int64(-(2**40)), I64, "-1099511627776"),
        ("%x", np.int64(-1), I64, "ffffffffffffffff"),
        ("%.2e", np.float16(65504), F16, "6.55e+04"),
        ("%g", ml_dtypes.bfloat16(0.1), BF16, "0.100098"),
        ("%g", ml_dtypes.float8_e5m2(np.inf), F8, "inf"),
        ("%#.0f", np.float64(1e22), F64, "10000000000000000000000."),
    ],
)
def test_conversions(
    builder: Any, capsys: pytest.CaptureFixture[str], conversion: str, value: Any, element: Any, shown: str
) -> None:
    assert printed(builder, capsys, conversion, (value, element)) == shown


def test_a_pointer_is_its_address(builder: Any, capsys: pytest.CaptureFixture[str]) -> None:
    k = builder(types.PtrType(I32))
    k.op("print_tko", [k.args[0]], [], out=[types.token], str="%p")
    k.run(np.zeros(1, np.int32))
    assert capsys.readouterr().out == "0x100000000000100"


def test_every_element_of_a_large_tile_and_of_one_that_is_equal_everywhere(
    builder: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    numbers = np.arange(2048, dtype=np.int32)
    assert printed(builder, capsys, "%d", (numbers, I32)).strip("[]").split(", ") == [str(n) for n in numbers]
    assert printed(builder, capsys, "%d", (np.int32(4), I32, (4,))) == "[4, 4, 4, 4]"


@pytest.mark.parametrize(
    ("shape", "shown"),
    [
        ((), "7"),
        ((1,), "[7]"),
        ((1, 1), "[[7]]"),
        ((2, 4), "[[0, 1, 2, 3], [4, 5, 6, 7]]"),
        ((2, 2, 2), "[[[0, 1], [2, 3]], [[4, 5], [6, 7]]]"),
        ((4, 1, 2), "[[[0, 1]], [[2, 3]], [[4, 5]], [[6, 7]]]"),
    ],
)
def test_a_tile_is_printed_in_one_line(
    builder: Any, capsys: pytest.CaptureFixture[str], shape: tuple[int, ...], shown: str
) -> None:
    size = int(np.prod(shape))
    numbers = np.arange(8 - size, 8, dtype=np.int32).reshape(shape)
    assert printed(builder, capsys, "a %d%% b", (numbers, I32)) == f"a {shown}% b"


def test_the_widest_conversions(builder: Any, capsys: pytest.CaptureFixture[str]) -> None:
    wide = printed(builder, capsys, "%4095d%.4095f", (np.int32(1), I32), (np.float64(-1.7e308), F64))
    assert len(wide) == 4095 + 1 + 309 + 1 + 4095


@pytest.mark.parametrize("template", ["100%", "%d%", "%y", "%*d", "%n", "%d %d", "none", "%4096d", "%.99999999999d"])
def test_a_text_that_is_no_format_for_its_values(
    builder: Any, capsys: pytest.CaptureFixture[str], template: str
) -> None:
    with pytest.raises(UsageError, match=r"print_tko at kernel\.mlir:2:3: (the|').* (conversion|width|precision)"):
        printed(builder, capsys, template, (np.int32(1), I32))
