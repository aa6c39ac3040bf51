"""Where errors say that an operation stands, and which debug scopes an entry may have."""

from __future__ import annotations

import pytest

from toolchain.errors import SourceError
from toolchain.tileir import location, text
from toolchain.tileir.dialect import debug, verify

SCOPES = """
#file = #cuda_tile.di_file<"k.py" in "/src">
#unit = #cuda_tile.di_compile_unit<file = #file>
#sub = #cuda_tile.di_subprogram<file = #file, line = 1, name = "k", linkageName = "k", compileUnit = #unit>
#block = #cuda_tile.di_lexical_block<scope = #sub, file = #file, line = 2>
#other = #cuda_tile.di_subprogram<file = #file, line = 9, name = "j", linkageName = "j", compileUnit = #unit>
#plain = loc("k.py":3:4)
#in_sub = #cuda_tile.di_loc<#plain in #sub>
#in_block = #cuda_tile.di_loc<#plain in #block>
#in_other = #cuda_tile.di_loc<#plain in #other>
"""


def checked(operation: str, entry: str, variable: str = "unknown") -> None:
    source = f"""{SCOPES}
global @g <i32: 0> : tile<1xi32> loc({variable})
entry @k(%n: tile<i32>) {{
  %a = addi %n, %n : tile<i32> loc({operation})
  return
}} loc({entry})
"""
    verify(text.parse(source, filename="k.mlir"), text=source, filename="k.mlir")


@pytest.mark.parametrize(
    ("operation", "entry"),
    [
        ("#in_block", "#in_sub"),
        ("#plain", "#in_sub"),
        ("callsite(#in_other at #in_sub)", '"name"(#in_sub)'),
        ("unknown", "fused[#plain, #in_sub]"),
        ('"name"', "#plain"),
    ],
)
def test_scopes_that_fit(operation: str, entry: str) -> None:
    checked(operation, entry)


@pytest.mark.parametrize(
    ("operation", "entry", "variable", "error"),
    [
        ("unknown", "#in_block", "unknown", "entry: the debug scope of an entry must be a di_subprogram"),
        ("unknown", "#in_other", "unknown", "entry: the linkage name of its debug scope is 'j', not 'k'"),
        ("unknown", "callsite(#in_sub at #in_sub)", "unknown", "entry: the location of an entry cannot be a call site"),
        ("#in_block", "#plain", "unknown", "addi: has a debug scope, but its entry has none"),
        ("#in_other", "#in_sub", "unknown", "addi: its debug scope is in 'j', not in that of its entry"),
        ("unknown", "unknown", "#in_sub", "global: a global has no debug scope"),
    ],
)
def test_scopes_that_do_not_fit(operation: str, entry: str, variable: str, error: str) -> None:
    with pytest.raises(SourceError) as caught:
        checked(operation, entry, variable)
    assert error in str(caught.value)


def test_an_error_names_the_place_that_the_text_gives() -> None:
    source = 'entry @k(%n: tile<i32>) {\n  %a = absf %n : tile<i32> loc("kernel.py":3:4)\n}\n'
    module = text.parse(source, filename="k.mlir")
    with pytest.raises(SourceError) as caught:
        verify(module, text=source, filename="k.mlir")
    assert str(caught.value).startswith("kernel.py:3:4: error: absf: ")
    assert len(str(caught.value).splitlines()) == 1  # the line of another file is not shown
    with pytest.raises(SourceError) as caught:
        verify(module, texts={"kernel.py": "a\nb\n  line three\n"})
    assert str(caught.value).splitlines()[1:] == ["    line three", "     ^"]


def test_operations_that_say_nothing_keep_their_place_in_the_text() -> None:
    module = text.parse("entry @k(%n: tile<i32>) {\n  absi %n : tile<i32> loc(unknown)\n}", filename="k.mlir")
    (entry,) = module.entries.values()
    operations = [*entry.walk()]
    assert [location.get(op) for op in operations] == [("k.mlir", 1, 1), ("k.mlir", 2, 3), ("k.mlir", 1, 1)]
    assert [debug.attached(op) for op in operations] == [None, debug.UNKNOWN, None]
