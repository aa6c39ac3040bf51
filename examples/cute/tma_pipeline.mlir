// A pipeline of two stages: one thread copies a row of boxes of 64 x 64 by TMA, from global to shared memory and on.
//
// While one box is written, the next one is loaded. The types are in the older spelling, without quotes. This program was
// written for this repository in that style.
// tilestack cute-opt examples/cute/tma_pipeline.mlir --pass-pipeline cute-to-standard,cute-nvgpu-to-nvvm --emit ptx
!load = !cute_nvgpu.tma_atom<"load">
!store = !cute_nvgpu.tma_atom<"store">
!stages = !cute.layout<(64,64,2):(64,1,4096)>
!ring = !cute.memref<bf16, smem, align<1024>, (64,64,2):(64,1,4096)>
!box = !cute.memref<bf16, smem, align<1024>, (64,64):(64,1)>
!sptr = !cute.ptr<bf16, smem, align<1024>>
!whole = !cute.coord_tensor<(0,0), "(1048576,64):(1@0,1@1)">
!corner = !cute.coord_tensor<(?{div=64},0), "(1048576,64):(1@0,1@1)">

gpu.module @kernels {
  llvm.mlir.global external @shared_memory() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<16384 x i8>
  llvm.mlir.global external @full() {addr_space = 3 : i32, alignment = 8 : i64} : !llvm.array<2 x i64>
  llvm.func @tma_pipeline(%x: !llvm.ptr {llvm.byval = !llvm.array<128 x i8>, llvm.align = 64 : i64, nvvm.grid_constant}, %y: !llvm.ptr {llvm.byval = !llvm.array<128 x i8>, llvm.align = 64 : i64, nvvm.grid_constant}, %boxes: i32) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32>} {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %two = arith.constant 2 : i32
    %width = arith.constant 64 : i32
    %base = llvm.mlir.addressof @shared_memory : !llvm.ptr<3>
    %bars = llvm.mlir.addressof @full : !llvm.ptr<3>
    %pointer = cute.make_ptr(%base) : (!llvm.ptr<3>) -> !sptr
    %layout = cute.static : !stages
    %ring = cute.make_view(%pointer, %layout) : !sptr, !stages
    %size = cute.static : !cute.shape<(1048576,64)>
    %where = cute.make_identity_tensor(%size) : !cute.shape<(1048576,64)>
    %load = cute_nvgpu.make_copy_atom(%x) : (!llvm.ptr) -> !load
    %store = cute_nvgpu.make_copy_atom(%y) : (!llvm.ptr) -> !store
    %elected = cute_nvgpu.arch.elect() : () -> i32
    %first = arith.cmpi ne, %elected, %zero : i32
    scf.if %first {
      %other = llvm.getelementptr %bars[8] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
      cute_nvgpu.arch.mbarrier.init(%bars) {n = 1 : i32} : (!llvm.ptr<3>) -> ()
      cute_nvgpu.arch.mbarrier.init(%other) {n = 1 : i32} : (!llvm.ptr<3>) -> ()
      cute_nvgpu.arch.mbarrier.init_fence() : () -> ()
      // One load is ahead of the stores: the loop loads box i and stores box i - 1.
      %end = arith.addi %boxes, %one : i32
      scf.for %i = %zero to %end step %one : i32 {
        %loads = arith.cmpi slt, %i, %boxes : i32
        scf.if %loads {
          // The store of two boxes before has read this stage.
          cute_nvgpu.arch.copy.bulk_wait_group() {n = 0 : i32} : () -> ()
          %stage = arith.remui %i, %two : i32
          %slot = cute.make_coord(%stage) : (i32) -> !cute.coord<(_,_,?)>
          %box = cute.slice(%ring, %slot) : !ring, !cute.coord<(_,_,?)>
          %bar = llvm.getelementptr %bars[%stage] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
          %at = arith.muli %i, %width : i32
          %place = cute.make_coord(%at) : (i32) -> !cute.coord<(?{div=64},0)>
          %corner = cute.domain_offset(%place, %where) : !cute.coord<(?{div=64},0)>, !whole
          %armed = cute_nvgpu.atom_set_value(%load, %bar) {field = "mbarrier"} : (!load, !llvm.ptr<3>) -> !load
          cute_nvgpu.arch.mbarrier.arrive_expect_tx(%bar) {n = 8192 : i32} : (!llvm.ptr<3>) -> ()
          cute_nvgpu.tma_copy(%armed, %box, %corner) : (!load, !box, !corner) -> ()
        }
        %stores = arith.cmpi sgt, %i, %zero : i32
        scf.if %stores {
          %j = arith.subi %i, %one : i32
          %stage = arith.remui %j, %two : i32
          %turn = arith.divui %j, %two : i32
          %parity = arith.remui %turn, %two : i32
          %slot = cute.make_coord(%stage) : (i32) -> !cute.coord<(_,_,?)>
          %box = cute.slice(%ring, %slot) : !ring, !cute.coord<(_,_,?)>
          %bar = llvm.getelementptr %bars[%stage] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
          cute_nvgpu.arch.mbarrier.wait(%bar, %parity) : (!llvm.ptr<3>, i32) -> ()
          %at = arith.muli %j, %width : i32
          %place = cute.make_coord(%at) : (i32) -> !cute.coord<(?{div=64},0)>
          %corner = cute.domain_offset(%place, %where) : !cute.coord<(?{div=64},0)>, !whole
          cute_nvgpu.tma_copy(%store, %box, %corner) : (!store, !box, !corner) -> ()
          cute_nvgpu.arch.copy.bulk_commit_group() : () -> ()
        }
      }
      cute_nvgpu.arch.copy.bulk_wait_group_all() {n = 0 : i32} : () -> ()
    }
    llvm.return
  }
}
