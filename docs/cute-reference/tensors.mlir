// Tensors
// Views, tiles and what a thread holds, elements, and whole tensors.

func.func @slice(%a: !cute.memref<bf16, gmem, align<16>, "(128,64):(64,1)">, %b: !cute.coord<"(?,_)">) {
  %r = cute.slice(%a, %b) : !cute.memref<bf16, gmem, align<16>, "(128,64):(64,1)">, !cute.coord<"(?,_)">
  func.return
}

func.func @domain_offset(%a: !cute.coord<"(?{div=8},0)">, %b: !cute.memref<bf16, gmem, align<16>, "(?,?):(?{div=8},1)">) {
  %r = cute.domain_offset(%a, %b) : !cute.coord<"(?{div=8},0)">, !cute.memref<bf16, gmem, align<16>, "(?,?):(?{div=8},1)">
  func.return
}

func.func @get_layout(%a: !cute.memref<bf16, gmem, align<16>, "(?,?):(?{div=8},1)">) {
  %r = cute.get_layout(%a) : !cute.memref<bf16, gmem, align<16>, "(?,?):(?{div=8},1)"> -> !cute.layout<"(?,?):(?{div=8},1)">
  func.return
}

func.func @get_iter(%a: !cute.memref<bf16, gmem, align<16>, "(?,?):(?{div=8},1)">) {
  %r = cute.get_iter(%a) : !cute.memref<bf16, gmem, align<16>, "(?,?):(?{div=8},1)"> -> !cute.ptr<bf16, gmem, align<16>>
  func.return
}

func.func @deref_arith_tuple_iter(%a: !cute.coord_tensor<"(?,0)", "(64,64):(1@0,1@1)">) {
  %r = cute.deref_arith_tuple_iter(%a) : !cute.coord_tensor<"(?,0)", "(64,64):(1@0,1@1)"> -> !cute.int_tuple<"(?,0)">
  func.return
}

func.func @add_offset(%a: !cute.ptr<f32, gmem, align<16>>, %b: !cute.int_tuple<"?{div=2}">) {
  %r = cute.add_offset(%a, %b) : !cute.ptr<f32, gmem, align<16>>, !cute.int_tuple<"?{div=2}">
  func.return
}

func.func @make_view(%a: !cute.ptr<f32, smem, align<128>>, %b: !cute.layout<"(32,32):(33,1)">) {
  %r = cute.make_view(%a, %b) : !cute.ptr<f32, smem, align<128>>, !cute.layout<"(32,32):(33,1)">
  func.return
}

func.func @recast_view(%a: !cute.memref<bf16, rmem, align<16>, "(4,2):(1,4)">) {
  %r = cute.recast_view<32> (%a) : !cute.memref<bf16, rmem, align<16>, "(4,2):(1,4)">
  func.return
}

func.func @make_identity_tensor(%a: !cute.shape<"(?,?)">) {
  %r = cute.make_identity_tensor(%a) : !cute.shape<"(?,?)">
  func.return
}

func.func @local_tile(%a: !cute.memref<bf16, gmem, align<16>, "(?,?):(?{div=8},1)">, %b: !cute.tile<"[128:1;64:1]">, %c: !cute.coord<"(?,_)">) {
  %r = cute.local_tile(%a, %b, %c) : !cute.memref<bf16, gmem, align<16>, "(?,?):(?{div=8},1)">, !cute.tile<"[128:1;64:1]">, !cute.coord<"(?,_)">
  func.return
}

func.func @local_partition(%a: !cute.memref<bf16, gmem, align<16>, "(128,64):(64,1)">, %b: !cute.layout<"(16,8):(8,1)">, %c: !cute.coord<"?">) {
  %r = cute.local_partition(%a, %b, %c) : !cute.memref<bf16, gmem, align<16>, "(128,64):(64,1)">, !cute.layout<"(16,8):(8,1)">, !cute.coord<"?">
  func.return
}

