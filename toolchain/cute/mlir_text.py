"""A module as MLIR's own tools print it: results of one operation as `%r:2` and `%r#1`, the types within a type of
`llvm` without their prefix, `return` and `call` without theirs. All are read again here, and by MLIR."""

from __future__ import annotations

import io

from xdsl.dialects import func, llvm
from xdsl.ir import Attribute, Operation, OpResult, SSAValue
from xdsl.printer import Printer

NESTING = (llvm.LLVMStructType, llvm.LLVMArrayType, llvm.LLVMFunctionType)


def mlir_text(module: Operation, *, generic: bool = False) -> str:
    """The text of a module; `generic`: with every operation in MLIR's generic form."""
    stream = io.StringIO()
    MlirPrinter(stream=stream, print_generic_format=generic).print_op(module)
    return stream.getvalue()


class MlirPrinter(Printer):
    """xDSL's printer with MLIR's text for several results and for types in types."""

    _nested = 0

    def _print_results(self, op: Operation) -> None:
        if len(op.results) < 2:
            super()._print_results(op)
            return
        self.print_ssa_value(op.results[0], whole=True)
        self.print_string(f":{len(op.results)} = ")

    def print_ssa_value(self, value: SSAValue, *, whole: bool = False) -> str:
        """`whole`: the name of all results of the value's operation."""
        if not isinstance(value, OpResult) or len(value.op.results) < 2:
            return super().print_ssa_value(value)
        name = super().print_ssa_value(value.op.results[0])
        if not whole:
            self.print_string(f"#{value.index}")
        return name

    def print_op(self, op: Operation) -> None:
        if self.print_generic_format or not isinstance(op, func.CallOp | func.ReturnOp):
            super().print_op(op)
            return
        self._print_results(op)
        self.print_string(op.name.removeprefix("func."))
        op.print(self)

    def print_attribute(self, attribute: Attribute) -> None:
        prefix = self._nested and attribute.name.startswith("llvm.")
        nesting = isinstance(attribute, NESTING)
        self._nested += nesting
        if prefix and isinstance(attribute, (*NESTING, llvm.LLVMPointerType, llvm.LLVMVoidType)):
            self.print_string(attribute.name.removeprefix("llvm."))
            attribute.print_parameters(self)
        else:
            super().print_attribute(attribute)
        self._nested -= nesting
