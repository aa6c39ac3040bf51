"""The text of `print_tko`."""

from __future__ import annotations

import pytest

from toolchain.errors import SourceError
from toolchain.tileir import text
from toolchain.tileir.dialect.printf import Conversion, parse
from toolchain.tileir.dialect.verify import verify


def test_the_parts_of_a_text() -> None:
    assert parse("a %d, %%%-+ #012.5hhx%.f") == [
        "a ", Conversion("", 0, None, "", "d"), ", ", "%", Conversion("-+ #0", 12, 5, "hh", "x"),
        Conversion("", 0, 0, "", "f"),
    ]  # fmt: skip
    assert parse("") == [] and parse("%%") == ["%"]


@pytest.mark.parametrize(
    ("template", "error"),
    [
        ("hello %", "the text ends within the conversion '%'"),
        ("%-5.2l", "the text ends within the conversion '%-5.2l'"),
        ("%y", "'%y' is not a conversion"),
        ("%5%", "'%5%' is not a conversion"),
        ("%*d", "'%*' is not a conversion"),
        ("%n", "'%n' is not a conversion"),
        ("%zd", "'%z' is not a conversion"),
        ("%4096d", "the width of a conversion is 4096, and may be 4095 at most"),
        ("%.4096f", "the precision of a conversion is 4096, and may be 4095 at most"),
        (f"%{'9' * 5000}d", "the width of a conversion is a number of 5000 digits"),
    ],
)
def test_what_no_printf_of_a_gpu_takes_is_refused_with_its_place(template: str, error: str) -> None:
    lines = f'''entry @k(%x: tile<i32>) {{
  print_tko "{template}", %x : tile<i32> -> token
}}'''
    module = text.parse(lines, filename="k.mlir")
    with pytest.raises(SourceError) as caught:
        verify(module, text=lines, filename="k.mlir")
    assert str(caught.value).startswith("k.mlir:2:3: ") and error in str(caught.value)
