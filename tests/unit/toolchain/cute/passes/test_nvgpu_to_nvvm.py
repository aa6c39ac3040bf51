"""Instructions become inline assembly, and a target that lacks one is an error."""

from __future__ import annotations

import pytest

from toolchain.cute.compile import lower, to_ptx
from toolchain.errors import SourceError

KERNEL = """gpu.module @m {
  llvm.func @k(%p: !llvm.ptr<1>) attributes {nvvm.kernel} {
    "cute_nvgpu.arch.wgmma.fence"() : () -> ()
    %a, %b = "cute_nvgpu.arch.registers"(%x, %x) : (i32, i32) -> (i32, i32)
    llvm.store %b, %p : i32, !llvm.ptr<1>
    llvm.return
  }
}""".replace("    %a,", "    %x = arith.constant 7 : i32\n    %a,")


def test_several_results_are_parts_of_one_struct() -> None:
    made = str(lower(KERNEL))
    assert "!llvm.struct<(i32, i32)>" in made and "cute_nvgpu" not in made


def test_the_target_must_have_the_instruction() -> None:
    assert "wgmma.fence.sync.aligned;" in to_ptx(KERNEL, "sm_90a", name="k.mlir")
    with pytest.raises(SourceError) as caught:
        to_ptx(KERNEL, "sm_90", name="k.mlir")
    said = "k.mlir:3:5: cute-nvgpu-to-nvvm: cute_nvgpu.arch.wgmma.fence: sm_90 has no such instruction: sm_90a do"
    assert str(caught.value).startswith(said)
