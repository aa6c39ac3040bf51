// y[i] = a * x[i] + y[i], one thread an element.
llvm.func @saxpy(%a: f32, %x: !llvm.ptr<1>, %y: !llvm.ptr<1>, %n: i32) attributes {nvvm.kernel} {
  %thread = nvvm.read.ptx.sreg.tid.x : i32
  %block = nvvm.read.ptx.sreg.ctaid.x : i32
  %threads = nvvm.read.ptx.sreg.ntid.x : i32
  %first = llvm.mul %block, %threads : i32
  %i = llvm.add %first, %thread : i32
  %inside = llvm.icmp "slt" %i, %n : i32
  llvm.cond_br %inside, ^work, ^done
^work:
  %xp = llvm.getelementptr %x[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
  %yp = llvm.getelementptr %y[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
  %xv = llvm.load %xp : !llvm.ptr<1> -> f32
  %yv = llvm.load %yp : !llvm.ptr<1> -> f32
  %sum = llvm.intr.fma(%a, %xv, %yv) : (f32, f32, f32) -> f32
  llvm.store %sum, %yp : f32, !llvm.ptr<1>
  llvm.br ^done
^done:
  llvm.return
}
