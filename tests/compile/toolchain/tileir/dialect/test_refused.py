"""Modules that the verifier must refuse, each with its message and its line; the disassembler refuses them too."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from toolchain.errors import SourceError, ToolFailed
from toolchain.tileir import bytecode, text
from toolchain.tileir.dialect import ops, verify

PARAMETERS = "%p: tile<ptr<f32>>, %q: tile<ptr<i32>>, %n: tile<i32>, %l: tile<i64>, %x: tile<f32>, %c: tile<i1>"
VIEW = "tensor_view<?x8xf32, strides=[8,1]>"
HEAD = f"""
entry @k({PARAMETERS}) {{
%c4 = constant <f32: 0.0> : tile<4xf32>
%i4 = constant <i32: 0> : tile<4xi32>
%t4x8 = constant <f32: 0.0> : tile<4x8xf32>
%m4 = constant <i1: 1> : tile<4xi1>
%v = make_tensor_view %p, shape = [%n, 8], strides = [8, 1] : tile<i32> -> {VIEW}
%pv = make_partition_view %v : partition_view<tile=(4x8), {VIEW}>
%pp1 = reshape %p : tile<ptr<f32>> -> tile<1xptr<f32>>
%pp = broadcast %pp1 : tile<1xptr<f32>> -> tile<4xptr<f32>>
"""
REFUSED: dict[str, dict[str, str]] = tomllib.loads((Path(__file__).parent / "refused.toml").read_text())


def module(name: str) -> tuple[ops.ModuleOp, str]:
    source = f"{HEAD}{REFUSED[name]['body']}}}\n"
    return text.parse(source, filename="bad.mlir"), source


@pytest.mark.parametrize("name", REFUSED)
def test_verifier_names_what_is_wrong_and_shows_where(name: str) -> None:
    parsed, source = module(name)
    with pytest.raises(SourceError) as caught:
        verify(parsed, text=source)
    message, line, caret = str(caught.value).splitlines()
    place, _, error = message.partition(": error: ")
    file, row, column = place.split(":")
    assert (file, error) == ("bad.mlir", REFUSED[name]["error"])
    assert source.splitlines()[int(row) - 1].strip() == line.strip() and line.endswith("// here")
    assert caret.index("^") == int(column) + 1  # below the column, the line being indented by two


@pytest.mark.needs("toolchain")
@pytest.mark.parametrize("name", REFUSED)
def test_disassembler_refuses_the_same(name: str, tmp_path: Path) -> None:
    from toolchain.pinned.tools import tool

    file = tmp_path / "bad.tilebc"
    file.write_bytes(bytecode.write(module(name)[0], "13.4"))
    with pytest.raises(ToolFailed, match="error: "):
        tool("tileirdisasm").run([str(file)])


GOOD = {
    "a loop that goes on with other types than it gives": """
        %a = loop iter_values(%i = %n) : tile<i32> -> tile<i64> {
          if %c { break %l : tile<i64> }
          continue %i : tile<i32>
        }""",
    "any rounding where none is needed": "%a = ftof %x rounding<nearest_away> : tile<f32> -> tile<f64>",
    "rounding as a tensor core is fed": "%a = ftof %x rounding<nearest_away> : tile<f32> -> tile<tf32>",
    "rounding of a double": """
        %d = constant <f64: 0.0> : tile<f64>
        %a = ftof %d rounding<positive_inf> : tile<f64> -> tile<f32>""",
    "tf32 packed as the f32 that it is kept in": """
        %f = constant <tf32: 1.0> : tile<4xtf32>
        %a = pack %f : tile<4xtf32> -> tile<16xi8>""",
    "i4 resized": """
        %s = trunci %i4 : tile<4xi32> -> tile<4xi4>
        %a = exti %s unsigned : tile<4xi4> -> tile<4xi8>""",
    "a choice in a reduction": """
        %a = reduce %c4 dim=0 identities=[0.0 : f32] : tile<4xf32> -> tile<f32> (%y: tile<f32>, %z: tile<f32>) {
          %b = if %c -> (tile<f32>) { yield %y : tile<f32> } else { yield %z : tile<f32> }
          yield %b : tile<f32>
        }""",
}


@pytest.mark.needs("toolchain")
@pytest.mark.parametrize("name", GOOD)
def test_both_take_what_is_right(name: str, tmp_path: Path) -> None:
    from toolchain.pinned.tools import tool

    parsed = text.parse(f"{HEAD}{GOOD[name]}\nreturn\n}}\n", filename="good.mlir")
    verify(parsed)
    file = tmp_path / "good.tilebc"
    file.write_bytes(bytecode.write(parsed, "13.4"))
    tool("tileirdisasm").run([str(file)])


def test_what_all_the_others_start_from_is_right() -> None:
    verify(text.parse(f"{HEAD}return\n}}\n", filename="good.mlir"))
