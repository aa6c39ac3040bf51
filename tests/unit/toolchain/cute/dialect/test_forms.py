"""The forms that operations share: number and kinds of operands, results, known shapes, one operand with its type."""

from __future__ import annotations

import pytest

from toolchain.cute.parse import parse
from toolchain.errors import SourceError

F4, OPEN = '!cute.memref<f32, rmem, align<16>, "4:1">', '!cute.memref<f32, rmem, align<16>, "?:1">'
SHAPE = '!cute.shape<"(?,4)">'
HEAD = f'func.func @f(%x: {F4}, %o: {OPEN}, %v: f32, %c: !cute.coord<"0">, %s: {SHAPE}) {{\n'


def parsed(line: str) -> str:
    return str(parse(f"{HEAD}{line}\nfunc.return\n}}", "k.mlir"))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (f'%r = cute.memref.load(%x) : ({F4}) -> f32', "takes 2 operands, not 1"),
        (f"cute.gemm(%x, %x) : ({F4}, {F4}) -> ()", "takes 4 to 6 operands, not 2"),
        ("cute.axpby(%v) : (f32) -> ()", r"takes 4 operands \(alpha, x, beta, y\), not 1"),
        ('%r = cute.memref.load(%v, %c) : (f32, !cute.coord<"0">) -> f32', "operand 0 is a cute.memref, not f32"),
        (f'%r = cute.memref.load(%x, %c) : ({F4}, !cute.coord<"0">) -> f64', "gives f32, not f64"),
        (f'cute.memref.load(%x, %c) : ({F4}, !cute.coord<"0">) -> ()', "gives f32, not nothing"),
        (f'%r = cute.memref.store(%x, %c, %v) : ({F4}, !cute.coord<"0">, f32) -> f32', "gives nothing, not f32"),
        (f"cute.clear(%o) : ({OPEN}) -> ()", r"the shape of \?:1 is not known; it is unrolled"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused(line: str, said: str) -> None:
    with pytest.raises(SourceError, match=rf"^k\.mlir:2:\d+: .*{said}"):
        parsed(line)


@pytest.mark.parametrize(
    "line",
    [
        f"%r, %t = cute.get_leaves(%s) : {SHAPE}",
        f"%r, %t = cute.get_scalars (%s) : {SHAPE}",
        f"%r = cute.get_scalars<{{only_dynamic}}> (%s) : {SHAPE}",
    ],
)
def test_one_operand_and_its_type_are_printed_as_they_are_read(line: str) -> None:
    text = parsed(line)
    assert line.partition(" = ")[2] in text
    assert str(parse(text, "k.mlir")) == text
