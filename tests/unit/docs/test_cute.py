"""Runs the code of docs/cute.md, and checks its pictures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from toolchain.cute import draw
from toolchain.cute.atoms import find
from toolchain.cute.layout import Layout
from toolchain.cute.nvvm import compile_to_ptx
from toolchain.cute.parse import parse
from toolchain.cute.passes import PASSES

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "cute.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_the_results_beside_the_layouts_are_right(capsys: pytest.CaptureFixture[str]) -> None:
    exec(BLOCKS[0], {})
    said = re.findall(r"print\(.*\)  # (\S+)", BLOCKS[0])
    assert len(said) == 5
    assert [line.rstrip(":,") for line in said] == capsys.readouterr().out.splitlines()


def _block(part: str) -> str:
    return next(block for block in BLOCKS if part in block)


def test_the_kernel_in_python_copies_16_bytes_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    exec(_block("copy_tiles"), {})
    assert capsys.readouterr().out.endswith("\n4\n")


def test_a_sparse_operand_is_compressed_as_the_page_shows(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    for part in ("kept_places", "compress(a"):
        exec(_block(part), names)
    wanted = "".join(
        PAGE.split(_block(part) + "```\n\n```text\n")[1].partition("```")[0] for part in ("kept_places", "compress(a")
    )
    assert capsys.readouterr().out == wanted


def test_the_kernel_compiles(capsys: pytest.CaptureFixture[str]) -> None:
    exec(_block("nvvm"), {})
    assert ".visible .entry scale(" in capsys.readouterr().out


def test_the_pass_prints_what_the_page_shows() -> None:
    block = next(text for text in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL) if "cute-fold-static" in text)
    before, after = block.removeprefix("$ cat divide.mlir\n").split(
        "$ tilestack cute-opt divide.mlir --pass-pipeline cute-fold-static\n"
    )
    module = parse(before)
    PASSES["cute-fold-static"](module)
    assert str(module) + "\n" == after


def test_the_kernel_of_layouts_compiles() -> None:
    module = parse(re.findall(r"```mlir\n(.*?)```", PAGE, re.DOTALL)[0], "transpose.mlir")
    PASSES["cute-lower"](module)
    assert ".visible .entry transpose(" in compile_to_ptx(module, "sm_90")


def test_the_pictures_are_what_the_commands_draw() -> None:
    swizzle = draw.of_layout(draw.parse_layout("S<3,2,3> o 0 o (8,32):(32,1)"), 4, Layout.parse("8:1"))
    assert (DOCS / "cute/swizzle.svg").read_text() == draw.as_svg(swizzle)
    accumulator = draw.of_atom(find("mma.m16n8k16.f32.bf16"), "c")
    assert (DOCS / "cute/accumulator.svg").read_text() == draw.as_svg(accumulator)
