"""The `nvvm` operations that have an intrinsic of LLVM, with MLIR's names and text.

Other instructions (mma.sync, wgmma, ldmatrix, TMA) are `llvm.inline_asm`: PTX text is the form that MLIR's own nvvm
operations take for most of them, and it means the same to llvmlite and to MLIR of every version.
Source of the names: MLIR's NVVM dialect, release 22; of the intrinsics: LLVM's NVPTX usage guide, release 22.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import IntegerAttr, StringAttr, SymbolNameConstraint, i32
from xdsl.ir import Dialect, Operation, Region
from xdsl.irdl import IRDLOperation, eq, irdl_op_definition, prop_def, region_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, NoTerminator, SymbolOpInterface, SymbolTable

AXES = ("x", "y", "z")
# The special registers that a kernel may read, each an i32.
REGISTERS = (
    *(f"{name}.{axis}" for name in ("tid", "ntid", "ctaid", "nctaid", "clusterid", "cluster.ctaid") for axis in AXES),
    "laneid",
    "cluster.ctarank",
    "cluster.nctarank",
)


class ReadRegister(IRDLOperation):
    """Reads a special register: `%x = nvvm.read.ptx.sreg.tid.x : i32`."""

    res = result_def(i32)
    assembly_format = "attr-dict `:` type($res)"

    def __init__(self) -> None:
        super().__init__(result_types=[i32])

    @property
    def intrinsic(self) -> str:
        return f"llvm.{self.name}"


def _register(name: str) -> type[ReadRegister]:
    label = "".join(part.capitalize() for part in name.split("."))
    made = type(f"Read{label}Op", (ReadRegister,), {"name": f"nvvm.read.ptx.sreg.{name}", "__module__": __name__})
    return irdl_op_definition(made)


READ = {name: _register(name) for name in REGISTERS}


class Call(IRDLOperation):
    """An operation without operands or results that is a call of an intrinsic. `ARGUMENT`: of the call, as LLVM IR
    writes it; there is at most one."""

    INTRINSIC: ClassVar[str]
    ARGUMENT: ClassVar[str] = ""
    assembly_format = "attr-dict"

    @property
    def argument(self) -> str:
        return self.ARGUMENT


@irdl_op_definition
class Barrier0Op(Call):
    """All threads of the block wait for each other. MLIR 23 calls it `nvvm.barrier`."""

    name = "nvvm.barrier0"
    INTRINSIC: ClassVar[str] = "llvm.nvvm.barrier.cta.sync.aligned.all"
    ARGUMENT: ClassVar[str] = "i32 0"


@irdl_op_definition
class CpAsyncCommitGroupOp(Call):
    """The thread's copies since the last commit become one group."""

    name = "nvvm.cp.async.commit.group"
    INTRINSIC: ClassVar[str] = "llvm.nvvm.cp.async.commit.group"


@irdl_op_definition
class CpAsyncWaitGroupOp(Call):
    """Waits until at most `n` of the thread's latest groups are still under way."""

    name = "nvvm.cp.async.wait.group"
    n = prop_def(IntegerAttr.constr(type=eq(i32)))  # with a type of its own MLIR's text says none
    INTRINSIC: ClassVar[str] = "llvm.nvvm.cp.async.wait.group"
    assembly_format = "$n attr-dict"

    def __init__(self, n: int) -> None:
        super().__init__(properties={"n": IntegerAttr(n, i32)})

    @property
    def argument(self) -> str:
        return f"i32 {self.n.value.data}"


@irdl_op_definition
class ClusterArriveOp(Call):
    """This thread has arrived at the cluster's barrier."""

    name = "nvvm.cluster.arrive"
    INTRINSIC: ClassVar[str] = "llvm.nvvm.barrier.cluster.arrive"


@irdl_op_definition
class ClusterWaitOp(Call):
    """Waits for all threads of the cluster to arrive."""

    name = "nvvm.cluster.wait"
    INTRINSIC: ClassVar[str] = "llvm.nvvm.barrier.cluster.wait"


CALLS: tuple[type[Call], ...] = (
    Barrier0Op,
    CpAsyncCommitGroupOp,
    CpAsyncWaitGroupOp,
    ClusterArriveOp,
    ClusterWaitOp,
)
OPERATIONS: list[type[Operation]] = [*READ.values(), *CALLS]
NVVM = Dialect("nvvm", OPERATIONS, [])


@irdl_op_definition
class GpuModuleOp(IRDLOperation):
    """The kernels of one GPU: `gpu.module @kernels { ... }`. xDSL's own has no text form but the generic one."""

    name = "gpu.module"
    body = region_def("single_block")
    sym_name = prop_def(SymbolNameConstraint())
    traits = traits_def(IsolatedFromAbove(), NoTerminator(), SymbolOpInterface(), SymbolTable())

    def __init__(self, name: str, body: Region) -> None:
        super().__init__(properties={"sym_name": StringAttr(name)}, regions=[body])

    @classmethod
    def parse(cls, parser: Parser) -> GpuModuleOp:
        name = parser.parse_symbol_name()
        return cls(name.data, parser.parse_region())

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        printer.print_string(" ")
        printer.print_region(self.body)
