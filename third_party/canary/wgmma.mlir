// The fences around a warpgroup's matrix product.
llvm.func @wgmma(%out: !llvm.ptr<1>) attributes {nvvm.kernel} {
  nvvm.wgmma.fence.aligned
  nvvm.wgmma.commit.group.sync.aligned
  nvvm.wgmma.wait.group.sync.aligned 0
  %zero = llvm.mlir.constant(0 : i32) : i32
  llvm.store %zero, %out : i32, !llvm.ptr<1>
  llvm.return
}
