"""The reference of operations: it is whole, up to date, and says what the verifier accepts."""

from __future__ import annotations

import pytest

from ci.site.accepted import Accepted, accepted
from ci.site.reference import FOLDER, PAGES, examples, index, page
from toolchain.tileir import text
from toolchain.tileir.dialect import types as t
from toolchain.tileir.dialect.base import TileOp
from toolchain.tileir.dialect.ops import OPS

STALE = "write it anew: python -m ci.site --generate"


def test_every_operation_has_one_example() -> None:
    named = [example.op for name in PAGES for example in examples(FOLDER / f"{name}.mlir")]
    assert sorted(named) == sorted(OPS)
    assert sorted(path.stem for path in FOLDER.glob("*.md")) == sorted([*PAGES, "index", "types"])


def test_every_operation_says_what_it_does() -> None:
    assert [name for name, op in OPS.items() if len(vars(op)["__doc__"] or "") < 8] == []


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_the_dialect_and_the_interpreter_say(name: str) -> None:
    assert (FOLDER / f"{name}.md").read_text() == page(name), STALE


def test_the_index_is_up_to_date() -> None:
    assert (FOLDER / "index.md").read_text() == index(), STALE


def found(line: str) -> Accepted:
    (module,) = text.parse_all(f"entry @k(%x: tile<f32>, %n: tile<i32>) {{\n{line}\n}}", filename="k.mlir")
    op = next(module.entries["k"].body.block.ops.__iter__())
    assert isinstance(op, TileOp)
    return accepted(op)


def test_types_that_are_the_same_and_a_mode_of_one_type_alone() -> None:
    divf = found("%y = divf %x, %x : tile<f32>")
    assert divf.groups == (("lhs", "rhs", "result"),)
    assert divf.types == {(t.f16,), (t.bf16,), (t.f32,), (t.f64,)}
    modes = divf.values["rounding_mode"]
    assert modes["approx"] == {(t.f32,)} and modes["zero"] == divf.types and "nearest_away" not in modes
    assert divf.values["flush_to_zero"] == {"set": {(t.f32,)}}


def test_types_that_depend_on_each_other() -> None:
    exti = found("%y = exti %n signed : tile<i32> -> tile<i64>")
    assert exti.groups == (("from_",), ("to",))
    assert (t.i8, t.i32) in exti.types and (t.i32, t.i8) not in exti.types and (t.f16, t.f32) not in exti.types


def test_an_operation_says_whether_its_bits_were_compared() -> None:
    pages = {name: (FOLDER / f"{name}.md").read_text() for name in ("integers", "memory")}
    assert "Bits compared on an H100 and an H200: [equal in 4 of 4 cases](../agreement.md)." in pages["integers"]
    assert "Bits compared on a GPU: not run." in pages["memory"]
    assert "not run" not in pages["integers"]
