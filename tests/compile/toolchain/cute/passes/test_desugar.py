"""Operations that `cute-desugar` writes with simpler ones become kernels that ptxas takes."""

from __future__ import annotations

from toolchain.compiling.stages import compile_ptx
from toolchain.cute.compile import to_ptx

F = '!cute.memref<f32, rmem, align<16>, "4:1">'
G = '!cute.memref<f32, gmem, align<16>, "4:1">'
KERNEL = f"""gpu.module @kernels {{
  llvm.func @k(%x: !llvm.ptr<1>, %m: i32) attributes {{nvvm.kernel}} {{
    %s = cute.make_shape(%m) : (i32) -> !cute.shape<"(?,64)">
    cute.print(%s) : !cute.shape<"(?,64)">
    %p = cute.make_ptr(%x) : (!llvm.ptr<1>) -> !cute.ptr<f32, gmem, align<16>>
    %l = cute.static : !cute.layout<"4:1">
    %g = cute.make_view(%p, %l) : !cute.ptr<f32, gmem, align<16>>, !cute.layout<"4:1">
    %f = cute.make_fragment_like(%g) : ({G}) -> {F}
    %v = arith.constant 2.0 : f32
    %e = cute.memref.load_vec(%g) : ({G}) -> vector<4xf32>
    cute.memref.store_vec(%e, %f) : (vector<4xf32>, {F}) -> ()
    cute.axpby(%v, %f, %v, %f) : (f32, {F}, f32, {F}) -> ()
    %r = cute.memref.load_vec(%f) : ({F}) -> vector<4xf32>
    cute.memref.store_vec(%r, %g) : (vector<4xf32>, {G}) -> ()
    llvm.return
  }}
}}"""


def test_a_kernel_prints_and_moves_vectors() -> None:
    ptx = to_ptx(KERNEL, "sm_80")
    assert "vprintf" in ptx and "ld.global.v4" in ptx and "st.global.v4" in ptx
    assert compile_ptx(ptx.encode(), "sm_80").startswith(b"\x7fELF")
