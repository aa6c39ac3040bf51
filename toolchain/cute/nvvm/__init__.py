"""The base level of CuTe's kernels: `arith`, `math`, `scf`, `cf`, `llvm` and `nvvm` operations, and their way to PTX.

`compile_to_ptx` is the way that needs Python packages alone: MLIR text or a module to LLVM IR text, then llvmlite's
NVPTX back end. Text at this level is also what `mlir-opt`, `mlir-translate` and `llc` of MLIR 22 read.
"""

from .llvm_ir import to_llvm_ir
from .parse import parse
from .ptx import PTX_VERSIONS, compile_to_ptx, llvm_to_ptx, llvm_version

__all__ = ["PTX_VERSIONS", "compile_to_ptx", "llvm_to_ptx", "llvm_version", "parse", "to_llvm_ir"]
