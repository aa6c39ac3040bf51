"""The operations of the base level that are one instruction of LLVM IR, or one of its intrinsics."""

from __future__ import annotations

from xdsl.dialects import arith, llvm, math
from xdsl.ir import Operation

INT_OPS: dict[type[Operation], str] = {
    arith.AddiOp: "add", arith.SubiOp: "sub", arith.MuliOp: "mul", arith.DivSIOp: "sdiv", arith.DivUIOp: "udiv",
    arith.RemSIOp: "srem", arith.RemUIOp: "urem", arith.AndIOp: "and", arith.OrIOp: "or", arith.XOrIOp: "xor",
    arith.ShLIOp: "shl", arith.ShRSIOp: "ashr", arith.ShRUIOp: "lshr",
    arith.AddfOp: "fadd", arith.SubfOp: "fsub", arith.MulfOp: "fmul", arith.DivfOp: "fdiv",
    llvm.AddOp: "add", llvm.SubOp: "sub", llvm.MulOp: "mul", llvm.UDivOp: "udiv", llvm.SDivOp: "sdiv",
    llvm.URemOp: "urem", llvm.SRemOp: "srem", llvm.AndOp: "and", llvm.OrOp: "or", llvm.XOrOp: "xor",
    llvm.ShlOp: "shl", llvm.LShrOp: "lshr", llvm.AShrOp: "ashr",
    llvm.FAddOp: "fadd", llvm.FSubOp: "fsub", llvm.FMulOp: "fmul", llvm.FDivOp: "fdiv",
}  # fmt: skip
CASTS: dict[type[Operation], str] = {
    arith.ExtSIOp: "sext", arith.ExtUIOp: "zext", arith.TruncIOp: "trunc", arith.ExtFOp: "fpext",
    arith.TruncFOp: "fptrunc", arith.SIToFPOp: "sitofp", arith.UIToFPOp: "uitofp", arith.FPToSIOp: "fptosi",
    arith.FPToUIOp: "fptoui", arith.BitcastOp: "bitcast",
    llvm.TruncOp: "trunc", llvm.ZExtOp: "zext", llvm.SExtOp: "sext", llvm.PtrToIntOp: "ptrtoint",
    llvm.IntToPtrOp: "inttoptr", llvm.BitcastOp: "bitcast", llvm.FPExtOp: "fpext", llvm.FPTruncOp: "fptrunc",
    llvm.SIToFPOp: "sitofp",
}  # fmt: skip
INTRINSICS: dict[type[Operation], str] = {
    arith.MaximumfOp: "llvm.maximum", arith.MinimumfOp: "llvm.minimum", arith.MaxnumfOp: "llvm.maxnum",
    arith.MinnumfOp: "llvm.minnum", arith.MinSIOp: "llvm.smin", arith.MaxSIOp: "llvm.smax",
    arith.MinUIOp: "llvm.umin", arith.MaxUIOp: "llvm.umax",
    math.FmaOp: "llvm.fma", math.SqrtOp: "llvm.sqrt", math.AbsFOp: "llvm.fabs",
}  # fmt: skip
COMPARISONS = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")  # arith.cmpi's, by number
FLOAT_COMPARISONS = ("false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une",
                     "uno", "true")  # fmt: skip
