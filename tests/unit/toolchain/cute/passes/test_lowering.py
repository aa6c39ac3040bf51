"""Every operation of `cute` is lowered: each example of the reference, with operands that a kernel makes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from toolchain.cute.compile import lower
from toolchain.cute.parse import parse

FOLDER = Path(__file__).parents[5] / "docs/cute-reference"
# Tensors of coordinates follow from others: the files beside this one and examples/cute lower them.
ELSEWHERE = ("in_bounds", "deref_arith_tuple_iter", "tma_copy", "atom_get_value", "atom_set_value")
KINDS = {"cute.int_tuple": "int_tuple", "cute.shape": "shape", "cute.stride": "stride", "cute.coord": "coord",
         "cute.tile": "tile"}  # fmt: skip


def examples() -> Iterator[tuple[str, str]]:
    for page in ("layouts", "tuples", "tensors", "atoms"):
        text = (FOLDER / f"{page}.mlir").read_text()
        yield from re.findall(r"^func\.func @(\w+)(\(.*?^\})$", text, re.MULTILINE | re.DOTALL)


def operand(name: str, kind: str, parameters: list[str]) -> list[str]:
    """Lines that make a value of a type, from parameters of the kernel."""

    def parameter(of: str) -> str:
        parameters.append(f"%p{len(parameters)}: {of}")
        return f"%p{len(parameters) - 1}"

    def numbers(text: str) -> list[str]:
        return [parameter("i32") for _ in range(text.count("?"))]

    def made(kind: str, text: str, target: str) -> str:
        values = numbers(text)
        types = ", ".join(["i32"] * len(values))
        return f'{target} = cute.make_{kind}({", ".join(values)}) : ({types}) -> !cute.{kind}<"{text}">'

    dialect = kind.partition("<")[0].removeprefix("!")
    if not kind.startswith("!cute"):
        parameters.append(f"{name}: {kind}")
        return []
    if dialect in ("cute_nvgpu.mma_atom", "cute_nvgpu.copy_atom"):
        return [f"{name} = cute_nvgpu.make_{dialect.removeprefix('cute_nvgpu.')}() : () -> {kind}"]
    if dialect == "cute.memref" and "rmem" in kind:
        return [f"{name} = cute.memref.alloca() : () -> {kind}"]
    if dialect in ("cute.memref", "cute.ptr"):
        head, _, layout = kind.removeprefix("!cute.memref<").removeprefix("!cute.ptr<").partition(', "')
        pointer = f"!cute.ptr<{head.removesuffix('>') if head.endswith('>>') else head}>"
        space = 3 if "smem" in head else 1
        target = name if dialect == "cute.ptr" else f"{name}_pointer"
        lines = [f"{target} = cute.make_ptr({parameter(f'!llvm.ptr<{space}>')}) : (!llvm.ptr<{space}>) -> {pointer}"]
        if dialect == "cute.ptr":
            return lines
        whole = f'!cute.layout<"{layout.removesuffix(">")}>'
        lines += operand(f"{name}_layout", whole, parameters)
        return [*lines, f"{name} = cute.make_view({target}, {name}_layout) : {pointer}, {whole}"]
    if "?" not in kind:
        return [f"{name} = cute.static : {kind}"]
    text = kind.partition('"')[2].rpartition('"')[0]
    if dialect == "cute.layout":
        shape, stride = text.split(":")
        types = f'(!cute.shape<"{shape}">, !cute.stride<"{stride}">) -> {kind}'
        lines = [made("shape", shape, f"{name}_shape"), made("stride", stride, f"{name}_stride")]
        return [*lines, f"{name} = cute.make_layout({name}_shape, {name}_stride) : {types}"]
    return [made(KINDS[dialect], text, name)]


@pytest.mark.parametrize(("name", "text"), [pytest.param(*e, id=e[0]) for e in examples() if e[0] not in ELSEWHERE])
def test_an_example_is_lowered_to_the_base_level(name: str, text: str) -> None:
    function = next(iter(parse(f"func.func @{name}{text}").body.ops))
    parameters, lines = list[str](), list[str]()
    for argument in function.regions[0].blocks[0].args:
        lines += operand(f"%{argument.name_hint}", str(argument.type), parameters)
    body = text.splitlines()[1:-2]
    kernel = "\n".join([
        "gpu.module @m {", f"llvm.func @k({', '.join(parameters)}) attributes {{nvvm.kernel}} {{", *lines, *body,
        "llvm.return", "}", "}",
    ])  # fmt: skip
    assert "cute." not in str(lower(kernel, name))
