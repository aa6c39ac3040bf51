// Instructions of every GPU
// `cute_nvgpu.arch` for sm_80 and newer: copies of a warp, mma.sync, barriers, shuffles, functions.

func.func @copy_ldmatrix(%a0: !llvm.ptr<3>) {
  %r0 = cute_nvgpu.arch.copy.ldmatrix(%a0) {atom = "ldmatrix.x1"} : (!llvm.ptr<3>) -> i32
  func.return
}

func.func @copy_stmatrix(%a0: !llvm.ptr<3>, %a1: i32) {
  cute_nvgpu.arch.copy.stmatrix(%a0, %a1) {atom = "stmatrix.x1"} : (!llvm.ptr<3>, i32) -> ()
  func.return
}

func.func @copy_cp_async(%a0: !llvm.ptr<3>, %a1: !llvm.ptr<1>) {
  cute_nvgpu.arch.copy.cp_async(%a0, %a1) {n = 4 : i32} : (!llvm.ptr<3>, !llvm.ptr<1>) -> ()
  func.return
}

func.func @copy_cp_async_mbarrier_arrive(%a0: !llvm.ptr<3>) {
  cute_nvgpu.arch.copy.cp_async_mbarrier_arrive(%a0) : (!llvm.ptr<3>) -> ()
  func.return
}

func.func @mma_sync(%a0: i32, %a1: i32, %a2: i32, %a3: f32, %a4: f32, %a5: f32, %a6: f32) {
  %r0, %r1, %r2, %r3 = cute_nvgpu.arch.mma.sync(%a0, %a1, %a2, %a3, %a4, %a5, %a6) {atom = "mma.m16n8k8.f32.f16"} : (i32, i32, i32, f32, f32, f32, f32) -> (f32, f32, f32, f32)
  func.return
}

func.func @mma_sync_sp(%a0: i32, %a1: i32, %a2: i32, %a3: i32, %a4: f32, %a5: f32, %a6: f32, %a7: f32, %a8: i32) {
  %r0, %r1, %r2, %r3 = cute_nvgpu.arch.mma.sync_sp(%a0, %a1, %a2, %a3, %a4, %a5, %a6, %a7, %a8) {atom = "mma_sp.m16n8k16.f32.f16"} : (i32, i32, i32, i32, f32, f32, f32, f32, i32) -> (f32, f32, f32, f32)
  func.return
}

func.func @barrier(%a0: i32) {
  cute_nvgpu.arch.barrier(%a0) {n = 32 : i32} : (i32) -> ()
  func.return
}

func.func @barrier_arrive(%a0: i32) {
  cute_nvgpu.arch.barrier.arrive(%a0) {n = 32 : i32} : (i32) -> ()
  func.return
}

func.func @shuffle_idx(%a0: i32, %a1: i32) {
  %r0 = cute_nvgpu.arch.shuffle.idx(%a0, %a1) : (i32, i32) -> i32
  func.return
}

func.func @shuffle_xor(%a0: i32) {
  %r0 = cute_nvgpu.arch.shuffle.xor(%a0) {n = 0 : i32} : (i32) -> i32
  func.return
}

func.func @shuffle_down(%a0: i32) {
  %r0 = cute_nvgpu.arch.shuffle.down(%a0) {n = 0 : i32} : (i32) -> i32
  func.return
}

func.func @shuffle_up(%a0: i32) {
  %r0 = cute_nvgpu.arch.shuffle.up(%a0) {n = 0 : i32} : (i32) -> i32
  func.return
}

func.func @vote_ballot(%a0: i32) {
  %r0 = cute_nvgpu.arch.vote_ballot(%a0) : (i32) -> i32
  func.return
}

func.func @warp_sync() {
  cute_nvgpu.arch.warp_sync() : () -> ()
  func.return
}

func.func @convert_pair(%a0: f32, %a1: f32) {
  %r0 = cute_nvgpu.arch.convert.pair(%a0, %a1) {atom = "f16"} : (f32, f32) -> i32
  func.return
}

func.func @registers(%a0: i32, %a1: f32) {
  %r0, %r1 = cute_nvgpu.arch.registers(%a0, %a1) : (i32, f32) -> (i32, f32)
  func.return
}

func.func @exp2(%a0: f32) {
  %r0 = cute_nvgpu.arch.exp2(%a0) : (f32) -> f32
  func.return
}

func.func @log2(%a0: f32) {
  %r0 = cute_nvgpu.arch.log2(%a0) : (f32) -> f32
  func.return
}

func.func @reciprocal(%a0: f32) {
  %r0 = cute_nvgpu.arch.reciprocal(%a0) : (f32) -> f32
  func.return
}

func.func @rsqrt(%a0: f32) {
  %r0 = cute_nvgpu.arch.rsqrt(%a0) : (f32) -> f32
  func.return
}

func.func @sin(%a0: f32) {
  %r0 = cute_nvgpu.arch.sin(%a0) : (f32) -> f32
  func.return
}

func.func @cos(%a0: f32) {
  %r0 = cute_nvgpu.arch.cos(%a0) : (f32) -> f32
  func.return
}

func.func @tanh(%a0: f32) {
  %r0 = cute_nvgpu.arch.tanh(%a0) : (f32) -> f32
  func.return
}

func.func @clock() {
  %r0 = cute_nvgpu.arch.clock() : () -> i64
  func.return
}

func.func @copy_load_once(%a0: !llvm.ptr<1>) {
  %r0, %r1, %r2, %r3 = cute_nvgpu.arch.copy.load_once(%a0) {n = 16 : i32} : (!llvm.ptr<1>) -> (i32, i32, i32, i32)
  func.return
}

func.func @prefetch(%a0: !llvm.ptr<1>) {
  cute_nvgpu.arch.prefetch(%a0) : (!llvm.ptr<1>) -> ()
  func.return
}

func.func @unpack_pair(%a0: i32) {
  %r0, %r1 = cute_nvgpu.arch.unpack.pair(%a0) {atom = "f16"} : (i32) -> (f32, f32)
  func.return
}

func.func @transpose(%a0: i32) {
  %r0 = cute_nvgpu.arch.transpose(%a0) : (i32) -> i32
  func.return
}

func.func @permute(%a0: i32, %a1: i32) {
  %r0 = cute_nvgpu.arch.permute(%a0, %a1) {n = 20800 : i32} : (i32, i32) -> i32
  func.return
}
