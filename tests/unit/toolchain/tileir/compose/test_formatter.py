"""The layout of text: it is its own layout, and never changes what the text says."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolchain.errors import SourceError
from toolchain.knobs import ROOT
from toolchain.tileir import bytecode
from toolchain.tileir.compose.formatter import format_text
from toolchain.tileir.compose.sample import sample
from toolchain.tileir.text import parse_all

FILES = sorted(
    path
    for folder in ("kernels_mlir", "docs/reference", "tests/unit/toolchain/tileir/text/corpus")
    for path in (ROOT / folder).glob("*.mlir")
)
UGLY = """\


!x   =  !cuda_tile.tile<4xf32>   // a tile


  cuda_tile.module @m{
entry @k( %p :tile<ptr<f32>> ,%c: tile<i1> )
{
// what it does

    %a , %b = if %c ->(!x,!x){
   %v = constant <f32:  0.0>:!x
     yield %v,%v
: !x, !x
  }else{
      %w=constant <f32: 1.0> : !x
      yield  %w, %w : !x, !x }
    %s = reduce %a dim=0 identities=[ 0.0 : f32 ] : !x
  ->tile<f32>
      (%l: tile<f32>, %r: tile<f32>) {
      %t = addf %l, %r : tile<f32>
    yield %t : tile<f32>
      }
       return
  }
}"""
NEAT = """\
!x = !cuda_tile.tile<4xf32>  // a tile

cuda_tile.module @m {
  entry @k(%p: tile<ptr<f32>>, %c: tile<i1>)
  {
    // what it does

    %a, %b = if %c -> (!x, !x) {
      %v = constant <f32: 0.0> : !x
      yield %v, %v
          : !x, !x
    } else {
      %w = constant <f32: 1.0> : !x
      yield %w, %w : !x, !x }
    %s = reduce %a dim=0 identities=[0.0 : f32] : !x
        -> tile<f32>
    (%l: tile<f32>, %r: tile<f32>) {
      %t = addf %l, %r : tile<f32>
      yield %t : tile<f32>
    }
    return
  }
}
"""


def laid_out(text: str) -> str:
    return format_text(text, filename="k.mlir")


def test_a_layout() -> None:
    assert laid_out(UGLY) == NEAT
    assert laid_out(NEAT) == NEAT
    assert laid_out("") == "" and laid_out("// alone") == "// alone\n"


def code(text: str) -> bytes:
    return b"".join(bytecode.write(module, "13.5") for module in parse_all(text, filename="k.mlir"))


def test_the_bytecode_is_the_same() -> None:
    assert code(UGLY) == code(NEAT)
    plain = [path.read_text() for path in FILES if path.parent.name == "reference"]
    assert len(plain) > 5
    for text in plain:
        assert code(laid_out(text)) == code(text)


def test_the_kernels_of_a_formatted_file_are_the_same(tmp_path: Path) -> None:
    folder = ROOT / "kernels_mlir"
    before = bytecode.write(sample(folder / "gelu.mlir"), "13.4")
    for path in folder.glob("*.mlir"):
        (tmp_path / path.name).write_text(laid_out(re.sub(r"^ +", "", path.read_text(), flags=re.MULTILINE)))
    assert bytecode.write(sample(tmp_path / "gelu.mlir"), "13.4") == before


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_layout_is_its_own(path: Path) -> None:
    text = laid_out(path.read_text())
    assert laid_out(text) == text


@given(st.sampled_from(FILES), st.integers(0, 2**32))
@settings(max_examples=25)
def test_however_lines_are_indented_the_layout_is_the_same(path: Path, seed: int) -> None:
    text, rng = laid_out(path.read_text()), random.Random(seed)
    lines = [" " * rng.randrange(9) + line.strip() + " " * rng.randrange(3) for line in text.splitlines()]
    ends = ["\n" * rng.choice((1, 1, 3)) if not line.strip() else "\n" for line in lines]
    assert laid_out("".join(line + end for line, end in zip(lines, ends, strict=True))) == text


@given(
    st.lists(st.sampled_from(["{", "}", "(", ")", "[", "]", "%x", "=", "addi", ":", "->", "\n", "// c\n", ",", "7"]))
)
def test_text_that_does_not_parse_has_a_layout_too(words: list[str]) -> None:
    text = laid_out(" ".join(words))
    assert laid_out(text) == text


def test_a_character_that_tile_ir_does_not_have() -> None:
    with pytest.raises(SourceError, match=r"k\.mlir:1:3: error: unexpected character '\*'"):
        laid_out("a *")
