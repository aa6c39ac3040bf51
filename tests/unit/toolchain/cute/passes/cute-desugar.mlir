gpu.module @kernels {
  llvm.func @k() attributes {nvvm.kernel} {
    %t = cute.memref.alloca() : () -> !cute.memref<f32, rmem, align<16>, "(2,2):(1,2)">
    %v = arith.constant 2.0 : f32
    cute.fill(%t, %v) : (!cute.memref<f32, rmem, align<16>, "(2,2):(1,2)">, f32) -> ()
    cute.clear(%t) : (!cute.memref<f32, rmem, align<16>, "(2,2):(1,2)">) -> ()
    llvm.return
  }
}
// becomes
gpu.module @kernels {
  llvm.func @k() attributes {nvvm.kernel} {
    %t = cute.memref.alloca() : () -> !cute.memref<f32, rmem, align<16>, "(2,2):(1,2)">
    %v = arith.constant 2.000000e+00 : f32
    %0 = cute.static : !cute.coord<"0">
    cute.memref.store(%t, %0, %v) : (!cute.memref<f32, rmem, align<16>, "(2,2):(1,2)">, !cute.coord<"0">, f32) -> ()
    %1 = cute.static : !cute.coord<"1">
    cute.memref.store(%t, %1, %v) : (!cute.memref<f32, rmem, align<16>, "(2,2):(1,2)">, !cute.coord<"1">, f32) -> ()
    %2 = cute.static : !cute.coord<"2">
    cute.memref.store(%t, %2, %v) : (!cute.memref<f32, rmem, align<16>, "(2,2):(1,2)">, !cute.coord<"2">, f32) -> ()
    %3 = cute.static : !cute.coord<"3">
    cute.memref.store(%t, %3, %v) : (!cute.memref<f32, rmem, align<16>, "(2,2):(1,2)">, !cute.coord<"3">, f32) -> ()
    %4 = arith.constant 0.000000e+00 : f32
    %5 = cute.static : !cute.coord<"0">
    cute.memref.store(%t, %5, %4) : (!cute.memref<f32, rmem, align<16>, "(2,2):(1,2)">, !cute.coord<"0">, f32) -> ()
    %6 = cute.static : !cute.coord<"1">
    cute.memref.store(%t, %6, %4) : (!cute.memref<f32, rmem, align<16>, "(2,2):(1,2)">, !cute.coord<"1">, f32) -> ()
    %7 = cute.static : !cute.coord<"2">
    cute.memref.store(%t, %7, %4) : (!cute.memref<f32, rmem, align<16>, "(2,2):(1,2)">, !cute.coord<"2">, f32) -> ()
    %8 = cute.static : !cute.coord<"3">
    cute.memref.store(%t, %8, %4) : (!cute.memref<f32, rmem, align<16>, "(2,2):(1,2)">, !cute.coord<"3">, f32) -> ()
    llvm.return
  }
}
// -----
gpu.module @kernels {
  llvm.func @k() attributes {nvvm.kernel} {
    %x = cute.memref.alloca() : () -> !cute.memref<f32, rmem, align<16>, "2:1">
    %y = cute.memref.alloca() : () -> !cute.memref<f32, rmem, align<16>, "2:1">
    %v = arith.constant 2.0 : f32
    cute.axpby(%v, %x, %v, %y) : (f32, !cute.memref<f32, rmem, align<16>, "2:1">, f32, !cute.memref<f32, rmem, align<16>, "2:1">) -> ()
    llvm.return
  }
}
// becomes
gpu.module @kernels {
  llvm.func @k() attributes {nvvm.kernel} {
    %x = cute.memref.alloca() : () -> !cute.memref<f32, rmem, align<16>, "2:1">
    %y = cute.memref.alloca() : () -> !cute.memref<f32, rmem, align<16>, "2:1">
    %v = arith.constant 2.000000e+00 : f32
    %0 = cute.static : !cute.coord<"0">
    %1 = cute.memref.load(%x, %0) : (!cute.memref<f32, rmem, align<16>, "2:1">, !cute.coord<"0">) -> f32
    %2 = arith.mulf %v, %1 : f32
    %3 = cute.static : !cute.coord<"0">
    %4 = cute.memref.load(%y, %3) : (!cute.memref<f32, rmem, align<16>, "2:1">, !cute.coord<"0">) -> f32
    %5 = arith.mulf %v, %4 : f32
    %6 = arith.addf %2, %5 : f32
    %7 = cute.static : !cute.coord<"0">
    cute.memref.store(%y, %7, %6) : (!cute.memref<f32, rmem, align<16>, "2:1">, !cute.coord<"0">, f32) -> ()
    %8 = cute.static : !cute.coord<"1">
    %9 = cute.memref.load(%x, %8) : (!cute.memref<f32, rmem, align<16>, "2:1">, !cute.coord<"1">) -> f32
    %10 = arith.mulf %v, %9 : f32
    %11 = cute.static : !cute.coord<"1">
    %12 = cute.memref.load(%y, %11) : (!cute.memref<f32, rmem, align<16>, "2:1">, !cute.coord<"1">) -> f32
    %13 = arith.mulf %v, %12 : f32
    %14 = arith.addf %10, %13 : f32
    %15 = cute.static : !cute.coord<"1">
    cute.memref.store(%y, %15, %14) : (!cute.memref<f32, rmem, align<16>, "2:1">, !cute.coord<"1">, f32) -> ()
    llvm.return
  }
}
// -----
func.func @f(%m: i32) -> (!cute.shape<"?">, !cute.shape<"4">, !cute.shape<"2">) {
  %s = cute.make_shape(%m) : (i32) -> !cute.shape<"(?,(4,2))">
  %a, %b, %c = cute.get_leaves(%s) : !cute.shape<"(?,(4,2))">
  func.return %a, %b, %c : !cute.shape<"?">, !cute.shape<"4">, !cute.shape<"2">
}
// becomes
func.func @f(%m: i32) -> (!cute.shape<"?">, !cute.shape<"4">, !cute.shape<"2">) {
  %s = cute.make_shape(%m) : (i32) -> !cute.shape<"(?,(4,2))">
  %a = cute.get<[0]> (%s) : !cute.shape<"(?,(4,2))"> -> !cute.shape<"?">
  %b = cute.static : !cute.shape<"4">
  %c = cute.static : !cute.shape<"2">
  func.return %a, %b, %c : !cute.shape<"?">, !cute.shape<"4">, !cute.shape<"2">
}
// -----
gpu.module @kernels {
  llvm.func @k(%m: i32) attributes {nvvm.kernel} {
    %s = cute.make_shape(%m) : (i32) -> !cute.shape<"(?,64)">
    cute.print(%s) : !cute.shape<"(?,64)">
    llvm.return
  }
}
// becomes
gpu.module @kernels {
  llvm.mlir.global internal constant @printed_0("(%d,64)\0A\00") {addr_space = 0 : i32} : !llvm.array<9 x i8>
  llvm.func @vprintf(!llvm.ptr, !llvm.ptr) -> i32
  llvm.func @k(%m: i32) attributes {nvvm.kernel} {
    %0 = arith.constant 1 : i32
    %1 = llvm.alloca %0 x !llvm.array<1 x i32> {alignment = 8 : i64} : (i32) -> !llvm.ptr
    %s = cute.make_shape(%m) : (i32) -> !cute.shape<"(?,64)">
    %2 = cute.get_scalars<{only_dynamic}> (%s) : !cute.shape<"(?,64)">
    %3 = llvm.mlir.addressof @printed_0 : !llvm.ptr
    llvm.store %2, %1 : i32, !llvm.ptr
    %4 = llvm.call @vprintf(%3, %1) : (!llvm.ptr, !llvm.ptr) -> i32
    llvm.return
  }
}
// -----
gpu.module @kernels {
  llvm.func @k(%map: !llvm.ptr, %bar: !llvm.ptr<3>, %s: !llvm.ptr<3>) attributes {nvvm.kernel} {
    %one = cute_nvgpu.make_copy_atom(%map) : (!llvm.ptr) -> !cute_nvgpu.tma_atom<"load">
    %two = cute_nvgpu.atom_set_value(%one, %bar) {field = "mbarrier"} : (!cute_nvgpu.tma_atom<"load">, !llvm.ptr<3>) -> !cute_nvgpu.tma_atom<"load">
    %p = cute.make_ptr(%s) : (!llvm.ptr<3>) -> !cute.ptr<bf16, smem, align<128>>
    %l = cute.static : !cute.layout<"(8,64):(64,1)">
    %t = cute.make_view(%p, %l) : !cute.ptr<bf16, smem, align<128>>, !cute.layout<"(8,64):(64,1)">
    %size = cute.static : !cute.shape<"(64,1024)">
    %i = cute.make_identity_tensor(%size) : !cute.shape<"(64,1024)">
    cute_nvgpu.tma_copy(%two, %t, %i) : (!cute_nvgpu.tma_atom<"load">, !cute.memref<bf16, smem, align<128>, "(8,64):(64,1)">, !cute.coord_tensor<"(0,0)", "(64,1024):(1@0,1@1)">) -> ()
    llvm.return
  }
}
// becomes
gpu.module @kernels {
  llvm.func @k(%map: !llvm.ptr, %bar: !llvm.ptr<3>, %s: !llvm.ptr<3>) attributes {nvvm.kernel} {
    %p = cute.make_ptr(%s) : (!llvm.ptr<3>) -> !cute.ptr<bf16, smem, align<128>>
    %l = cute.static : !cute.layout<"(8,64):(64,1)">
    %t = cute.make_view(%p, %l) : !cute.ptr<bf16, smem, align<128>>, !cute.layout<"(8,64):(64,1)">
    %size = cute.static : !cute.shape<"(64,1024)">
    %i = cute.make_identity_tensor(%size) : !cute.shape<"(64,1024)">
    %0 = cute.deref_arith_tuple_iter(%i) : !cute.coord_tensor<"(0,0)", "(64,1024):(1@0,1@1)"> -> !cute.int_tuple<"(0,0)">
    %1, %2 = cute.get_scalars (%0) : !cute.int_tuple<"(0,0)">
    %3 = cute.to_address(%t) : (!cute.memref<bf16, smem, align<128>, "(8,64):(64,1)">) -> !llvm.ptr<3>
    cute_nvgpu.arch.copy.tma_load(%3, %map, %bar, %1, %2) : (!llvm.ptr<3>, !llvm.ptr, !llvm.ptr<3>, i32, i32) -> ()
    llvm.return
  }
}
// -----
gpu.module @kernels {
  llvm.func @k() attributes {nvvm.kernel} {
    %false = arith.constant false
    %one = cute_nvgpu.make_mma_atom() : () -> !cute_nvgpu.mma_atom<"mma.m16n8k16.f32.bf16">
    %two = cute_nvgpu.atom_set_value(%one, %false) {field = "accumulate"} : (!cute_nvgpu.mma_atom<"mma.m16n8k16.f32.bf16">, i1) -> !cute_nvgpu.mma_atom<"mma.m16n8k16.f32.bf16">
    %m = cute.make_tiled_mma(%two) : (!cute_nvgpu.mma_atom<"mma.m16n8k16.f32.bf16">) -> !cute.tiled_mma<"mma.m16n8k16.f32.bf16", atom_layout_MNK = "(1,1,1):(0,0,0)", permutation_MNK = "[_;_;_]">
    %c = cute.memref.alloca() : () -> !cute.memref<f32, rmem, align<16>, "((2,2),1,1):((1,2),0,0)">
    %a = cute.memref.alloca() : () -> !cute.memref<bf16, rmem, align<16>, "((2,2,2),1,1):((1,2,4),0,0)">
    %b = cute.memref.alloca() : () -> !cute.memref<bf16, rmem, align<16>, "((2,2),1,1):((1,2),0,0)">
    cute.gemm(%m, %c, %a, %b, %c) : (!cute.tiled_mma<"mma.m16n8k16.f32.bf16", atom_layout_MNK = "(1,1,1):(0,0,0)", permutation_MNK = "[_;_;_]">, !cute.memref<f32, rmem, align<16>, "((2,2),1,1):((1,2),0,0)">, !cute.memref<bf16, rmem, align<16>, "((2,2,2),1,1):((1,2,4),0,0)">, !cute.memref<bf16, rmem, align<16>, "((2,2),1,1):((1,2),0,0)">, !cute.memref<f32, rmem, align<16>, "((2,2),1,1):((1,2),0,0)">) -> ()
    llvm.return
  }
}
// becomes
gpu.module @kernels {
  llvm.func @k() attributes {nvvm.kernel} {
    %false = arith.constant false
    %m = cute.static : !cute.tiled_mma<"mma.m16n8k16.f32.bf16", atom_layout_MNK = "(1,1,1):(0,0,0)", permutation_MNK = "[_;_;_]">
    %c = cute.memref.alloca() : () -> !cute.memref<f32, rmem, align<16>, "((2,2),1,1):((1,2),0,0)">
    %a = cute.memref.alloca() : () -> !cute.memref<bf16, rmem, align<16>, "((2,2,2),1,1):((1,2,4),0,0)">
    %b = cute.memref.alloca() : () -> !cute.memref<bf16, rmem, align<16>, "((2,2),1,1):((1,2),0,0)">
    cute.gemm(%m, %c, %a, %b) : (!cute.tiled_mma<"mma.m16n8k16.f32.bf16", atom_layout_MNK = "(1,1,1):(0,0,0)", permutation_MNK = "[_;_;_]">, !cute.memref<f32, rmem, align<16>, "((2,2),1,1):((1,2),0,0)">, !cute.memref<bf16, rmem, align<16>, "((2,2,2),1,1):((1,2,4),0,0)">, !cute.memref<bf16, rmem, align<16>, "((2,2),1,1):((1,2),0,0)">) -> ()
    llvm.return
  }
}
// -----
func.func @f(%a: !cute_nvgpu.tma_atom<"load">) {
  %v = cute_nvgpu.atom_get_value(%a) {field = "mbarrier"} : (!cute_nvgpu.tma_atom<"load">) -> !llvm.ptr<3>
  func.return
}
// error: k.mlir:2:3: cute-desugar: cute_nvgpu.atom_get_value: the atom !cute_nvgpu.tma_atom<"load"> comes from no operation that makes or changes one
