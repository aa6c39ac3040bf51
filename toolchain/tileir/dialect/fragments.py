"""Operations that exist only until the parts of a kernel are put together: fragments, calls and filled holes."""

from __future__ import annotations

from xdsl.irdl import IRDLOperation, irdl_op_definition, prop_def, region_def, var_operand_def, var_result_def

from .attrs import StrAttr


@irdl_op_definition
class FragmentOp(IRDLOperation):
    """A fragment. Its region has one block, which takes the parameters as arguments and ends with a `yield`."""

    name = "compose.fragment"
    sym_name = prop_def(StrAttr)
    body = region_def("single_block")


@irdl_op_definition
class CallOp(IRDLOperation):
    """A call of a fragment of the same module."""

    name = "compose.call"
    callee = prop_def(StrAttr)
    arguments = var_operand_def()
    outputs = var_result_def()


@irdl_op_definition
class HoleOp(IRDLOperation):
    """A filled hole of a skeleton. The region is the kernel's section: it takes the operands and yields the results.
    Later sections may use the values that it defines."""

    name = "compose.hole"
    sym_name = prop_def(StrAttr)
    arguments = var_operand_def()
    outputs = var_result_def()
    body = region_def("single_block")
