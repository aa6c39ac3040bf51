"""A kernel of the base level in LLVM IR text."""

from __future__ import annotations

from toolchain.cute.nvvm import parse, to_llvm_ir


def lowered(body: str, arguments: str = "%p: !llvm.ptr<1>, %i: i32, %x: f32", head: str = "") -> list[str]:
    """The instructions of a kernel with this body, without blanks before them."""
    text = f"gpu.module @m {{ {head} llvm.func @k({arguments}) attributes {{nvvm.kernel}} {{ {body}\nllvm.return }} }}"
    return [line.strip() for line in to_llvm_ir(parse(text)).splitlines()]
