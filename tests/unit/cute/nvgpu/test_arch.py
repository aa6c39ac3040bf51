"""The instructions of cute_nvgpu: their text is read again, and wrong ones are refused."""

from __future__ import annotations

import pytest

from toolchain.cute.dialect import parse
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
        ('"cute_nvgpu.arch.mma.wgmma"() <{atom = "wgmma.m64n8k16.f32.bf16"}> : () -> ()', "side by side"),
    ],
)
def test_a_wrong_call_is_refused(call: str, said: str) -> None:
    with pytest.raises(SourceError, match=said):
        parse(HEAD + call + "\nfunc.return\n}")
