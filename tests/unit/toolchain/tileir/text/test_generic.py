"""Every operation of the corpus in MLIR's generic form gives the same module as in its own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from xdsl.dialects.builtin import DenseArrayBase, FunctionType, UnitAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from toolchain.tileir import text
from toolchain.tileir.dialect import attrs, types
from toolchain.tileir.dialect.control import GlobalOp, ModuleOp
from toolchain.tileir.text.names import quote
from toolchain.tileir.text.spelling import spell_attribute, spell_dense, spell_hints, spell_predicate

CORPUS = Path(__file__).parent / "corpus"
FILES = sorted(file for file in CORPUS.glob("*.mlir") if file.stem != "several-modules")


def spelled(value: Attribute) -> str:
    """An attribute as MLIR prints it."""
    if isinstance(value, DenseArrayBase):
        value = attrs.IntsAttr(tuple(int(number) for number in value.get_values()))
    match value:
        case FunctionType():
            kinds = [", ".join(map(types.spell, group.data)) for group in (value.inputs, value.outputs)]
            return f"({kinds[0]}) -> ({kinds[1]})"
        case attrs.DenseAttr():
            _, _, elements = spell_dense(value).partition(": ")
            return f"dense<{elements} : !cuda_tile.{types.spell(value.type)}"
        case attrs.HintsAttr():
            return f"#cuda_tile.optimization_hints{spell_hints(value)}"
        case attrs.DivByAttr() | attrs.BoundedAttr() | attrs.SameElementsAttr():
            return f"#cuda_tile.{spell_predicate(value)}"
        case attrs.IntAttr():
            return f"{value.data} : i64"
        case attrs.BoolAttr():
            return str(value.data).lower()
        case attrs.StrAttr():
            return quote(value.data)
        case attrs.IntsAttr():
            return f"array<i32: {', '.join(map(str, value.data))}>" if value.data else "array<i32>"
        case attrs.BoolsAttr():
            return f"array<i1: {', '.join(str(flag).lower() for flag in value.data)}>"
        case attrs.AttrsAttr() | attrs.DictAttr():
            return spell_attribute(value)
        case _:
            word: Any = value
            return f"#{word.name}<{word.data}>"


def dictionary(given: Mapping[str, Attribute]) -> str:
    pairs = [
        name.rstrip("_") if isinstance(value, UnitAttr) else f"{name} = {spelled(value)}"
        for name, value in given.items()
    ]
    return f" <{{{', '.join(pairs)}}}>" if pairs else ""


class Generic:
    """Prints in generic form."""

    def __init__(self) -> None:
        self.names: dict[SSAValue, str] = {}

    def name(self, value: SSAValue) -> str:
        return self.names.setdefault(value, f"%{len(self.names)}")

    def operation(self, op: Operation) -> str:
        properties = dict(op.properties)
        if isinstance(op, GlobalOp) and properties.pop("private", None):
            properties["sym_visibility"] = attrs.StrAttr("private")
        results = f"{', '.join(map(self.name, op.results))} = " if op.results else ""
        regions = ["".join(map(self.block, region.blocks)) for region in op.regions]
        bodies = f" ({', '.join(f'{{{region}}}' for region in regions)})" if regions else ""
        kinds = [", ".join(f"!cuda_tile.{types.spell(v.type)}" for v in group) for group in (op.operands, op.results)]
        operands = ", ".join(map(self.name, op.operands))
        return f'{results}"{op.name}"({operands}){dictionary(properties)}{bodies} : ({kinds[0]}) -> ({kinds[1]})\n'

    def block(self, block: Block) -> str:
        arguments = ", ".join(f"{self.name(value)}: {types.spell(value.type)}" for value in block.args)
        return f"^bb0({arguments}):\n{''.join(map(self.operation, block.ops))}"


def unnamed(module: ModuleOp) -> str:
    for op in module.walk():
        for value in (*op.results, *(a for region in op.regions for block in region.blocks for a in block.args)):
            value.name_hint = None
    module.attributes.clear()
    return text.print_module(module)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_generic_form(file: Path) -> None:
    for source in file.read_text().split("// -----\n"):
        module = text.parse(source, filename=file.name)
        written = Generic().operation(module)
        assert unnamed(text.parse(written, filename="generic.mlir")) == unnamed(module), written
