// A GEMM for sm_90a: out (M, N) = a (M, K) @ b (N, K).T, in bf16 with sums in f32. A block of one warpgroup computes a tile
// of 64 x 128. TMA fills a ring of four stages, and wgmma multiplies from it.
//
// a and b are tensor maps with boxes of 64 x 64 and of 128 x 64 in the 128-byte swizzle; M is a multiple of 64, N of 128,
// K of 64. The types are in the older spelling, without quotes. This program was written for this repository in that style.
// tilestack cute-opt examples/cute/hopper_gemm.mlir --pass-pipeline cute-to-standard,cute-nvgpu-to-nvvm --emit ptx
!load = !cute_nvgpu.tma_atom<"load">
!mma = !cute.tiled_mma<"wgmma.m64n128k16.f32.bf16", atom_layout_MNK = (1,1,1):(0,0,0), permutation_MNK = [_,_,_]>
!a_layout = !cute.layout<(64,64,4):(64,1,4096)>
!b_layout = !cute.layout<(128,64,4):(64,1,8192)>
!a_ptr = !cute.ptr<bf16, smem, align<1024>, S<3,4,3>>
!a_ring = !cute.memref<bf16, smem, align<1024>, S<3,4,3>, (64,64,4):(64,1,4096)>
!b_ring = !cute.memref<bf16, smem, align<1024>, S<3,4,3>, (128,64,4):(64,1,8192)>
!a_box = !cute.memref<bf16, smem, align<1024>, S<3,4,3>, (64,64):(64,1)>
!b_box = !cute.memref<bf16, smem, align<1024>, S<3,4,3>, (128,64):(64,1)>
!a_part = !cute.memref<bf16, smem, align<1024>, S<3,4,3>, ((64,16),1,4):((64,1),4096,16)>
!b_part = !cute.memref<bf16, smem, align<1024>, S<3,4,3>, ((128,16),1,4):((64,1),8192,16)>
!sums = !cute.memref<f32, rmem, align<16>, ((2,2,16),1,1):((1,2,4),0,0)>
!out = !cute.memref<f32, gmem, align<16>, (?,?):(?{div=128},1)>
!tile = !cute.memref<f32, gmem, align<16>, (64,128):(?{div=128},1)>
!part = !cute.memref<f32, gmem, align<8>, ((2,2,16),1,1):((1,?{div=1024},8),?{div=8192},128)>
!whole = !cute.coord_tensor<(0,0), "(1048576,1048576):(1@0,1@1)">
!corner = !cute.coord_tensor<(?{div=64},?{div=64}), "(1048576,1048576):(1@0,1@1)">
!place = !cute.coord<(?{div=64},?{div=64})>

