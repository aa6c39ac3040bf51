"""`cute-expand-ops` and `cute-to-base`: a program prints what the algebra gives for the same numbers in Python.

cute-expand-ops.mlir and cute-to-base.mlir have the forms.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from xdsl.dialects.builtin import ModuleOp

from ci.suites.base_level import printed
from toolchain.cute.dialect.ops import ROWS
from toolchain.cute.dialect.types import CuteType
from toolchain.cute.layout import Layout
from toolchain.cute.parse import parse
from toolchain.cute.passes import PASSES
from toolchain.errors import SourceError

# An operation, its operands' types, and the numbers that take the place of each `?`.
CASES = [
    ("size", ['layout<"(?,(4,?)):(1,(?,2))">'], [3, 5, 7]),
    ("size<[1]>", ['shape<"(?,(?,3))">'], [2, 4]),
    ("cosize", ['layout<"(?,3):(?,-4)">'], [5, -2]),
    ("crd2idx", ['coord<"(?,?)">', 'shape<"(6,?)">'], [4, 2, 9]),
    ("layout_eval", ['coord<"?">', 'layout<"((2,3),?):((1,?),8)">'], [11, 4, 40]),
    ("layout_eval", ['coord<"(?,1)">', 'composed_layout<"S<2,1,3> o ? o (8,4):(1,8)">'], [5, 32]),
    ("layout_eval", ['coord<"?">', 'composed_layout<"(6,?):(1,9) o (2,1) o (2,3):(1@1,2@0)">'], [3, 5]),
    ("idx2crd", ['int_tuple<"?">', 'shape<"(3,(?,4),5)">'], [47, 2]),
    ("increment_coord", ['coord<"(?,(?,?))">', 'shape<"(3,(2,?))">'], [2, 1, 0, 4]),
    ("increment_coord", ['coord<"(?,(?,?))">', 'shape<"(3,(2,?))">'], [2, 0, 3, 4]),
    ("increment_coord", ['coord<"(1,?)">', 'shape<"(?,3)">'], [1, 4]),
    ("tuple_add", ['int_tuple<"(?,(2,?))">', 'int_tuple<"(3,(?,4),?)">'], [1, 5, 6, 7]),
    ("tuple_sub", ['shape<"(?,9)">', 'shape<"(4,?)">'], [7, 2]),
    ("tuple_product_each", ['shape<"((?,2),?)">'], [3, 5]),
    ("ceil_div", ['shape<"(?,?,3)">', 'shape<"(4,?)">'], [9, 10, 3]),
    ("shape_div", ['shape<"(?,?)">', 'shape<"(4,8)">'], [12, 2]),
    ("logical_divide", ['layout<"(?,8):(?,1)">', 'shape<"(3,4)">'], [6, 8]),
    ("composition", ['layout<"(?,?):(?,1)">', 'shape<"(2,3)">'], [4, 6, 7]),
    ("get_shape", ['layout<"(?,(3,?)):(1,(2,4))">'], [5, 6]),
    ("to_coord", ['int_tuple<"(?,(2,?))">'], [5, 6]),
    ("make_layout_like", ['layout<"(?,3,4):(?,?,1)">'], [5, 4, 40]),
    ("make_identity_layout", ['shape<"(?,3)">'], [5]),
    ("flatten", ['layout<"((?,2),3):((1,?),8)">'], [5, 6]),
    ("get_stride", ['layout<"(2,3):(?@0,1@1)">'], [4]),
    ("recast_layout<32, 8>", ['layout<"(8,4):(1,?)">'], [32]),
]
SLICES = [
    ("slice", ['layout<"(?,(4,?)):(1,(?,2))">', 'coord<"(1,(_,2))">'], [3, 5, 7]),
    ("dice", ['shape<"(?,(4,?))">', 'coord<"(1,_)">'], [3, 5]),
    ("slice", ['composed_layout<"(9,5):(1,9) o ? o (8,3):(1,?)">', 'coord<"(?,_)">'], [2, 8, 3]),
    ("append_to_rank<3>", ['layout<"(?,4):(1,?)">', 'layout<"1:0">'], [3, 7]),
]
PRINTED = ("cute-fold-static", "cute-expand-ops", "cute-to-base", "reconcile-unrealized-casts")


def lowered(text: str) -> ModuleOp:
    module = parse(text)
    for name in PRINTED:
        PASSES[name](module)
        module.verify()
    assert not any(op.name.startswith("cute.") for op in module.walk())
    return module


def known(kind: str, numbers: Iterator[int]) -> str:
    """A type's text with numbers for what is not known."""
    return re.sub(r"[?]", lambda _: str(next(numbers)), kind)


