// A barrier of the whole block, spelled as LLVM 22 has it.
llvm.func @barrier(%out: !llvm.ptr<1>) attributes {nvvm.kernel} {
  nvvm.barrier0
  %thread = nvvm.read.ptx.sreg.tid.x : i32
  llvm.store %thread, %out : i32, !llvm.ptr<1>
  llvm.return
}
