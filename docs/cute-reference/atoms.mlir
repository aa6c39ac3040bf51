// Atoms and tiled atoms
// Instructions as values, tiled over threads; copies, products and descriptors.

func.func @make_mma_atom() {
  %r = cute_nvgpu.make_mma_atom() : () -> !cute_nvgpu.mma_atom<"mma.m16n8k16.f32.bf16">
  func.return
}

func.func @make_copy_atom(%a: !llvm.ptr) {
  %r = cute_nvgpu.make_copy_atom(%a) : (!llvm.ptr) -> !cute_nvgpu.tma_atom<"load">
  func.return
}

func.func @atom_set_value(%a: !cute_nvgpu.tma_atom<"load">, %b: !llvm.ptr<3>) {
  %r = cute_nvgpu.atom_set_value(%a, %b) {field = "mbarrier"} : (!cute_nvgpu.tma_atom<"load">, !llvm.ptr<3>) -> !cute_nvgpu.tma_atom<"load">
  func.return
}

func.func @atom_get_value(%a: !cute_nvgpu.tma_atom<"load">) {
  %r = cute_nvgpu.atom_get_value(%a) {field = "mbarrier"} : (!cute_nvgpu.tma_atom<"load">) -> !llvm.ptr<3>
  func.return
}

func.func @tma_copy(%a: !cute_nvgpu.tma_atom<"load">, %b: !cute.memref<bf16, smem, align<1024>, S<3,4,3>, "(128,64):(64,1)">, %c: !cute.coord_tensor<"(0,?)", "(128,64):(1@1,1@0)">) {
  cute_nvgpu.tma_copy(%a, %b, %c) : (!cute_nvgpu.tma_atom<"load">, !cute.memref<bf16, smem, align<1024>, S<3,4,3>, "(128,64):(64,1)">, !cute.coord_tensor<"(0,?)", "(128,64):(1@1,1@0)">) -> ()
  func.return
}

func.func @make_tiled_mma(%a: !cute_nvgpu.mma_atom<"mma.m16n8k16.f32.bf16">) {
  %r = cute.make_tiled_mma(%a) : (!cute_nvgpu.mma_atom<"mma.m16n8k16.f32.bf16">) -> !cute.tiled_mma<"mma.m16n8k16.f32.bf16", atom_layout_MNK = "(2,2,1):(1,2,0)", permutation_MNK = "[_;_;_]">
  func.return
}

func.func @make_tiled_copy(%a: !cute_nvgpu.copy_atom<"universal.b128", bits<16>>) {
  %r = cute.make_tiled_copy(%a) : (!cute_nvgpu.copy_atom<"universal.b128", bits<16>>) -> !cute.tiled_copy<"universal.b128", bits<16>, layout_copy_tv = "((8,16),8):((128,1),16)", tiler_mn = "[16:1;64:1]">
  func.return
}

func.func @mma_make_fragment_A(%a: !cute.tiled_mma<"mma.m16n8k16.f32.bf16", atom_layout_MNK = "(2,2,1):(1,2,0)", permutation_MNK = "[_;_;_]">, %b: !cute.memref<bf16, smem, align<16>, "((2,2,2),4,4):((1,512,8),2048,16)">) {
  %r = cute.mma.make_fragment_A(%a, %b) : (!cute.tiled_mma<"mma.m16n8k16.f32.bf16", atom_layout_MNK = "(2,2,1):(1,2,0)", permutation_MNK = "[_;_;_]">, !cute.memref<bf16, smem, align<16>, "((2,2,2),4,4):((1,512,8),2048,16)">) -> !cute.memref<bf16, rmem, align<16>, "((2,2,2),4,4):((1,2,4),8,32)">
  func.return
}

func.func @mma_make_fragment_B(%a: !cute.tiled_mma<"mma.m16n8k16.f32.bf16", atom_layout_MNK = "(2,2,1):(1,2,0)", permutation_MNK = "[_;_;_]">, %b: !cute.memref<bf16, smem, align<16>, "((2,2),4,4):((1,8),1024,16)">) {
  %r = cute.mma.make_fragment_B(%a, %b) : (!cute.tiled_mma<"mma.m16n8k16.f32.bf16", atom_layout_MNK = "(2,2,1):(1,2,0)", permutation_MNK = "[_;_;_]">, !cute.memref<bf16, smem, align<16>, "((2,2),4,4):((1,8),1024,16)">) -> !cute.memref<bf16, rmem, align<16>, "((2,2),4,4):((1,2),4,16)">
  func.return
}

func.func @mma_make_fragment_C(%a: !cute.tiled_mma<"mma.m16n8k16.f32.bf16", atom_layout_MNK = "(2,2,1):(1,2,0)", permutation_MNK = "[_;_;_]">, %b: !cute.memref<f32, gmem, align<4>, "((2,2),4,4):((1,512),2048,16)">) {
  %r = cute.mma.make_fragment_C(%a, %b) : (!cute.tiled_mma<"mma.m16n8k16.f32.bf16", atom_layout_MNK = "(2,2,1):(1,2,0)", permutation_MNK = "[_;_;_]">, !cute.memref<f32, gmem, align<4>, "((2,2),4,4):((1,512),2048,16)">) -> !cute.memref<f32, rmem, align<16>, "((2,2),4,4):((1,2),4,16)">
  func.return
}

