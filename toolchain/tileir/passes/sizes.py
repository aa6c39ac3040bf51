"""`set-sizes`: replaces dimensions that an entry has compiled in by constants."""

from __future__ import annotations

from xdsl.rewriter import InsertPoint, Rewriter

from toolchain.contract.entry import EntrySpec
from toolchain.errors import SourceError

from .. import location
from ..dialect import attrs
from ..dialect import types as t
from ..dialect.control import EntryOp
from ..dialect.ops import ConstantOp
from ..numbers import splat_bytes


def set_sizes(entry: EntryOp, spec: EntrySpec) -> None:
    """Replaces the sizes that the EntrySpec has compiled in by constants, in an entry of any source. The compiler then
    does arithmetic on them once, instead of the kernel at each launch. Raises SourceError if the entry does not have
    the op's arguments."""
    if not spec.sizes:
        return
    wanted = sum(1 + 2 * len(param.dims) for param in spec.params)
    if wanted != len(entry.body.block.args):
        raise SourceError(
            f"{spec.symbol}: it has {len(entry.body.block.args)} arguments, but op {spec.op} has {wanted}"
        )
    arguments = iter(entry.body.block.args)
    first = InsertPoint.at_start(entry.body.block)
    for param in spec.params:
        own = [next(arguments) for _ in range(1 + 2 * len(param.dims))]  # pointer, sizes, strides
        for dim, argument in zip(param.dims, own[1:], strict=False):
            if dim not in spec.sizes:
                continue
            kind = t.TileType((), t.i32)
            value = attrs.DenseAttr(splat_bytes(spec.sizes[dim], t.i32), kind)
            known = ConstantOp.create(result_types=[kind], properties={"value": value})
            if place := location.get(entry):
                location.set(known, place)
            Rewriter.insert_op(known, first)
            argument.replace_all_uses_with(known.result)
