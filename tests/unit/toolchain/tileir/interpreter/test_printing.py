"""The output of kernels that print."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from toolchain.errors import UsageError
from toolchain.tileir.dialect import types

F32, I32, I64, I1 = types.f32, types.i32, types.i64, types.i1


def printed(builder: Any, capsys: pytest.CaptureFixture[str], template: str, *values: tuple[Any, Any]) -> str:
    """What a kernel prints of (array, element type) constants."""
    k = builder()
    k.op("print_tko", [k.constant(*value) for value in values], [], out=[[]], str=template)
    k.run()
    return capsys.readouterr().out


def test_scalars_and_tiles(builder: Any, capsys: pytest.CaptureFixture[str]) -> None:
    values = (np.int32(-3), I32), (np.array([1.5, 2.25], np.float32), F32)
    assert printed(builder, capsys, "n=%lld t=%.1f 100%%\n", *values) == "n=-3 t=[1.5 2.2] 100%\n"


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
        ("%a", np.float32(1.5), F32, "0x1.8000000000000p+0"),
    ],
)
def test_conversions(
    builder: Any, capsys: pytest.CaptureFixture[str], conversion: str, value: Any, element: Any, shown: str
) -> None:
    assert printed(builder, capsys, conversion, (value, element)) == shown


def test_a_pointer_is_its_address(builder: Any, capsys: pytest.CaptureFixture[str]) -> None:
    k = builder(types.PtrType(I32))
    k.op("print_tko", [k.args[0]], [], out=[[]], str="%p")
    k.run(np.zeros(1, np.int32))
    assert capsys.readouterr().out == "0x100"


def test_every_element_of_a_large_tile_and_of_one_that_is_equal_everywhere(
    builder: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    numbers = np.arange(2048, dtype=np.int32)
    assert printed(builder, capsys, "%d", (numbers, I32)).strip("[]").split() == [str(n) for n in numbers]
    assert printed(builder, capsys, "%d", (np.int32(4), I32, (4,))) == "[4 4 4 4]"


@pytest.mark.parametrize("template", ["100%", "%d%", "%y", "%*d", "%d %d", "none"])
def test_a_text_that_is_no_format_for_its_values(
    builder: Any, capsys: pytest.CaptureFixture[str], template: str
) -> None:
    with pytest.raises(UsageError, match=r"print_tko at kernel\.mlir:2:3: the format .* does not fit 1 values"):
        printed(builder, capsys, template, (np.int32(1), I32))
