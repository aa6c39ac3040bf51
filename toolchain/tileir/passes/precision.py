"""`round-to-tf32` and `full-tanh`: set the precision of an entry by its dtype.

- For tf32, the operands of every `mmaf` are first rounded from f32 to tf32.
- For f32 storage, a `tanh` with `rounding<approx>` becomes the full one: the GPU's approximation has an error of 2^-11,
  which is enough only for 16-bit results.
"""

from __future__ import annotations

from xdsl.rewriter import InsertPoint, Rewriter

from toolchain.errors import SourceError

from .. import location
from ..dialect import attrs
from ..dialect import types as t
from ..dialect.control import EntryOp
from ..dialect.ops import FToFOp, MmaFOp, TanHOp

ROUND = attrs.RoundingModeAttr(attrs.RoundingMode.NEAREST_EVEN)


def round_to_tf32(entry: EntryOp) -> None:
    for op in list(entry.walk()):
        if not isinstance(op, MmaFOp):
            continue
        for index in (0, 1):
            operand = op.operands[index]
            kind = operand.type
            assert isinstance(kind, t.TileType)
            if kind.element_type != t.f32:
                raise SourceError(f"{location.get(op)}: error: tf32 needs f32 operands, not {t.spell(kind)}")
            rounded = FToFOp.create(
                operands=[operand],
                result_types=[t.TileType(kind.shape, t.tf32)],
                properties={"rounding_mode": ROUND},
            )
            if place := location.get(op):
                location.set(rounded, place)
            Rewriter.insert_op(rounded, InsertPoint.before(op))
            op.operands[index] = rounded.to


def full_tanh(entry: EntryOp) -> None:
    for op in entry.walk():
        if isinstance(op, TanHOp) and op.rounding_mode.data is attrs.RoundingMode.APPROX:
            op.properties["rounding_mode"] = attrs.RoundingModeAttr(attrs.RoundingMode.FULL)