gpu.module @kernels {
  llvm.mlir.global external @shared_memory() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<98304 x i8>
  llvm.mlir.global external @full() {addr_space = 3 : i32, alignment = 8 : i64} : !llvm.array<4 x i64>
  llvm.func @hopper_gemm(%a: !llvm.ptr {llvm.byval = !llvm.array<128 x i8>, llvm.align = 64 : i64, nvvm.grid_constant}, %b: !llvm.ptr {llvm.byval = !llvm.array<128 x i8>, llvm.align = 64 : i64, nvvm.grid_constant}, %out: !llvm.ptr<1>, %m: i32, %n: i32, %k: i32) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128>} {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %stages = arith.constant 4 : i32
    %ahead = arith.constant 3 : i32
    %depth = arith.constant 64 : i32
    %tid = nvvm.read.ptx.sreg.tid.x : i32
    %column = nvvm.read.ptx.sreg.ctaid.x : i32
    %row = nvvm.read.ptx.sreg.ctaid.y : i32
    %rows = arith.constant 64 : i32
    %columns = arith.constant 128 : i32
    %at_m = arith.muli %row, %rows : i32
    %at_n = arith.muli %column, %columns : i32
    %thread = cute.make_coord(%tid) : (i32) -> !cute.coord<?>
    %mma = cute.static : !mma

    %base = llvm.mlir.addressof @shared_memory : !llvm.ptr<3>
    %b_base = llvm.getelementptr %base[32768] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %bars = llvm.mlir.addressof @full : !llvm.ptr<3>
    %pa = cute.make_ptr(%base) : (!llvm.ptr<3>) -> !a_ptr
    %pb = cute.make_ptr(%b_base) : (!llvm.ptr<3>) -> !a_ptr
    %la = cute.static : !a_layout
    %lb = cute.static : !b_layout
    %ring_a = cute.make_view(%pa, %la) : !a_ptr, !a_layout
    %ring_b = cute.make_view(%pb, %lb) : !a_ptr, !b_layout
    %size = cute.static : !cute.shape<(1048576,1048576)>
    %where = cute.make_identity_tensor(%size) : !cute.shape<(1048576,1048576)>
    %load_a = cute_nvgpu.make_copy_atom(%a) : (!llvm.ptr) -> !load
    %load_b = cute_nvgpu.make_copy_atom(%b) : (!llvm.ptr) -> !load

    %leader = arith.cmpi eq, %tid, %zero : i32
    scf.if %leader {
      scf.for %i = %zero to %stages step %one : i32 {
        %bar = llvm.getelementptr %bars[%i] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
        cute_nvgpu.arch.mbarrier.init(%bar) {n = 1 : i32} : (!llvm.ptr<3>) -> ()
      }
      cute_nvgpu.arch.mbarrier.init_fence() : () -> ()
    }
    nvvm.barrier0

    %sums = cute.memref.alloca() : () -> !sums
    cute.clear(%sums) : (!sums) -> ()
    %steps = arith.divui %k, %depth : i32
    %end = arith.addi %steps, %ahead : i32
    // Step i loads box i and multiplies box i - 3: three loads are under way.
    scf.for %i = %zero to %end step %one : i32 {
      %loads = arith.cmpi slt, %i, %steps : i32
      %here = arith.andi %loads, %leader : i1
      scf.if %here {
        %stage = arith.remui %i, %stages : i32
        %slot = cute.make_coord(%stage) : (i32) -> !cute.coord<(_,_,?)>
        %box_a = cute.slice(%ring_a, %slot) : !a_ring, !cute.coord<(_,_,?)>
        %box_b = cute.slice(%ring_b, %slot) : !b_ring, !cute.coord<(_,_,?)>
        %bar = llvm.getelementptr %bars[%stage] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
        %at_k = arith.muli %i, %depth : i32
        %place_a = cute.make_coord(%at_k, %at_m) : (i32, i32) -> !place
        %place_b = cute.make_coord(%at_k, %at_n) : (i32, i32) -> !place
        %corner_a = cute.domain_offset(%place_a, %where) : !place, !whole
        %corner_b = cute.domain_offset(%place_b, %where) : !place, !whole
        %armed_a = cute_nvgpu.atom_set_value(%load_a, %bar) {field = "mbarrier"} : (!load, !llvm.ptr<3>) -> !load
        %armed_b = cute_nvgpu.atom_set_value(%load_b, %bar) {field = "mbarrier"} : (!load, !llvm.ptr<3>) -> !load
        cute_nvgpu.arch.mbarrier.arrive_expect_tx(%bar) {n = 24576 : i32} : (!llvm.ptr<3>) -> ()
        cute_nvgpu.tma_copy(%armed_a, %box_a, %corner_a) : (!load, !a_box, !corner) -> ()
        cute_nvgpu.tma_copy(%armed_b, %box_b, %corner_b) : (!load, !b_box, !corner) -> ()
      }
      %multiplies = arith.cmpi sge, %i, %ahead : i32
      scf.if %multiplies {
        %j = arith.subi %i, %ahead : i32
        %stage = arith.remui %j, %stages : i32
        %turn = arith.divui %j, %stages : i32
        %two = arith.constant 2 : i32
        %parity = arith.remui %turn, %two : i32
        %bar = llvm.getelementptr %bars[%stage] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
        cute_nvgpu.arch.mbarrier.wait(%bar, %parity) : (!llvm.ptr<3>, i32) -> ()
        %slot = cute.make_coord(%stage) : (i32) -> !cute.coord<(_,_,?)>
        %box_a = cute.slice(%ring_a, %slot) : !a_ring, !cute.coord<(_,_,?)>
        %box_b = cute.slice(%ring_b, %slot) : !b_ring, !cute.coord<(_,_,?)>
        %part_a = cute.tiled.mma.partition_A(%mma, %box_a, %thread) : !mma, !a_box, !cute.coord<?>
        %part_b = cute.tiled.mma.partition_B(%mma, %box_b, %thread) : !mma, !b_box, !cute.coord<?>
        cute_nvgpu.arch.wgmma.fence() : () -> ()
        cute.gemm(%mma, %sums, %part_a, %part_b, %sums) : (!mma, !sums, !a_part, !b_part, !sums) -> ()
        cute_nvgpu.arch.wgmma.commit_group() : () -> ()
        cute_nvgpu.arch.wgmma.wait_group() {n = 0 : i32} : () -> ()
      }
      // The stage that the next step fills has been read by all warps.
      nvvm.barrier0
    }

    %po = cute.make_ptr(%out) : (!llvm.ptr<1>) -> !cute.ptr<f32, gmem, align<16>>
    %shape = cute.make_shape(%m, %n) : (i32, i32) -> !cute.shape<(?,?)>
    %stride = cute.make_stride(%n) : (i32) -> !cute.stride<(?{div=128},1)>
    %lo = cute.make_layout(%shape, %stride) : (!cute.shape<(?,?)>, !cute.stride<(?{div=128},1)>) -> !cute.layout<(?,?):(?{div=128},1)>
    %go = cute.make_view(%po, %lo) : !cute.ptr<f32, gmem, align<16>>, !cute.layout<(?,?):(?{div=128},1)>
    %tile = cute.static : !cute.tile<[64,128]>
    %which = cute.make_coord(%row, %column) : (i32, i32) -> !cute.coord<(?,?)>
    %mine = cute.local_tile(%go, %tile, %which) : !out, !cute.tile<[64,128]>, !cute.coord<(?,?)>
    %part = cute.tiled.mma.partition_C(%mma, %mine, %thread) : !mma, !tile, !cute.coord<?>
    %unit = arith.constant 1.0 : f32
    %none = arith.constant 0.0 : f32
    cute.axpby(%unit, %sums, %none, %part) : (f32, !sums, f32, !part) -> ()
    llvm.return
  }
}