func.func @tiled_copy_partition_S(%a: !cute.tiled_copy<"universal.b128", bits<16>, layout_copy_tv = "((8,16),8):((128,1),16)", tiler_mn = "[16:1;64:1]">, %b: !cute.memref<bf16, gmem, align<16>, "(128,64):(64,1)">, %c: !cute.coord<"?">) {
  %r = cute.tiled.copy.partition_S(%a, %b, %c) : !cute.tiled_copy<"universal.b128", bits<16>, layout_copy_tv = "((8,16),8):((128,1),16)", tiler_mn = "[16:1;64:1]">, !cute.memref<bf16, gmem, align<16>, "(128,64):(64,1)">, !cute.coord<"?">
  func.return
}

func.func @tiled_copy_partition_D(%a: !cute.tiled_copy<"universal.b128", bits<16>, layout_copy_tv = "((8,16),8):((128,1),16)", tiler_mn = "[16:1;64:1]">, %b: !cute.memref<bf16, smem, align<1024>, S<3,4,3>, "(128,64):(64,1)">, %c: !cute.coord<"?">) {
  %r = cute.tiled.copy.partition_D(%a, %b, %c) : !cute.tiled_copy<"universal.b128", bits<16>, layout_copy_tv = "((8,16),8):((128,1),16)", tiler_mn = "[16:1;64:1]">, !cute.memref<bf16, smem, align<1024>, S<3,4,3>, "(128,64):(64,1)">, !cute.coord<"?">
  func.return
}

func.func @tiled_copy_retile(%a: !cute.tiled_copy<"ldmatrix.x4", bits<16>, layout_copy_tv = "((4,8,4),(2,2,2)):((64,1,0),(32,8,256))", tiler_mn = "[32:1;16:1]">, %b: !cute.tiled_mma<"mma.m16n8k16.f32.bf16", atom_layout_MNK = "(2,2,1):(1,2,0)", permutation_MNK = "[_;_;_]">, %c: !cute.memref<bf16, rmem, align<16>, "((2,2,2),1,1):((1,2,4),0,0)">, %d: !cute.shape<"(32,16)">) {
  %r = cute.tiled.copy.retile<0> (%a, %b, %c, %d) : !cute.tiled_copy<"ldmatrix.x4", bits<16>, layout_copy_tv = "((4,8,4),(2,2,2)):((64,1,0),(32,8,256))", tiler_mn = "[32:1;16:1]">, !cute.tiled_mma<"mma.m16n8k16.f32.bf16", atom_layout_MNK = "(2,2,1):(1,2,0)", permutation_MNK = "[_;_;_]">, !cute.memref<bf16, rmem, align<16>, "((2,2,2),1,1):((1,2,4),0,0)">, !cute.shape<"(32,16)">
  func.return
}

func.func @tiled_mma_partition_A(%a: !cute.tiled_mma<"mma.m16n8k16.f32.bf16", atom_layout_MNK = "(2,2,1):(1,2,0)", permutation_MNK = "[_;_;_]">, %b: !cute.memref<bf16, smem, align<1024>, S<3,4,3>, "(128,64):(64,1)">, %c: !cute.coord<"?">) {
  %r = cute.tiled.mma.partition_A(%a, %b, %c) : !cute.tiled_mma<"mma.m16n8k16.f32.bf16", atom_layout_MNK = "(2,2,1):(1,2,0)", permutation_MNK = "[_;_;_]">, !cute.memref<bf16, smem, align<1024>, S<3,4,3>, "(128,64):(64,1)">, !cute.coord<"?">
  func.return
}

func.func @tiled_mma_partition_B(%a: !cute.tiled_mma<"mma.m16n8k16.f32.bf16", atom_layout_MNK = "(2,2,1):(1,2,0)", permutation_MNK = "[_;_;_]">, %b: !cute.memref<bf16, smem, align<1024>, S<3,4,3>, "(128,64):(64,1)">, %c: !cute.coord<"?">) {
  %r = cute.tiled.mma.partition_B(%a, %b, %c) : !cute.tiled_mma<"mma.m16n8k16.f32.bf16", atom_layout_MNK = "(2,2,1):(1,2,0)", permutation_MNK = "[_;_;_]">, !cute.memref<bf16, smem, align<1024>, S<3,4,3>, "(128,64):(64,1)">, !cute.coord<"?">
  func.return
}

