// x[i] = x[i] * by for i < n
gpu.module @kernels {
  llvm.func @scale(%x: !llvm.ptr<1>, %n: i32, %by: f32) attributes {nvvm.kernel, nvvm.maxntid = array<i32: 128>} {
    %threads = arith.constant 128 : i32
    %thread = nvvm.read.ptx.sreg.tid.x : i32
    %block = nvvm.read.ptx.sreg.ctaid.x : i32
    %first = arith.muli %block, %threads : i32
    %i = arith.addi %first, %thread : i32
    %inside = arith.cmpi slt, %i, %n : i32
    scf.if %inside {
      %place = llvm.getelementptr %x[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
      %value = llvm.load %place : !llvm.ptr<1> -> f32
      %scaled = arith.mulf %value, %by : f32
      llvm.store %scaled, %place : f32, !llvm.ptr<1>
    }
    llvm.return
  }
}
