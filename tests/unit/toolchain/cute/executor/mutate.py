"""Kernels with one operation less."""

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
