from __future__ import annotations

import gc

import pytest
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp, i1, i32
from xdsl.ir import Block, Region
from xdsl.rewriter import InsertPoint

from toolchain.cute.nvvm.emit import Emitter, uncollected


def test_a_number_is_computed_once_in_a_block_and_in_those_within() -> None:
    block = Block(arg_types=[i32, i1])
    x, condition = block.args
    builder = Emitter(InsertPoint.at_end(block))
    square = builder.binary(arith.MuliOp, x, x)
    inner, other = Block(), Block()
    builder.insert(scf.IfOp(condition, [], Region(inner), Region(other)))
    builder.insertion_point = InsertPoint.at_end(inner)
    assert builder.binary(arith.MuliOp, x, x) is square
    within = builder.binary(arith.AddiOp, x, builder.number(3))
    builder.insertion_point = InsertPoint.at_end(other)
    assert builder.binary(arith.AddiOp, x, builder.number(3)) is not within  # the other branch has it not


def test_what_is_made_without_checks_verifies() -> None:
    block = Block()
    builder = Emitter(InsertPoint.at_end(block))
    seven = builder.number(7)
    builder.compare("ult", builder.binary(arith.AddiOp, seven, seven), builder.number(20))
    module = ModuleOp(Region(block))
    module.verify()
    assert "arith.cmpi ult" in str(module)


def test_collection_goes_on_behind_a_compile_that_failed() -> None:
    assert gc.isenabled()
    with uncollected():
        assert not gc.isenabled()
    with pytest.raises(ZeroDivisionError):
        _failing()
    assert gc.isenabled()


@uncollected()
def _failing() -> float:
    return 1 / 0
