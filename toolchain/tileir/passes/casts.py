"""`drop-identity-casts`: removes casts of a value to the type that it already has, such as `ftof` from f32 to f32."""

from __future__ import annotations

from xdsl.rewriter import Rewriter

from ..dialect.control import EntryOp
from ..dialect.ops import ExtIOp, FToFOp, TruncIOp


def drop_identity_casts(entry: EntryOp) -> None:
    for op in list(entry.walk()):
        if isinstance(op, FToFOp | ExtIOp | TruncIOp) and op.from_.type == op.to.type:
            op.to.replace_all_uses_with(op.from_)
            Rewriter.erase_op(op)