func.func @tiled_mma_partition_C(%a: !cute.tiled_mma<"mma.m16n8k16.f32.bf16", atom_layout_MNK = "(2,2,1):(1,2,0)", permutation_MNK = "[_;_;_]">, %b: !cute.memref<bf16, gmem, align<16>, "(128,64):(64,1)">, %c: !cute.coord<"?">) {
  %r = cute.tiled.mma.partition_C(%a, %b, %c) : !cute.tiled_mma<"mma.m16n8k16.f32.bf16", atom_layout_MNK = "(2,2,1):(1,2,0)", permutation_MNK = "[_;_;_]">, !cute.memref<bf16, gmem, align<16>, "(128,64):(64,1)">, !cute.coord<"?">
  func.return
}

func.func @tiled_mma_partition_E(%a: !cute.tiled_mma<"mma_sp.m16n8k32.f32.bf16", atom_layout_MNK = "(2,2,1):(1,2,0)", permutation_MNK = "[_;_;_]">, %b: !cute.memref<i32, gmem, align<16>, "(256,2):(1,256)">, %c: !cute.coord<"?">) {
  %r = cute.tiled.mma.partition_E(%a, %b, %c) : !cute.tiled_mma<"mma_sp.m16n8k32.f32.bf16", atom_layout_MNK = "(2,2,1):(1,2,0)", permutation_MNK = "[_;_;_]">, !cute.memref<i32, gmem, align<16>, "(256,2):(1,256)">, !cute.coord<"?">
  func.return
}

func.func @tiled_mma_partition_shape_A(%a: !cute.tiled_mma<"mma.m16n8k16.f32.bf16", atom_layout_MNK = "(2,2,1):(1,2,0)", permutation_MNK = "[_;_;_]">, %b: !cute.shape<"(128,64)">) {
  %r = cute.tiled.mma.partition_shape_A(%a, %b) : (!cute.tiled_mma<"mma.m16n8k16.f32.bf16", atom_layout_MNK = "(2,2,1):(1,2,0)", permutation_MNK = "[_;_;_]">, !cute.shape<"(128,64)">) -> !cute.shape<"((2,2,2),4,4)">
  func.return
}

func.func @tiled_mma_partition_shape_B(%a: !cute.tiled_mma<"mma.m16n8k16.f32.bf16", atom_layout_MNK = "(2,2,1):(1,2,0)", permutation_MNK = "[_;_;_]">, %b: !cute.shape<"(128,64)">) {
  %r = cute.tiled.mma.partition_shape_B(%a, %b) : (!cute.tiled_mma<"mma.m16n8k16.f32.bf16", atom_layout_MNK = "(2,2,1):(1,2,0)", permutation_MNK = "[_;_;_]">, !cute.shape<"(128,64)">) -> !cute.shape<"((2,2),8,4)">
  func.return
}

func.func @tiled_mma_partition_shape_C(%a: !cute.tiled_mma<"mma.m16n8k16.f32.bf16", atom_layout_MNK = "(2,2,1):(1,2,0)", permutation_MNK = "[_;_;_]">, %b: !cute.shape<"(128,64)">) {
  %r = cute.tiled.mma.partition_shape_C(%a, %b) : (!cute.tiled_mma<"mma.m16n8k16.f32.bf16", atom_layout_MNK = "(2,2,1):(1,2,0)", permutation_MNK = "[_;_;_]">, !cute.shape<"(128,64)">) -> !cute.shape<"((2,2),4,4)">
  func.return
}

func.func @tiled_mma_partition_shape_E(%a: !cute.tiled_mma<"mma_sp.m16n8k32.f32.bf16", atom_layout_MNK = "(2,2,1):(1,2,0)", permutation_MNK = "[_;_;_]">, %b: !cute.shape<"(256,2)">) {
  %r = cute.tiled.mma.partition_shape_E(%a, %b) : (!cute.tiled_mma<"mma_sp.m16n8k32.f32.bf16", atom_layout_MNK = "(2,2,1):(1,2,0)", permutation_MNK = "[_;_;_]">, !cute.shape<"(256,2)">) -> !cute.shape<"(1,4,2)">
  func.return
}

func.func @make_ptr(%a: !llvm.ptr<1>) {
  %r = cute.make_ptr(%a) : (!llvm.ptr<1>) -> !cute.ptr<bf16, gmem, align<16>>
  func.return
}

