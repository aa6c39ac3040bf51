"""Matrix descriptors: how wgmma finds an operand in shared memory, derived from the operand's layout.

Source: PTX ISA 9.0, "Asynchronous warpgroup level matrix shared memory layout", "Matrix Descriptor Format".
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import i32, i64
from xdsl.ir import SSAValue

from ...errors import SourceError
from ..dialect.tensors import Tensor
from ..layout import Layout, Swizzle, size
from ..nvvm.emit import Emitter
from .descriptor_ops import LARGEST, SWIZZLE_BIT, SWIZZLES

SWIZZLE = Swizzle(3, 4, 3)
ROW_BYTES, GROUP = 128, 8  # a row of the swizzle's pattern, and the rows of a pattern
SWIZZLE_128B = SWIZZLES["sm_90"][ROW_BYTES] << SWIZZLE_BIT["sm_90"]  # the descriptor's field for it


@dataclass(frozen=True)
class SharedOperand:
    """`major`: `k` if K lies side by side in a row, else `m`. `leading`, `stride`: bytes between rows' parts along M or
    N, and between groups of 8 rows."""

    major: str
    leading: int
    stride: int

    @property
    def fields(self) -> int:
        """The descriptor without the address."""
        return SWIZZLE_128B | (self.stride >> 4) << 32 | (self.leading >> 4) << 16

    def word(self, start: SSAValue, builder: Emitter) -> SSAValue:
        """The descriptor of an operand that starts at a pointer to shared memory, an i64."""
        place = builder.once(("address", start), llvm.PtrToIntOp, (start,), i32)
        near = builder.binary(arith.AndIOp, place, builder.number(LARGEST))
        units = builder.binary(arith.ShRUIOp, near, builder.number(4))
        wide = builder.once((arith.ExtUIOp, units), arith.ExtUIOp, (units,), i64)
        return builder.binary(arith.OrIOp, wide, builder.number(self.fields, i64))


def shared_operand(name: str, tensor: Tensor) -> SharedOperand:
    """The descriptor of one atom's A (M, K) or B (N, K). Raises SourceError if wgmma has no way to read the layout."""
    pointer, layout = tensor.pointer, tensor.layout
    if pointer.space != "smem" or pointer.swizzle != SWIZZLE:
        raise SourceError(f"{name}: wgmma reads smem with {SWIZZLE} here, not {pointer}", hint=f"swizzle={SWIZZLE}")
    tile = layout[0] if len(layout) == 1 else layout
    rows, depth = tile
    row = ROW_BYTES // pointer.bytes

    def fits(count: int, mode: Layout, step: int) -> bool:
        return all(mode(i) == i * step for i in range(count))

    if fits(size(depth), depth, 1) and fits(GROUP, rows, row):
        stride = rows(GROUP)
        if all(rows(i) == rows(i % GROUP) + i // GROUP * stride for i in range(size(rows))):
            return SharedOperand("k", 16, stride * pointer.bytes)
    if fits(min(row, size(rows)), rows, 1) and fits(GROUP, depth, row):
        leading, stride = rows(row) if size(rows) > row else 0, depth(GROUP)
        even = all(rows(i) == i % row + i // row * leading for i in range(size(rows)))
        if even and all(depth(i) == i % GROUP * row + i // GROUP * stride for i in range(size(depth))):
            return SharedOperand("m", leading * pointer.bytes, stride * pointer.bytes)
    raise SourceError(
        f"{name}: wgmma cannot read {layout}",
        hint=f"K in rows of {row} elements, or M or N in rows of {row} elements, one row for each K",
    )
