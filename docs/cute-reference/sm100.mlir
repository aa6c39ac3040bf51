// Instructions of sm_100a
// `cute_nvgpu.arch` for sm_100a and its family: tensor memory and tcgen05.

func.func @tmem_alloc(%a0: !llvm.ptr<3>) {
  cute_nvgpu.arch.tmem.alloc(%a0) {atom = "single", n = 32 : i32} : (!llvm.ptr<3>) -> ()
  func.return
}

func.func @tmem_dealloc(%a0: i32) {
  cute_nvgpu.arch.tmem.dealloc(%a0) {atom = "single", n = 32 : i32} : (i32) -> ()
  func.return
}

func.func @tmem_relinquish() {
  cute_nvgpu.arch.tmem.relinquish() {atom = "single"} : () -> ()
  func.return
}

func.func @tmem_load(%a0: i32) {
  %r0 = cute_nvgpu.arch.tmem.load(%a0) {atom = "16x64b.x1"} : (i32) -> i32
  func.return
}

func.func @tmem_store(%a0: i32, %a1: i32) {
  cute_nvgpu.arch.tmem.store(%a0, %a1) {atom = "16x64b.x1"} : (i32, i32) -> ()
  func.return
}

func.func @tmem_wait_load() {
  cute_nvgpu.arch.tmem.wait_load() : () -> ()
  func.return
}

func.func @tmem_wait_store() {
  cute_nvgpu.arch.tmem.wait_store() : () -> ()
  func.return
}

func.func @tmem_copy(%a0: i32, %a1: i64) {
  cute_nvgpu.arch.tmem.copy(%a0, %a1) {atom = "128x256b"} : (i32, i64) -> ()
  func.return
}

func.func @tcgen05_mma(%a0: i32, %a1: i64, %a2: i64, %a3: i32, %a4: i32) {
  cute_nvgpu.arch.tcgen05.mma(%a0, %a1, %a2, %a3, %a4) {atom = "f16"} : (i32, i64, i64, i32, i32) -> ()
  func.return
}

func.func @tcgen05_mma_sp(%a0: i32, %a1: i64, %a2: i64, %a3: i32, %a4: i32, %a5: i32) {
  cute_nvgpu.arch.tcgen05.mma_sp(%a0, %a1, %a2, %a3, %a4, %a5) {atom = "f16"} : (i32, i64, i64, i32, i32, i32) -> ()
  func.return
}

func.func @tcgen05_mma_scaled(%a0: i32, %a1: i64, %a2: i64, %a3: i32, %a4: i32, %a5: i32, %a6: i32) {
  cute_nvgpu.arch.tcgen05.mma_scaled(%a0, %a1, %a2, %a3, %a4, %a5, %a6) {atom = "mxf8f6f4"} : (i32, i64, i64, i32, i32, i32, i32) -> ()
  func.return
}

func.func @tcgen05_commit(%a0: !llvm.ptr<3>) {
  cute_nvgpu.arch.tcgen05.commit(%a0) {atom = "single"} : (!llvm.ptr<3>) -> ()
  func.return
}

func.func @tcgen05_commit_multicast(%a0: !llvm.ptr<3>, %a1: i32) {
  cute_nvgpu.arch.tcgen05.commit_multicast(%a0, %a1) {atom = "single"} : (!llvm.ptr<3>, i32) -> ()
  func.return
}

func.func @tcgen05_fence_before() {
  cute_nvgpu.arch.tcgen05.fence_before() : () -> ()
  func.return
}

func.func @tcgen05_fence_after() {
  cute_nvgpu.arch.tcgen05.fence_after() : () -> ()
  func.return
}
