// C = A B in f32, one element a thread: a block of 256 threads computes a tile of 16 x 16. A is (M, K), B is (K, N).
gpu.module @kernels {
  llvm.func @gemm(%a: !llvm.ptr<1>, %b: !llvm.ptr<1>, %c: !llvm.ptr<1>, %m: i32, %n: i32, %k: i32)
      attributes {nvvm.kernel, nvvm.maxntid = array<i32: 256>} {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %side = arith.constant 16 : i32
    %nothing = arith.constant 0.0 : f32
    %thread = nvvm.read.ptx.sreg.tid.x : i32
    %block_x = nvvm.read.ptx.sreg.ctaid.x : i32
    %block_y = nvvm.read.ptx.sreg.ctaid.y : i32
    %row_in = arith.divui %thread, %side : i32
    %column_in = arith.remui %thread, %side : i32
    %row_0 = arith.muli %block_y, %side : i32
    %column_0 = arith.muli %block_x, %side : i32
    %row = arith.addi %row_0, %row_in : i32
    %column = arith.addi %column_0, %column_in : i32
    %has_row = arith.cmpi slt, %row, %m : i32
    %has_column = arith.cmpi slt, %column, %n : i32
    %inside = arith.andi %has_row, %has_column : i1
    scf.if %inside {
      %a_row = arith.muli %row, %k : i32
      %sum = scf.for %i = %zero to %k step %one iter_args(%partial = %nothing) -> (f32) : i32 {
        %a_at = arith.addi %a_row, %i : i32
        %b_row = arith.muli %i, %n : i32
        %b_at = arith.addi %b_row, %column : i32
        %a_place = llvm.getelementptr %a[%a_at] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
        %b_place = llvm.getelementptr %b[%b_at] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
        %a_value = llvm.load %a_place : !llvm.ptr<1> -> f32
        %b_value = llvm.load %b_place : !llvm.ptr<1> -> f32
        %product = arith.mulf %a_value, %b_value : f32
        %more = arith.addf %partial, %product : f32
        scf.yield %more : f32
      }
      %c_row = arith.muli %row, %n : i32
      %c_at = arith.addi %c_row, %column : i32
      %c_place = llvm.getelementptr %c[%c_at] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
      llvm.store %sum, %c_place : f32, !llvm.ptr<1>
    }
    llvm.return
  }
}