func.func @to_address(%a: !cute.memref<bf16, smem, align<1024>, S<3,4,3>, "(128,64):(64,1)">) {
  %r = cute.to_address(%a) : (!cute.memref<bf16, smem, align<1024>, S<3,4,3>, "(128,64):(64,1)">) -> !llvm.ptr<3>
  func.return
}

func.func @memref_alloca() {
  %r = cute.memref.alloca() : () -> !cute.memref<f32, rmem, align<16>, "(4,2):(1,4)">
  func.return
}

func.func @memref_load(%a: !cute.memref<bf16, gmem, align<16>, "(?,?):(?{div=8},1)">, %b: !cute.coord<"(?,?)">) {
  %r = cute.memref.load(%a, %b) : (!cute.memref<bf16, gmem, align<16>, "(?,?):(?{div=8},1)">, !cute.coord<"(?,?)">) -> bf16
  func.return
}

func.func @memref_store(%a: !cute.memref<f32, rmem, align<16>, "(4,2):(1,4)">, %b: !cute.coord<"(1,0)">, %c: f32) {
  cute.memref.store(%a, %b, %c) : (!cute.memref<f32, rmem, align<16>, "(4,2):(1,4)">, !cute.coord<"(1,0)">, f32) -> ()
  func.return
}

func.func @memref_load_vec(%a: !cute.memref<f32, rmem, align<16>, "(4,2):(1,4)">) {
  %r = cute.memref.load_vec(%a) : (!cute.memref<f32, rmem, align<16>, "(4,2):(1,4)">) -> vector<8xf32>
  func.return
}

func.func @memref_store_vec(%a: vector<8xf32>, %b: !cute.memref<f32, rmem, align<16>, "(4,2):(1,4)">) {
  cute.memref.store_vec(%a, %b) : (vector<8xf32>, !cute.memref<f32, rmem, align<16>, "(4,2):(1,4)">) -> ()
  func.return
}

func.func @in_bounds(%a: !cute.coord_tensor<"(?,?)", "(8,1):(1@0,1@1)">, %b: !cute.shape<"(?,?)">) {
  %r = cute.in_bounds(%a, %b) : (!cute.coord_tensor<"(?,?)", "(8,1):(1@0,1@1)">, !cute.shape<"(?,?)">) -> i1
  func.return
}

func.func @fill(%a: !cute.memref<f32, rmem, align<16>, "(4,2):(1,4)">, %b: f32) {
  cute.fill(%a, %b) : (!cute.memref<f32, rmem, align<16>, "(4,2):(1,4)">, f32) -> ()
  func.return
}

func.func @clear(%a: !cute.memref<f32, rmem, align<16>, "(4,2):(1,4)">) {
  cute.clear(%a) : (!cute.memref<f32, rmem, align<16>, "(4,2):(1,4)">) -> ()
  func.return
}

func.func @axpby(%a: f32, %b: !cute.memref<f32, rmem, align<16>, "(4,2):(1,4)">, %c: f32, %d: !cute.memref<f32, rmem, align<16>, "(4,2):(1,4)">) {
  cute.axpby(%a, %b, %c, %d) : (f32, !cute.memref<f32, rmem, align<16>, "(4,2):(1,4)">, f32, !cute.memref<f32, rmem, align<16>, "(4,2):(1,4)">) -> ()
  func.return
}

func.func @gemv(%a: !cute.memref<f32, rmem, align<16>, "4:1">, %b: !cute.memref<f32, rmem, align<16>, "(4,2):(1,4)">, %c: !cute.memref<f32, rmem, align<16>, "2:1">, %d: !cute.memref<f32, rmem, align<16>, "4:1">) {
  cute.gemv(%a, %b, %c, %d) : (!cute.memref<f32, rmem, align<16>, "4:1">, !cute.memref<f32, rmem, align<16>, "(4,2):(1,4)">, !cute.memref<f32, rmem, align<16>, "2:1">, !cute.memref<f32, rmem, align<16>, "4:1">) -> ()
  func.return
}

func.func @make_fragment_like(%a: !cute.memref<f32, gmem, align<16>, "(4,2):(64,1)">) {
  %r = cute.make_fragment_like(%a) : (!cute.memref<f32, gmem, align<16>, "(4,2):(64,1)">) -> !cute.memref<f32, rmem, align<16>, "(4,2):(1,4)">
  func.return
}
