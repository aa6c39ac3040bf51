"""The spelling of each regular operation. The parser and the printer both follow this table.

A format consists of these words, with one space between them:
  `name`        an operand group
  `=property`   an enumeration as a plain word
  `~property`   an enumeration in angle brackets, `rounding<zero>`; left out if it has the default value
  `flags`       the unit attributes that are set, in alphabetical order
  `.property`   an integer: `dim = 0`
  `<a,b>`       one type, which all of these operands and results have
  other         is written unchanged
A variadic group in brackets, such as `[ index ]`, is written without spaces.
"""

from __future__ import annotations

from ..dialect.attrs import (
    AtomicModeAttr,
    ComparisonOrderingAttr,
    ComparisonPredicateAttr,
    IntegerOverflow,
    IntegerOverflowAttr,
    MemoryOrderingAttr,
    MemoryScopeAttr,
    MultimemReductionAttr,
    RoundingMode,
    RoundingModeAttr,
    SignednessAttr,
)
from ..dialect.ops import OPS
from ..dialect.shaping import FToIOp

ENUMS = {
    "comparison_predicate": ComparisonPredicateAttr,
    "comparison_ordering": ComparisonOrderingAttr,
    "signedness": SignednessAttr,
    "signedness_lhs": SignednessAttr,
    "signedness_rhs": SignednessAttr,
    "rounding_mode": RoundingModeAttr,
    "rounding": RoundingModeAttr,
    "overflow": IntegerOverflowAttr,
    "memory_ordering_semantics": MemoryOrderingAttr,
    "memory_scope": MemoryScopeAttr,
    "mode": AtomicModeAttr,
    "reduction": MultimemReductionAttr,
}
KEYWORDS = {"rounding_mode": "rounding", "rounding": "rounding", "overflow": "overflow"}

_UNARY = "source flags : <source,result>"
_BINARY = "lhs , rhs flags : <lhs,rhs,result>"
_ROUNDED = "lhs , rhs ~rounding_mode flags : <lhs,rhs,result>"
_WRAPPING = "lhs , rhs ~overflow : <lhs,rhs,result>"
_SIGNED = "lhs , rhs =signedness : <lhs,rhs,result>"
_CONVERSION = "source : <source> -> <result>"

FORMATS: dict[str, str] = {
    **dict.fromkeys(("absf", "absi", "ceil", "cos", "cosh", "exp2", "floor", "log", "log2", "negf"), _UNARY),
    **dict.fromkeys(("rsqrt", "sin", "sinh", "tan"), _UNARY),
    **dict.fromkeys(("andi", "ori", "xori", "maxf", "minf", "remf"), _BINARY),
    **dict.fromkeys(("addf", "subf", "mulf", "divf"), _ROUNDED),
    **dict.fromkeys(("addi", "subi", "muli", "shli"), _WRAPPING),
    **dict.fromkeys(("shri", "remi", "maxi", "mini"), _SIGNED),
    **dict.fromkeys(
        ("bitcast", "broadcast", "int_to_ptr", "pack", "ptr_to_int", "ptr_to_ptr", "reshape", "unpack"), _CONVERSION
    ),
    **dict.fromkeys(("exp", "sqrt", "tanh"), "source ~rounding_mode flags : <source,result>"),
    "atan2": "x , y : <x,y,result>",
    "mulhii": "x , y : <x,y,result>",
    "pow": "source , exponent : <source,exponent,result>",
    "fpowi": "source , exponent : <source,result> , <exponent>",
    "negi": "source ~overflow : <source,result>",
    "divi": "lhs , rhs =signedness ~rounding : <lhs,rhs,result>",
    "cmpf": "=comparison_predicate =comparison_ordering lhs , rhs : <lhs,rhs> -> <result>",
    "cmpi": "=comparison_predicate lhs , rhs , =signedness : <lhs,rhs> -> <result>",
    "fma": "lhs , rhs , acc ~rounding_mode flags : <lhs,rhs,acc,result>",
    "mmaf": "lhs , rhs , acc flags : <lhs> , <rhs> , <acc,result>",
    "mmai": "lhs , rhs , acc =signedness_lhs =signedness_rhs : <lhs> , <rhs> , <acc,result>",
    "mmaf_scaled": "lhs , rhs , acc , lhs_scale , rhs_scale : <lhs> , <rhs> , <acc,result> , <lhs_scale> , <rhs_scale>",
    "select": "cond , val_if_true , val_if_false : <cond> , <val_if_true,val_if_false,result>",
    "ftof": "from_ ~rounding_mode : <from_> -> <to>",
    "ftoi": "from_ =signedness ~rounding_mode flags : <from_> -> <to>",
    "itof": "from_ =signedness ~rounding_mode : <from_> -> <to>",
    "exti": "from_ =signedness : <from_> -> <to>",
    "trunci": "from_ ~overflow : <from_> -> <to>",
    "cat": "lhs , rhs .dim : <lhs> , <rhs> -> <result>",
    "extract": "source [ indices ] : <source> -> <result>",
    "insert": "source , destination [ indices ] : <source> , <destination,result>",
    "iota": ": <result>",
    "offset": "ptr , offset : <ptr> , <offset> -> <result>",
    "alloca": ".num_elem , .alignment flags : <result>",
    "make_token": ": <result>",
    "join_tokens": "tokens : <result>",
    "get_tile_block_id": ": <x,y,z>",
    "get_num_tile_blocks": ": <x,y,z>",
    "make_partition_view": "tensor_view : <result>",
    "make_strided_view": "tensor_view : <result>",
    "make_gather_scatter_view": "tensor_view : <result>",
    "get_tensor_shape": "src : <src> -> <sizes>",
    "get_index_space_shape": "src : <src> -> <sizes>",
}  # fmt: skip


def default(op: str, name: str) -> object:
    """The value that a `~property` has if it is left out."""
    if name == "overflow":
        return IntegerOverflowAttr(IntegerOverflow.NONE)
    if name == "rounding":  # divi
        return RoundingModeAttr(RoundingMode.ZERO)
    if OPS[op] is FToIOp:
        return RoundingModeAttr(RoundingMode.NEAREST_INT_TO_ZERO)
    return OPS[op].DEFAULTS.get(name, RoundingModeAttr(RoundingMode.NEAREST_EVEN))
