r"""The forms of the operations that the parser's table of formats cannot describe.

Each is what stands behind the operation's name. In brackets is what may be left out, `...` stands for more of the same.
A bracket that is part of the text is written `\[`.
"""

from __future__ import annotations

from collections.abc import Mapping

_ORDER = "memory_ordering_semantics [memory_scope]"
_TOKEN = "[token = %token]"
_HINTS = f"{_TOKEN} [optimization_hints = <...>]"
_WITHIN = rf"{_HINTS} [inbounds = \[true, ...\]]"
_MULTIMEM = rf"{_TOKEN} [inbounds = \[true, ...\]]"
_REDUCTION = "[attributes {reduction = #cuda_tile.multimem_reduction_kind<reduction>}]"
_VALUES = "[%values, ... : type(values), ...]"
_FOLD = (
    r"identities = \[number : scalar, ...\] : type(inputs), ... -> type(outputs), ..."
    "\n(%lhs: scalar, ..., %rhs: scalar, ...) {\n  ...\n}"
)

FORMS: Mapping[str, str] = {
    "assert": '%condition, "message" : type(condition)',
    "assume": "predicate, %value : type(value)",
    "atomic_cas_tko": f"{_ORDER} %pointers, %cmp, %val[, %mask] {_TOKEN}"
    " : type(pointers), type(cmp, val)[, type(mask)] -> type(result), token",
    "atomic_red_view_tko": rf"{_ORDER} %view\[%index, ...\], mode, %value {_WITHIN}"
    " : type(value), type(view), type(index) -> token",
    "atomic_rmw_tko": f"{_ORDER} %pointers, mode, %arg[, %mask] {_TOKEN}"
    " : type(pointers), type(arg)[, type(mask)] -> type(result), token",
    "break": _VALUES,
    "constant": "<scalar: numbers> : type(result)",
    "continue": _VALUES,
    "for": "[unsigned] %index in (%lowerBound to %upperBound, step %step) : type(index)"
    " [iter_values(%carried = %initValues, ...) -> (type(outputs), ...)] {\n  ...\n}",
    "gdc_launch_dependents_tko": f"{_TOKEN} -> token",
    "gdc_wait_tko": f"{_TOKEN} -> token",
    "get_global": "@name : type(result)",
    "if": "%condition [-> (type(outputs), ...)] {\n  ...\n} [else {\n  ...\n}]",
    "load_ptr_tko": f"{_ORDER} %source[, %mask][, %paddingValue] {_HINTS}"
    " : type(source)[, type(mask)][, type(paddingValue)] -> type(result), token",
    "load_view_tko": rf"{_ORDER} %view\[%index, ...\] {_WITHIN} : type(view), type(index) -> type(tile), token",
    "loop": "[iter_values(%carried = %initValues, ...)] [: type(initValues), ...] [-> type(outputs), ...] {\n  ...\n}",
    "make_tensor_view": r"%base, shape = \[N or %dynamicShape, ...\], strides = \[N or %dynamicStrides, ...\]"
    " : [type(dynamicShape, dynamicStrides) ->] type(result)",
    "memory_fence_alias_tko": "%token",
    "multimem_load_reduce_view_tko": rf"{_ORDER} %view\[%index, ...\] {_MULTIMEM} {_REDUCTION}"
    " : type(view), type(index)[, token] -> type(reduced_values), token",
    "multimem_reduce_view_tko": rf"{_ORDER} %view, %tile\[%index, ...\] {_MULTIMEM} {_REDUCTION}"
    " : type(view), type(tile), type(index)[, token] -> token",
    "multimem_store_view_tko": rf"{_ORDER} %view, %tile\[%index, ...\] {_MULTIMEM}"
    " : type(view), type(tile), type(index)[, token] -> token",
    "permute": r"%source \[N, ...\] : type(source) -> type(result)",
    "print_tko": f'"format"[, %args, ...] {_TOKEN} [: type(args), ...] -> token',
    "reduce": f"%inputs, ... dim = N {_FOLD}",
    "return": "",
    "scan": f"%inputs, ... dim = N reverse = true or false {_FOLD}",
    "store_ptr_tko": f"{_ORDER} %destination, %value[, %mask] {_HINTS}"
    " : type(destination), type(value)[, type(mask)] -> token",
    "store_view_tko": rf"{_ORDER} %tile, %view\[%index, ...\] {_WITHIN} : type(tile), type(view), type(index) -> token",
    "yield": _VALUES,
}
