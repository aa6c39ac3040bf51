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
    from toolchain.tools import tool

    file = tmp_path / "bad.tilebc"
    file.write_bytes(bytecode.write(module(name)[0]))
    with pytest.raises(ToolFailed, match="error: "):
        tool("tileirdisasm").run([str(file)])


def test_what_all_the_others_start_from_is_right() -> None:
    verify(text.parse(f"{HEAD}return\n}}\n", filename="good.mlir"))
