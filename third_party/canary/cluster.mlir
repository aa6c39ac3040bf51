// Blocks of a cluster meet: arrive and wait.
llvm.func @cluster(%out: !llvm.ptr<1>) attributes {nvvm.kernel} {
  nvvm.cluster.arrive
  nvvm.cluster.wait
  %rank = nvvm.read.ptx.sreg.cluster.ctaid.x : i32
  llvm.store %rank, %out : i32, !llvm.ptr<1>
  llvm.return
}
