"""Kernels with one operation less, or with one that comes later."""

from __future__ import annotations

import dataclasses

from toolchain.cute.dsl import Kernel


def without(kernel: Kernel, name: str, which: int = 0) -> Kernel:
    """The kernel without one of its operations of a name."""
    module = kernel.module.clone()
    op = [op for op in module.walk() if op.name == name][which]
    op.detach()
    op.erase()
    return dataclasses.replace(kernel, module=module)


def at_the_end(kernel: Kernel, name: str) -> Kernel:
    """The kernel with its operation of a name behind all others of its block."""
    module = kernel.module.clone()
    (op,) = [op for op in module.walk() if op.name == name]
    block, last = op.parent, op.parent.last_op if op.parent else None
    assert block is not None and last is not None
    op.detach()
    block.insert_op_before(op, last)
    return dataclasses.replace(kernel, module=module)