def made(name: str, kind: str, numbers: Iterator[int]) -> str:
    """The lines that put a value together."""
    label, value = kind.split("<", 1)
    value = value[1:-2]
    if "?" not in value:
        return f"%{name} = cute.static : !cute.{kind}"
    if label == "layout":
        shape, stride = value.split(":")
        parts = [
            made(f"{name}_{part}", f'{part}<"{text}">', numbers)
            for part, text in (("shape", shape), ("stride", stride))
        ]
        kinds = f'!cute.shape<"{shape}">, !cute.stride<"{stride}">'
        return "\n".join(
            [*parts, f"%{name} = cute.make_layout(%{name}_shape, %{name}_stride) : ({kinds}) -> !cute.{kind}"]
        )
    if label == "composed_layout":
        inner, offset, outer = value.split(" o ")
        first = "swizzle" if inner.startswith("S") else "layout"
        whole = {"inner": f'{first}<"{inner}">', "offset": f'int_tuple<"{offset}">', "outer": f'layout<"{outer}">'}
        parts = [made(f"{name}_{part}", text, numbers) for part, text in whole.items()]
        kinds = ", ".join(f"!cute.{text}" for text in whole.values())
        names = ", ".join(f"%{name}_{part}" for part in whole)
        return "\n".join([*parts, f"%{name} = cute.make_composed_layout({names}) : ({kinds}) -> !cute.{kind}"])
    count = value.count("?")
    constants = [f"%{name}_{i} = arith.constant {next(numbers)} : i32" for i in range(count)]
    names = ", ".join(f"%{name}_{i}" for i in range(count))
    kinds = ", ".join(["i32"] * count)
    return "\n".join([*constants, f"%{name} = cute.make_{label}({names}) : ({kinds}) -> !cute.{kind}"])


def results(op: str, kinds: list[str], numbers: list[int]) -> tuple[str, str]:
    """What a program prints, and what the algebra gives in Python."""
    name, _, said = op.partition("<")
    attribute = [int(n) for n in re.findall(r"-?\d+", said)]
    row, given = ROWS[name], iter(numbers)
    unknown = row.infer([typed(kind) for kind in kinds], attribute)
    python = row.infer([typed(known(kind, given)) for kind in kinds], attribute)
    given = iter(numbers)
    lines = [made(f"a{i}", kind, given) for i, kind in enumerate(kinds)]
    names = ", ".join(f"%a{i}" for i in range(len(kinds)))
    form = ", ".join(f"!cute.{kind}" for kind in kinds)
    form = form if row.plain or row.infers else f"({form})"
    plain = re.sub(r"\{[^}]*\}", "", str(unknown))
    lines += [f"%r = cute.{op} ({names}) : {form}" + f" -> {plain}" * (not row.infers), f"cute.print(%r) : {plain}"]
    program = "func.func @main() {\n" + "\n".join(lines) + "\nreturn\n}"
    return printed(lowered(program)).strip(), python.write(python.data)


def typed(kind: str) -> CuteType:
    function = next(iter(parse(f"func.func private @f(!cute.{kind})").body.ops))
    found = function.function_type.inputs.data[0]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType, reportUnknownMemberType]
    assert isinstance(found, CuteType)
    return found


@pytest.mark.parametrize(("op", "kinds", "numbers"), [*CASES, *SLICES], ids=lambda case: str(case)[:40])
def test_a_program_prints_what_the_algebra_gives(op: str, kinds: list[str], numbers: list[int]) -> None:
    printed_text, python = results(op, kinds, numbers)
    assert printed_text == python


@pytest.mark.parametrize("row", range(4))
def test_an_open_bit_under_a_swizzle_adds_what_the_offset_s_bits_decide(row: int) -> None:
    kinds = ['composed_layout<"S<2,0,2> o 0 o (4,4):(1,4)">', 'coord<"(?,_)">']
    for text in results("slice", kinds, [row]):
        assert Layout.parse(text).offsets() == [((row ^ i) + 4 * i) - row for i in range(4)]


def test_comparisons_and_widths() -> None:
    text = """func.func @main() {
      %a = arith.constant 5 : i64
      %b = arith.constant 6 : i32
      %x = cute.make_coord(%a, %b) : (i64, i32) -> !cute.coord<"(?{i64},?)">
      %y = cute.make_shape(%b, %b) : (i32, i32) -> !cute.shape<"(?,?)">
      %less = cute.elem_less(%x, %y) : (!cute.coord<"(?{i64},?)">, !cute.shape<"(?,?)">) -> i1
      %same = cute.equal(%y, %y) : (!cute.shape<"(?,?)">, !cute.shape<"(?,?)">) -> i1
      scf.if %less {
        cute.print(%x) : !cute.coord<"(?{i64},?)">
      }
      scf.if %same {
        cute.print(%y) : !cute.shape<"(?,?)">
      }
      return
    }"""
    assert printed(lowered(text)) == "(6,6)\n"


def test_what_is_not_expanded_is_refused_by_name() -> None:
    module = parse(
        'func.func @f(%a: !cute.shape<"(?,2)">) {\n'
        '%r = cute.size(%a) : (!cute.shape<"(?,2)">) -> !cute.int_tuple<"?">\nreturn\n}',
        "k.mlir",
    )
    with pytest.raises(
        SourceError, match=r"^k\.mlir:2:1: cute-to-base: cute\.size is left\n.*run cute-expand-ops before"
    ):
        PASSES["cute-to-base"](module)