func.func @copy(%a: !cute.tiled_copy<"universal.b128", bits<16>, layout_copy_tv = "((8,16),8):((128,1),16)", tiler_mn = "[16:1;64:1]">, %b: !cute.memref<bf16, gmem, align<16>, "(8,4):(1,64)">, %c: !cute.memref<bf16, rmem, align<16>, "(8,4):(1,8)">) {
  cute.copy(%a, %b, %c) : (!cute.tiled_copy<"universal.b128", bits<16>, layout_copy_tv = "((8,16),8):((128,1),16)", tiler_mn = "[16:1;64:1]">, !cute.memref<bf16, gmem, align<16>, "(8,4):(1,64)">, !cute.memref<bf16, rmem, align<16>, "(8,4):(1,8)">) -> ()
  func.return
}

func.func @copy_atom_call(%a: !cute.tiled_copy<"universal.b128", bits<16>, layout_copy_tv = "((8,16),8):((128,1),16)", tiler_mn = "[16:1;64:1]">, %b: !cute.memref<bf16, gmem, align<16>, "8:1">, %c: !cute.memref<bf16, rmem, align<16>, "8:1">) {
  cute.copy_atom_call(%a, %b, %c) : (!cute.tiled_copy<"universal.b128", bits<16>, layout_copy_tv = "((8,16),8):((128,1),16)", tiler_mn = "[16:1;64:1]">, !cute.memref<bf16, gmem, align<16>, "8:1">, !cute.memref<bf16, rmem, align<16>, "8:1">) -> ()
  func.return
}

func.func @gemm(%a: !cute.tiled_mma<"mma.m16n8k16.f32.bf16", atom_layout_MNK = "(2,2,1):(1,2,0)", permutation_MNK = "[_;_;_]">, %b: !cute.memref<f32, rmem, align<16>, "((2,2),2,2):((1,2),4,8)">, %c: !cute.memref<bf16, rmem, align<16>, "((2,2,2),2,2):((1,2,4),8,16)">, %d: !cute.memref<bf16, rmem, align<16>, "((2,2),2,2):((1,2),4,8)">, %e: !cute.memref<f32, rmem, align<16>, "((2,2),2,2):((1,2),4,8)">) {
  cute.gemm(%a, %b, %c, %d, %e) : (!cute.tiled_mma<"mma.m16n8k16.f32.bf16", atom_layout_MNK = "(2,2,1):(1,2,0)", permutation_MNK = "[_;_;_]">, !cute.memref<f32, rmem, align<16>, "((2,2),2,2):((1,2),4,8)">, !cute.memref<bf16, rmem, align<16>, "((2,2,2),2,2):((1,2,4),8,16)">, !cute.memref<bf16, rmem, align<16>, "((2,2),2,2):((1,2),4,8)">, !cute.memref<f32, rmem, align<16>, "((2,2),2,2):((1,2),4,8)">) -> ()
  func.return
}

func.func @mma_atom_call(%a: !cute.tiled_mma<"mma.m16n8k16.f32.bf16", atom_layout_MNK = "(2,2,1):(1,2,0)", permutation_MNK = "[_;_;_]">, %b: !cute.memref<f32, rmem, align<16>, "((2,2)):((1,2))">, %c: !cute.memref<bf16, rmem, align<16>, "((2,2,2)):((1,2,4))">, %d: !cute.memref<bf16, rmem, align<16>, "((2,2)):((1,2))">, %e: !cute.memref<f32, rmem, align<16>, "((2,2)):((1,2))">) {
  cute.mma_atom_call(%a, %b, %c, %d, %e) : (!cute.tiled_mma<"mma.m16n8k16.f32.bf16", atom_layout_MNK = "(2,2,1):(1,2,0)", permutation_MNK = "[_;_;_]">, !cute.memref<f32, rmem, align<16>, "((2,2)):((1,2))">, !cute.memref<bf16, rmem, align<16>, "((2,2,2)):((1,2,4))">, !cute.memref<bf16, rmem, align<16>, "((2,2)):((1,2))">, !cute.memref<f32, rmem, align<16>, "((2,2)):((1,2))">) -> ()
  func.return
}

func.func @smem_descriptor(%a: !llvm.ptr<3>) {
  %r = cute_nvgpu.smem_descriptor(%a) {generation = "sm_100", leading = 16 : i32, stride = 1024 : i32, swizzle = 128 : i32} : !llvm.ptr<3> -> i64
  func.return
}

func.func @instruction_descriptor() {
  %r = cute_nvgpu.instruction_descriptor {atom = "tcgen05.m128n128k16.f32.bf16", majors = "kk"} : i32
  func.return
}
