"""`assume-divisors`: turns an entry's promises about its arguments into `assume` operations."""

from __future__ import annotations

from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from toolchain.contract.entry import ALIGNMENT, EntrySpec
from toolchain.contract.op import ITEMSIZE
from toolchain.errors import SourceError

from .. import location
from ..dialect import attrs
from ..dialect.control import EntryOp
from ..dialect.ops import AssumeOp


def assume_divisors(entry: EntryOp, spec: EntrySpec) -> None:
    """`cutile_python_v2` passes an array as pointer, sizes, strides. If the array is aligned, the pointer and all
    strides but the last, which is 1, are multiples of 16 bytes. If it is contiguous, the pointer is. Sizes are
    multiples of the numbers that the entry names."""
    arguments = list(entry.body.block.args)
    promised: list[tuple[SSAValue, int]] = []
    at = 0
    for param in spec.params:
        rank = len(param.dims)
        sizes = arguments[at + 1 : at + 1 + rank]
        promised += [
            (size, spec.multiples[dim]) for size, dim in zip(sizes, param.dims, strict=False) if dim in spec.multiples
        ]
        if param.name in spec.aligned:
            step = ALIGNMENT // ITEMSIZE[param.storage(spec.dtype)]
            promised.append((arguments[at], ALIGNMENT))
            promised += [(stride, step) for stride in arguments[at + 1 + rank : at + 2 * rank]]
        elif param.name in spec.contiguous:
            promised.append((arguments[at], ALIGNMENT))
        at += 1 + 2 * rank
    if at != len(arguments):
        raise SourceError(
            f"{location.get(entry)}: error: @{entry.symbol} has {len(arguments)} arguments, but op {spec.op} has {at}"
        )
    first = InsertPoint.at_start(entry.body.block)
    for value, divisor in promised:
        assume = AssumeOp.create(
            operands=[value], result_types=[value.type], properties={"predicate": attrs.DivByAttr(divisor)}
        )
        if place := location.get(entry):
            location.set(assume, place)
        value.replace_uses_with_if(assume.result, lambda use, own=assume: use.operation is not own)
        Rewriter.insert_op(assume, first)
