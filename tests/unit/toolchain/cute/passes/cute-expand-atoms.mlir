gpu.module @kernels {
  llvm.func @k(%x: !llvm.ptr<1>) attributes {nvvm.kernel} {
    %c = cute.static : !cute.tiled_copy<"universal.b64", bits<16>, layout_copy_tv = "(1,4):(0,1)", tiler_mn = "[4:1]">
    %p = cute.make_ptr(%x) : (!llvm.ptr<1>) -> !cute.ptr<bf16, gmem, align<8>>
    %l = cute.static : !cute.layout<"(4,2):(1,64)">
    %g = cute.make_view(%p, %l) : !cute.ptr<bf16, gmem, align<8>>, !cute.layout<"(4,2):(1,64)">
    %r = cute.memref.alloca() : () -> !cute.memref<bf16, rmem, align<16>, "(4,2):(1,4)">
    cute.copy(%c, %g, %r) : (!cute.tiled_copy<"universal.b64", bits<16>, layout_copy_tv = "(1,4):(0,1)", tiler_mn = "[4:1]">, !cute.memref<bf16, gmem, align<8>, "(4,2):(1,64)">, !cute.memref<bf16, rmem, align<16>, "(4,2):(1,4)">) -> ()
    llvm.return
  }
}
// becomes
gpu.module @kernels {
  llvm.func @k(%x: !llvm.ptr<1>) attributes {nvvm.kernel} {
    %c = cute.static : !cute.tiled_copy<"universal.b64", bits<16>, layout_copy_tv = "(1,4):(0,1)", tiler_mn = "[4:1]">
    %p = cute.make_ptr(%x) : (!llvm.ptr<1>) -> !cute.ptr<bf16, gmem, align<8>>
    %l = cute.static : !cute.layout<"(4,2):(1,64)">
    %g = cute.make_view(%p, %l) : !cute.ptr<bf16, gmem, align<8>>, !cute.layout<"(4,2):(1,64)">
    %r = cute.memref.alloca() : () -> !cute.memref<bf16, rmem, align<16>, "(4,2):(1,4)">
    %0 = cute.static : !cute.coord<"(_,0)">
    %1 = cute.slice(%g, %0) : !cute.memref<bf16, gmem, align<8>, "(4,2):(1,64)">, !cute.coord<"(_,0)">
    %2 = cute.static : !cute.coord<"(_,0)">
    %3 = cute.slice(%r, %2) : !cute.memref<bf16, rmem, align<16>, "(4,2):(1,4)">, !cute.coord<"(_,0)">
    cute.copy_atom_call(%c, %1, %3) : (!cute.tiled_copy<"universal.b64", bits<16>, layout_copy_tv = "(1,4):(0,1)", tiler_mn = "[4:1]">, !cute.memref<bf16, gmem, align<8>, "(4):(1)">, !cute.memref<bf16, rmem, align<16>, "(4):(1)">) -> ()
    %4 = cute.static : !cute.coord<"(_,1)">
    %5 = cute.slice(%g, %4) : !cute.memref<bf16, gmem, align<8>, "(4,2):(1,64)">, !cute.coord<"(_,1)">
    %6 = cute.static : !cute.coord<"(_,1)">
    %7 = cute.slice(%r, %6) : !cute.memref<bf16, rmem, align<16>, "(4,2):(1,4)">, !cute.coord<"(_,1)">
    cute.copy_atom_call(%c, %5, %7) : (!cute.tiled_copy<"universal.b64", bits<16>, layout_copy_tv = "(1,4):(0,1)", tiler_mn = "[4:1]">, !cute.memref<bf16, gmem, align<8>, "(4):(1)">, !cute.memref<bf16, rmem, align<8>, "(4):(1)">) -> ()
    llvm.return
  }
}
