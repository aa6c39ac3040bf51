// Instructions of sm_90
// `cute_nvgpu.arch` for sm_90 and sm_90a: TMA, mbarriers, clusters, wgmma.

func.func @mma_wgmma(%a0: f32, %a1: f32, %a2: f32, %a3: f32, %a4: i32, %a5: i32, %a6: i32, %a7: i32, %a8: i64, %a9: i32) {
  %r0, %r1, %r2, %r3 = cute_nvgpu.arch.mma.wgmma(%a0, %a1, %a2, %a3, %a4, %a5, %a6, %a7, %a8, %a9) {atom = "wgmma_rs.m64n8k16.f32.bf16.km"} : (f32, f32, f32, f32, i32, i32, i32, i32, i64, i32) -> (f32, f32, f32, f32)
  func.return
}

func.func @mma_wgmma_sp(%a0: f32, %a1: f32, %a2: f32, %a3: f32, %a4: i64, %a5: i64, %a6: i32, %a7: i32) {
  %r0, %r1, %r2, %r3 = cute_nvgpu.arch.mma.wgmma_sp(%a0, %a1, %a2, %a3, %a4, %a5, %a6, %a7) {atom = "wgmma_sp.m64n8k32.f32.f16.kk"} : (f32, f32, f32, f32, i64, i64, i32, i32) -> (f32, f32, f32, f32)
  func.return
}

func.func @wgmma_fence() {
  cute_nvgpu.arch.wgmma.fence() : () -> ()
  func.return
}

func.func @wgmma_commit_group() {
  cute_nvgpu.arch.wgmma.commit_group() : () -> ()
  func.return
}

func.func @wgmma_wait_group() {
  cute_nvgpu.arch.wgmma.wait_group() {n = 0 : i32} : () -> ()
  func.return
}

func.func @wgmma_after(%a0: i32, %a1: f32) {
  cute_nvgpu.arch.wgmma.after(%a0, %a1) : (i32, f32) -> ()
  func.return
}

func.func @mbarrier_init(%a0: !llvm.ptr<3>) {
  cute_nvgpu.arch.mbarrier.init(%a0) {n = 1 : i32} : (!llvm.ptr<3>) -> ()
  func.return
}

func.func @mbarrier_inval(%a0: !llvm.ptr<3>) {
  cute_nvgpu.arch.mbarrier.inval(%a0) : (!llvm.ptr<3>) -> ()
  func.return
}

func.func @mbarrier_init_fence() {
  cute_nvgpu.arch.mbarrier.init_fence() : () -> ()
  func.return
}

func.func @mbarrier_arrive(%a0: !llvm.ptr<3>) {
  cute_nvgpu.arch.mbarrier.arrive(%a0) : (!llvm.ptr<3>) -> ()
  func.return
}

func.func @mbarrier_arrive_remote(%a0: !llvm.ptr<3>) {
  cute_nvgpu.arch.mbarrier.arrive_remote(%a0) : (!llvm.ptr<3>) -> ()
  func.return
}

func.func @mbarrier_arrive_remote_read(%a0: !llvm.ptr<3>) {
  cute_nvgpu.arch.mbarrier.arrive_remote_read(%a0) : (!llvm.ptr<3>) -> ()
  func.return
}

func.func @mbarrier_arrive_expect_tx(%a0: !llvm.ptr<3>) {
  cute_nvgpu.arch.mbarrier.arrive_expect_tx(%a0) {n = 1 : i32} : (!llvm.ptr<3>) -> ()
  func.return
}

func.func @mbarrier_expect_tx(%a0: !llvm.ptr<3>) {
  cute_nvgpu.arch.mbarrier.expect_tx(%a0) {n = 1 : i32} : (!llvm.ptr<3>) -> ()
  func.return
}

func.func @mbarrier_wait(%a0: !llvm.ptr<3>, %a1: i32) {
  cute_nvgpu.arch.mbarrier.wait(%a0, %a1) : (!llvm.ptr<3>, i32) -> ()
  func.return
}

func.func @mbarrier_try_wait(%a0: !llvm.ptr<3>, %a1: i32) {
  %r0 = cute_nvgpu.arch.mbarrier.try_wait(%a0, %a1) : (!llvm.ptr<3>, i32) -> i32
  func.return
}

func.func @mbarrier_test_wait(%a0: !llvm.ptr<3>, %a1: i32) {
  %r0 = cute_nvgpu.arch.mbarrier.test_wait(%a0, %a1) : (!llvm.ptr<3>, i32) -> i32
  func.return
}

