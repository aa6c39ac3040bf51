// One warpgroup multiplies 64 x 64 tiles of bf16 in shared memory: out = a @ b.T, out in f32.
//
// The types are in the older spelling, without quotes. This program was written for this repository in that style.
// tilestack cute-opt examples/cute/warpgroup_mma.mlir --pass-pipeline cute-to-standard,cute-nvgpu-to-nvvm --emit ptx
!copy = !cute.tiled_copy<"universal.b128", bits<16>, layout_copy_tv = ((8,16),8):((128,1),16), tiler_mn = [16,64]>
!mma = !cute.tiled_mma<"wgmma.m64n64k16.f32.bf16", atom_layout_MNK = (1,1,1):(0,0,0), permutation_MNK = [_,_,_]>
!global = !cute.memref<bf16, gmem, align<16>, (64,64):(64,1)>
!shared = !cute.memref<bf16, smem, align<1024>, S<3,4,3>, (64,64):(64,1)>
!rows = !cute.layout<(64,64),(64,1)>
!from = !cute.memref<bf16, gmem, align<16>, ((8,1),4,1):((1,8),1024,64)>
!to = !cute.memref<bf16, smem, align<16>, S<3,4,3>, ((8,1),4,1):((1,8),1024,64)>
!operand = !cute.memref<bf16, smem, align<1024>, S<3,4,3>, ((64,16),1,4):((64,1),4096,16)>
!result = !cute.memref<f32, gmem, align<16>, (64,64):(64,1)>
!part = !cute.memref<f32, gmem, align<8>, ((2,2,8),1,1):((1,512,8),4096,64)>
!sums = !cute.memref<f32, rmem, align<16>, ((2,2,8),1,1):((1,2,4),0,0)>
!gptr = !cute.ptr<bf16, gmem, align<16>>
!sptr = !cute.ptr<bf16, smem, align<1024>, S<3,4,3>>

gpu.module @kernels {
  llvm.mlir.global external @shared_memory() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<16384 x i8>
  llvm.func @warpgroup_mma(%a: !llvm.ptr<1>, %b: !llvm.ptr<1>, %out: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128>} {
    %tid = nvvm.read.ptx.sreg.tid.x : i32
    %thread = cute.make_coord(%tid) : (i32) -> !cute.coord<?>
    %copy = cute.static : !copy
    %mma = cute.static : !mma
    %rows = cute.static : !rows

    // Both operands go to shared memory, in the swizzle that wgmma reads.
    %base = llvm.mlir.addressof @shared_memory : !llvm.ptr<3>
    %next = llvm.getelementptr %base[8192] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %pa = cute.make_ptr(%a) : (!llvm.ptr<1>) -> !gptr
    %pb = cute.make_ptr(%b) : (!llvm.ptr<1>) -> !gptr
    %psa = cute.make_ptr(%base) : (!llvm.ptr<3>) -> !sptr
    %psb = cute.make_ptr(%next) : (!llvm.ptr<3>) -> !sptr
    %ga = cute.make_view(%pa, %rows) : !gptr, !rows
    %gb = cute.make_view(%pb, %rows) : !gptr, !rows
    %sa = cute.make_view(%psa, %rows) : !sptr, !rows
    %sb = cute.make_view(%psb, %rows) : !sptr, !rows
    %fa = cute.tiled.copy.partition_S(%copy, %ga, %thread) : !copy, !global, !cute.coord<?>
    %ta = cute.tiled.copy.partition_D(%copy, %sa, %thread) : !copy, !shared, !cute.coord<?>
    %fb = cute.tiled.copy.partition_S(%copy, %gb, %thread) : !copy, !global, !cute.coord<?>
    %tb = cute.tiled.copy.partition_D(%copy, %sb, %thread) : !copy, !shared, !cute.coord<?>
    cute.copy(%copy, %fa, %ta) : (!copy, !from, !to) -> ()
    cute.copy(%copy, %fb, %tb) : (!copy, !from, !to) -> ()
    cute_nvgpu.arch.fence.proxy_async() : () -> ()
    nvvm.barrier0

    // The product of the warpgroup, in the background.
    %pta = cute.tiled.mma.partition_A(%mma, %sa, %thread) : !mma, !shared, !cute.coord<?>
    %ptb = cute.tiled.mma.partition_B(%mma, %sb, %thread) : !mma, !shared, !cute.coord<?>
    %fragment_a = cute.mma.make_fragment_A(%mma, %pta) : (!mma, !operand) -> !operand
    %fragment_b = cute.mma.make_fragment_B(%mma, %ptb) : (!mma, !operand) -> !operand
    %sums = cute.memref.alloca() : () -> !sums
    cute.clear(%sums) : (!sums) -> ()
    cute_nvgpu.arch.wgmma.fence() : () -> ()
    cute.gemm(%mma, %sums, %fragment_a, %fragment_b, %sums) : (!mma, !sums, !operand, !operand, !sums) -> ()
    cute_nvgpu.arch.wgmma.commit_group() : () -> ()
    cute_nvgpu.arch.wgmma.wait_group() {n = 0 : i32} : () -> ()

    // Each thread writes its part of the sums.
    %po = cute.make_ptr(%out) : (!llvm.ptr<1>) -> !cute.ptr<f32, gmem, align<16>>
    %go = cute.make_view(%po, %rows) : !cute.ptr<f32, gmem, align<16>>, !rows
    %part = cute.tiled.mma.partition_C(%mma, %go, %thread) : !mma, !result, !cute.coord<?>
    %one = arith.constant 1.0 : f32
    %zero = arith.constant 0.0 : f32
    cute.axpby(%one, %sums, %zero, %part) : (f32, !sums, f32, !part) -> ()
    llvm.return
  }
}
