"""A warp's threads, its findings, and registers that have no value yet."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr

from tests.unit.toolchain.cute.executor.state.test_call import OP, warp
from toolchain.cute.executor import MissingWait, OutOfBounds, Uninitialised
from toolchain.cute.executor.state.block import NEVER, Step, Ticket

LANES = np.arange(32)


def test_threads_that_the_block_does_not_have() -> None:
    made = warp(threads=40)
    assert made.whole and made.exists.all()
    rest = type(made)(made.block, 1, [], 0)
    assert rest.threads[0] == 32 and rest.exists.sum() == 8 and rest.whole
    rest.set_active(rest.exists & (LANES > 2))
    assert not rest.whole and rest.first_active() == 3


def test_a_finding_names_operation_place_block_and_thread() -> None:
    made = warp()
    op = OP.clone()
    op.location = FileLineColLoc(StringAttr("k.py"), IntAttr(3), IntAttr(5))
    made.block.steps = [Step(0, op, lambda _: None)]
    with pytest.raises(OutOfBounds, match=r"k: arith.addi at k.py:3:5, block \(0, 0, 0\), thread 7: too far") as found:
        made.fail(OutOfBounds, "too far", lane=7, tensor="x", address=4)
    assert (found.value.tensor, found.value.address, found.value.site.thread) == ("x", 4, 7)
    with pytest.raises(OutOfBounds, match=r"block \(0, 0, 0\): too far"):
        made.fail(OutOfBounds, "too far")


def test_a_register_that_some_threads_have_not_written() -> None:
    made = warp()
    ticket = Ticket(NEVER, lanes=LANES >= 8)
    made.set_active(LANES < 8)
    made.check_ticket(ticket)
    made.set_active(LANES < 9)
    with pytest.raises(Uninitialised, match="thread 8: a register is used"):
        made.check_ticket(ticket)


def test_a_register_that_an_agent_still_writes() -> None:
    made = warp()
    agent = made.agent("products")
    assert made.agent("products") == agent and made.agent("copies") != agent
    made.pending[4] = Ticket(agent, time=2)
    step = Step(0, OP, lambda _: None, frozenset({3, 4}))
    made.block.clocks.complete(0, agent, 1)
    with pytest.raises(MissingWait, match=r"that arith\.addi still writes"):
        made.check_registers(step)
    made.check_registers(Step(0, OP, lambda _: None, frozenset({3})))
    made.block.clocks.complete(0, agent, 2)
    made.check_registers(step)
    assert not made.pending