func.func @copy_tma_load(%a0: !llvm.ptr<3>, %a1: !llvm.ptr, %a2: !llvm.ptr<3>, %a3: i32, %a4: i32) {
  cute_nvgpu.arch.copy.tma_load(%a0, %a1, %a2, %a3, %a4) : (!llvm.ptr<3>, !llvm.ptr, !llvm.ptr<3>, i32, i32) -> ()
  func.return
}

func.func @copy_tma_load_im2col(%a0: !llvm.ptr<3>, %a1: !llvm.ptr, %a2: !llvm.ptr<3>, %a3: i32, %a4: i32, %a5: i32, %a6: i32) {
  cute_nvgpu.arch.copy.tma_load_im2col(%a0, %a1, %a2, %a3, %a4, %a5, %a6) : (!llvm.ptr<3>, !llvm.ptr, !llvm.ptr<3>, i32, i32, i32, i32) -> ()
  func.return
}

func.func @copy_tma_load_multicast(%a0: !llvm.ptr<3>, %a1: !llvm.ptr, %a2: !llvm.ptr<3>, %a3: i32, %a4: i32, %a5: i32) {
  cute_nvgpu.arch.copy.tma_load_multicast(%a0, %a1, %a2, %a3, %a4, %a5) : (!llvm.ptr<3>, !llvm.ptr, !llvm.ptr<3>, i32, i32, i32) -> ()
  func.return
}

func.func @copy_tma_store(%a0: !llvm.ptr<3>, %a1: !llvm.ptr, %a2: i32, %a3: i32) {
  cute_nvgpu.arch.copy.tma_store(%a0, %a1, %a2, %a3) : (!llvm.ptr<3>, !llvm.ptr, i32, i32) -> ()
  func.return
}

func.func @copy_tma_reduce(%a0: !llvm.ptr<3>, %a1: !llvm.ptr, %a2: i32, %a3: i32) {
  cute_nvgpu.arch.copy.tma_reduce(%a0, %a1, %a2, %a3) {atom = "add"} : (!llvm.ptr<3>, !llvm.ptr, i32, i32) -> ()
  func.return
}

func.func @copy_tma_prefetch(%a0: !llvm.ptr, %a1: i32, %a2: i32) {
  cute_nvgpu.arch.copy.tma_prefetch(%a0, %a1, %a2) : (!llvm.ptr, i32, i32) -> ()
  func.return
}

func.func @copy_tma_prefetch_descriptor(%a0: !llvm.ptr) {
  cute_nvgpu.arch.copy.tma_prefetch_descriptor(%a0) : (!llvm.ptr) -> ()
  func.return
}

func.func @copy_bulk_load(%a0: !llvm.ptr<3>, %a1: !llvm.ptr<1>, %a2: !llvm.ptr<3>) {
  cute_nvgpu.arch.copy.bulk_load(%a0, %a1, %a2) {n = 16 : i32} : (!llvm.ptr<3>, !llvm.ptr<1>, !llvm.ptr<3>) -> ()
  func.return
}

func.func @copy_bulk_store(%a0: !llvm.ptr<3>, %a1: !llvm.ptr<1>) {
  cute_nvgpu.arch.copy.bulk_store(%a0, %a1) {n = 16 : i32} : (!llvm.ptr<3>, !llvm.ptr<1>) -> ()
  func.return
}

func.func @copy_bulk_commit_group() {
  cute_nvgpu.arch.copy.bulk_commit_group() : () -> ()
  func.return
}

func.func @copy_bulk_wait_group() {
  cute_nvgpu.arch.copy.bulk_wait_group() {n = 0 : i32} : () -> ()
  func.return
}

func.func @copy_bulk_wait_group_all() {
  cute_nvgpu.arch.copy.bulk_wait_group_all() {n = 0 : i32} : () -> ()
  func.return
}

func.func @fence_proxy_async() {
  cute_nvgpu.arch.fence.proxy_async() : () -> ()
  func.return
}

func.func @fence_proxy_async_global() {
  cute_nvgpu.arch.fence.proxy_async_global() : () -> ()
  func.return
}

func.func @fence_proxy_async_all() {
  cute_nvgpu.arch.fence.proxy_async_all() : () -> ()
  func.return
}

func.func @convert_quad(%a0: f32, %a1: f32, %a2: f32, %a3: f32) {
  %r0 = cute_nvgpu.arch.convert.quad(%a0, %a1, %a2, %a3) {atom = "e4m3"} : (f32, f32, f32, f32) -> i32
  func.return
}

func.func @unpack_quad(%a0: i32) {
  %r0, %r1 = cute_nvgpu.arch.unpack.quad(%a0) {atom = "e4m3"} : (i32) -> (i32, i32)
  func.return
}

