gpu.module @kernels {
  llvm.func @k(%x: !llvm.ptr<1>) attributes {nvvm.kernel} {
    %p = cute.make_ptr(%x) : (!llvm.ptr<1>) -> !cute.ptr<f32, gmem, align<4>>
    %l = cute.static : !cute.layout<"2:8">
    %t = cute.make_view(%p, %l) : !cute.ptr<f32, gmem, align<4>>, !cute.layout<"2:8">
    cute.clear(%t) : (!cute.memref<f32, gmem, align<4>, "2:8">) -> ()
    llvm.return
  }
}
// becomes
gpu.module @kernels {
  llvm.func @k(%x: !llvm.ptr<1>) attributes {nvvm.kernel} {
    %0 = arith.constant 0.000000e+00 : f32
    llvm.store %0, %x {alignment = 4 : i64} : f32, !llvm.ptr<1>
    %1 = llvm.getelementptr %x[32] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
    llvm.store %0, %1 {alignment = 4 : i64} : f32, !llvm.ptr<1>
    llvm.return
  }
}
