"""Debug information: the scopes of an entry, its operations and the globals must fit each other."""

from __future__ import annotations

from xdsl.ir import Operation

from ..control import EntryOp, GlobalOp
from ..debug import CallSite, Subprogram, attached, scope_of, subprogram_of
from .base import need


def check_scope(op: EntryOp | GlobalOp) -> None:
    """Raises Invalid if what the text says of an entry's or a global's origin is impossible."""
    place = attached(op)
    scope = scope_of(place)
    if isinstance(op, GlobalOp):
        need(scope is None, "a global has no debug scope")
        return
    need(not isinstance(place, CallSite), "the location of an entry cannot be a call site")
    if scope is None:
        return
    need(isinstance(scope, Subprogram), "the debug scope of an entry must be a di_subprogram")
    name = subprogram_of(scope).linkage_name
    need(name == op.symbol, f"the linkage name of its debug scope is {name!r}, not {op.symbol!r}")


def check_inner_scope(op: Operation) -> None:
    """Raises Invalid if the debug scope of an operation is not inside that of its entry."""
    scope = scope_of(attached(op))
    if scope is None:
        return
    entry = op
    while not isinstance(entry, EntryOp):
        parent = entry.parent_op()
        if parent is None:
            return
        entry = parent
    around = scope_of(attached(entry))
    need(around is not None, "has a debug scope, but its entry has none")
    assert around is not None
    inside = subprogram_of(scope) == subprogram_of(around)
    need(inside, f"its debug scope is in {subprogram_of(scope).name!r}, not in that of its entry")