func.func @set_registers() {
  cute_nvgpu.arch.set_registers() {atom = "inc", n = 256 : i32} : () -> ()
  func.return
}

func.func @elect() {
  %r0 = cute_nvgpu.arch.elect() : () -> i32
  func.return
}

func.func @cluster_arrive() {
  cute_nvgpu.arch.cluster.arrive() {atom = "release"} : () -> ()
  func.return
}

func.func @cluster_wait() {
  cute_nvgpu.arch.cluster.wait() : () -> ()
  func.return
}

func.func @cluster_map(%a0: !llvm.ptr<3>, %a1: i32) {
  %r0 = cute_nvgpu.arch.cluster.map(%a0, %a1) : (!llvm.ptr<3>, i32) -> i32
  func.return
}

func.func @cluster_rank() {
  %r0 = cute_nvgpu.arch.cluster.rank() : () -> i32
  func.return
}

func.func @cluster_size() {
  %r0 = cute_nvgpu.arch.cluster.size() : () -> i32
  func.return
}

func.func @grid_wait() {
  cute_nvgpu.arch.grid_wait() : () -> ()
  func.return
}

func.func @grid_launch() {
  cute_nvgpu.arch.grid_launch() : () -> ()
  func.return
}

func.func @word_store(%a0: !llvm.ptr<1>, %a1: i32, %a2: f32) {
  cute_nvgpu.arch.word.store(%a0, %a1, %a2) {n = 1 : i32} : (!llvm.ptr<1>, i32, f32) -> ()
  func.return
}

func.func @word_wait(%a0: !llvm.ptr<3>, %a1: i32) {
  %r0, %r1, %r2 = cute_nvgpu.arch.word.wait(%a0, %a1) {n = 2 : i32} : (!llvm.ptr<3>, i32) -> (f32, f32, i32)
  func.return
}

func.func @word_add(%a0: !llvm.ptr<1>, %a1: f32) {
  cute_nvgpu.arch.word.add(%a0, %a1) : (!llvm.ptr<1>, f32) -> ()
  func.return
}

func.func @flag_add(%a0: !llvm.ptr<1>, %a1: i32) {
  cute_nvgpu.arch.flag.add(%a0, %a1) : (!llvm.ptr<1>, i32) -> ()
  func.return
}

func.func @flag_wait(%a0: !llvm.ptr<1>, %a1: i32, %a2: i32) {
  %r0 = cute_nvgpu.arch.flag.wait(%a0, %a1, %a2) : (!llvm.ptr<1>, i32, i32) -> i32
  func.return
}

func.func @word_wait_sum(%a0: !llvm.ptr<1>, %a1: i32) {
  %r0, %r1 = cute_nvgpu.arch.word.wait_sum(%a0, %a1) {n = 1 : i32} : (!llvm.ptr<1>, i32) -> (f32, i32)
  func.return
}

func.func @word_wait_across(%a0: !llvm.ptr<3>, %a1: i32) {
  %r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8 = cute_nvgpu.arch.word.wait_across(%a0, %a1) {n = 8 : i32} : (!llvm.ptr<3>, i32) -> (f32, f32, f32, f32, f32, f32, f32, f32, i32)
  func.return
}

func.func @word_wait_sum_across(%a0: !llvm.ptr<1>, %a1: i32) {
  %r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8 = cute_nvgpu.arch.word.wait_sum_across(%a0, %a1) {n = 8 : i32} : (!llvm.ptr<1>, i32) -> (f32, f32, f32, f32, f32, f32, f32, f32, i32)
  func.return
}

func.func @word_add_to_ranks(%a0: !llvm.ptr<1>, %a1: f32, %a2: i32, %a3: i32, %a4: !llvm.ptr<1>, %a5: !llvm.ptr<1>) {
  cute_nvgpu.arch.word.add_to_ranks(%a0, %a1, %a2, %a3, %a4, %a5) {n = 2 : i32} : (!llvm.ptr<1>, f32, i32, i32, !llvm.ptr<1>, !llvm.ptr<1>) -> ()
  func.return
}

func.func @word_wait_ranks(%a0: !llvm.ptr<1>, %a1: !llvm.ptr<1>, %a2: i32, %a3: i32) {
  %r0, %r1, %r2 = cute_nvgpu.arch.word.wait_ranks(%a0, %a1, %a2, %a3) {n = 2 : i32} : (!llvm.ptr<1>, !llvm.ptr<1>, i32, i32) -> (f32, f32, i32)
  func.return
}
