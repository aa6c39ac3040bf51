"""The instructions of cute_nvgpu: their text is read again, and wrong ones are refused."""

from __future__ import annotations

import pytest

from toolchain.cute.nvgpu import ARCH
from toolchain.cute.parse import parse
from toolchain.errors import SourceError

HEAD = "func.func @f(%p : !llvm.ptr<3>, %g : !llvm.ptr<1>, %i : i32) {\n"
CALLS = [
    '%a = "cute_nvgpu.arch.copy.ldmatrix"(%p) <{atom = "ldmatrix.x1"}> : (!llvm.ptr<3>) -> i32',
    '"cute_nvgpu.arch.copy.cp_async"(%p, %g, %i) <{n = 16 : i32}> : (!llvm.ptr<3>, !llvm.ptr<1>, i32) -> ()',
    '"cute_nvgpu.arch.mbarrier.wait"(%p, %i) : (!llvm.ptr<3>, i32) -> ()',
    '"cute_nvgpu.arch.wgmma.fence"() : () -> ()',
]


@pytest.mark.parametrize("call", CALLS)
def test_a_call_is_read_and_printed(call: str) -> None:
    module = parse(HEAD + call + "\nfunc.return\n}")
    assert str(parse(str(module))) == str(module)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ('"cute_nvgpu.arch.copy.ldmatrix"(%p) <{atom = "ldmatrix.x3"}> : (!llvm.ptr<3>) -> ()', "no copy atom"),
        (
            '"cute_nvgpu.arch.copy.ldmatrix"(%p) <{atom = "ldmatrix.x2"}> : (!llvm.ptr<3>) -> ()',
            "the instruction has 3",
        ),
        ('"cute_nvgpu.arch.wgmma.wait_group"() : () -> ()', "needs its number"),
        ('"cute_nvgpu.arch.wgmma.wait_group"() <{n = 8 : i32}> : () -> ()', "0 to 7, and has 8"),
        ('"cute_nvgpu.arch.set_registers"() <{n = 60 : i32, atom = "inc"}> : () -> ()', "24 to 256 in steps of 8"),
        ('"cute_nvgpu.arch.set_registers"() <{n = 64 : i32}> : () -> ()', "one of inc, dec"),
        ('"cute_nvgpu.arch.mma.wgmma"() <{atom = "wgmma.m64n8k16.f32.bf16"}> : () -> ()', "side by side"),
        (
            '"cute_nvgpu.arch.mma.wgmma"() <{atom = "wgmma_rs.m64n8k16.f32.f16.mk"}> : () -> ()',
            "A in registers, with K",
        ),
        ('"cute_nvgpu.arch.mma.wgmma"() <{atom = "wgmma.m64n8k8.f32.tf32.km"}> : () -> ()', "K side by side only"),
        ('"cute_nvgpu.arch.mma.wgmma"() <{atom = "wgmma_sp.m64n8k32.f32.f16.kk"}> : () -> ()', "no atom of"),
        ('"cute_nvgpu.arch.mma.sync"() <{atom = "mma_sp.m16n8k32.f32.f16"}> : () -> ()', "no atom of this"),
        ('"cute_nvgpu.arch.copy.tma_store"(%p, %g) : (!llvm.ptr<3>, !llvm.ptr<1>) -> ()', "1 to 5 dimensions"),
        (
            '"cute_nvgpu.arch.mbarrier.wait"(%g, %i) : (!llvm.ptr<1>, i32) -> ()',
            r"operand 0 is !llvm.ptr<1>, .* i32 or",
        ),
        ('%a = "cute_nvgpu.arch.exp2"(%i) : (i32) -> f32', "operand 0 is i32, and the instruction takes f32"),
    ],
)
def test_a_wrong_call_is_refused(call: str, said: str) -> None:
    with pytest.raises(SourceError, match=said):
        parse(HEAD + call + "\nfunc.return\n}")


def test_a_row_says_which_targets_have_the_instruction() -> None:
    ldmatrix, wgmma, load = (ARCH[name].ROW for name in ("copy.ldmatrix", "mma.wgmma", "copy.tma_load"))
    assert [target for target in ("sm_80", "sm_90", "sm_90a", "sm_100a") if wgmma.runs_on(target)] == ["sm_90a"]
    assert [target for target in ("sm_80", "sm_90", "sm_100a") if load.runs_on(target)] == ["sm_90", "sm_100a"]
    assert ldmatrix.where == "sm_80 and newer" and wgmma.where == "sm_90a"


def test_an_a_in_registers_takes_the_place_of_its_descriptor() -> None:
    held = ARCH["mma.wgmma"]([], [], "wgmma_rs.m64n8k16.f32.bf16.km").asm
    text, constraints = held
    assert text.splitlines()[3] == (
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {$0, $1, $2, $3}, {$8, $9, $10, $11}, $12, p, 1, 1, 1;"
    )
    assert constraints == "=f,=f,=f,=f,0,1,2,3,r,r,r,r,l,r"
