"""The PTX text of an instruction of `cute_nvgpu.arch` on given kinds of registers."""

from __future__ import annotations

from xdsl.dialects import llvm
from xdsl.dialects.builtin import IntAttr, f32, i32, i64
from xdsl.ir import Attribute
from xdsl.utils.test_value import create_ssa_value

from toolchain.cute.nvgpu import ARCH

KINDS: dict[str, Attribute] = {"r": i32, "l": i64, "f": f32, "s": llvm.LLVMPointerType(IntAttr(3))}


def written(name: str, operands: str = "", results: str = "", atom: str = "", n: int | None = None) -> tuple[str, str]:
    """Its text and constraints. `operands`, `results`: a letter of KINDS for each. It is verified."""
    values = [create_ssa_value(KINDS[kind]) for kind in operands]
    op = ARCH[name](values, [KINDS[kind] for kind in results], atom, n)
    op.verify_()
    return op.asm


def text(name: str, operands: str = "", results: str = "", atom: str = "", n: int | None = None) -> str:
    """The instruction alone, without the lines that set a predicate or a mask."""
    lines = written(name, operands, results, atom, n)[0].splitlines()
    return next((line for line in lines if line[0] not in "{}." and not line.startswith(("setp", "cvt.u16"))), "")
