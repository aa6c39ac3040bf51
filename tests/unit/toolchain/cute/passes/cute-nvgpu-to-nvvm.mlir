gpu.module @kernels {
  llvm.func @k(%bar: !llvm.ptr<3>, %x: f32) attributes {nvvm.kernel} {
    cute_nvgpu.arch.mbarrier.arrive(%bar) : (!llvm.ptr<3>) -> ()
    %a = cute_nvgpu.arch.exp2(%x) : (f32) -> f32
    llvm.return
  }
}
// becomes
gpu.module @kernels {
  llvm.func @k(%bar: !llvm.ptr<3>, %x: f32) attributes {nvvm.kernel} {
    %0 = llvm.ptrtoint %bar : !llvm.ptr<3> to i32
    llvm.inline_asm has_side_effects "mbarrier.arrive.release.cta.shared::cta.b64 _, [$0];", "r,~{memory}" %0 : (i32) -> ()
    %a = llvm.inline_asm "ex2.approx.ftz.f32 $0, $1;", "=f,f" %x : (f32) -> f32
    llvm.return
  }
}
// -----
module attributes {cute.target = "sm_80"} {
func.func @f() {
  cute_nvgpu.arch.cluster.wait() : () -> ()
  func.return
}
}
// error: k.mlir:3:3: cute-nvgpu-to-nvvm: cute_nvgpu.arch.cluster.wait: sm_80 has no such instruction: sm_90 and newer do
