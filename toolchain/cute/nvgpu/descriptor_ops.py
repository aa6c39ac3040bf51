"""The operations of `cute_nvgpu` that compute descriptors: words that say where an operand lies and what a product is.

Source: PTX ISA 9.0, "Matrix Descriptor Format" of wgmma and of tcgen05, and "Instruction descriptor".
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, StringAttr, i32, i64
from xdsl.ir import SSAValue
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ...errors import UsageError
from ..atoms.tcgen05 import find_tcgen05
from .row import is_shared

# The number of a swizzle, by the bytes of its rows, and the bits that are always set.
SWIZZLES = {"sm_90": {0: 0, 128: 1, 64: 2, 32: 3}, "sm_100": {0: 0, 128: 2, 64: 4, 32: 6}}
SWIZZLE_BIT = {"sm_90": 62, "sm_100": 61}
FIXED = {"sm_90": 0, "sm_100": 1 << 46}
LARGEST = 0x3FFFF  # bytes; a field has 14 bits and counts 16 bytes


@irdl_op_definition
class SmemDescriptorOp(IRDLOperation):
    """The descriptor of an operand in shared memory, for `wgmma` (`sm_90`) or `tcgen05` (`sm_100`). `stride`: bytes
    from 8 rows to the next 8; `leading`: bytes between parts along M or N; `swizzle`: bytes of a row of its pattern, or
    0."""

    name = "cute_nvgpu.smem_descriptor"
    start = operand_def()
    generation = prop_def(StringAttr)
    leading = prop_def(IntegerAttr)
    stride = prop_def(IntegerAttr)
    swizzle = prop_def(IntegerAttr)
    res = result_def(i64)
    traits = traits_def(Pure())
    assembly_format = "`(` $start `)` attr-dict `:` type($start) `->` type($res)"
    irdl_options = (ParsePropInAttrDict(),)

    def __init__(self, start: SSAValue, generation: str, *, leading: int, stride: int, swizzle: int) -> None:
        numbers = {"leading": leading, "stride": stride, "swizzle": swizzle}
        properties = {key: IntegerAttr(value, i32) for key, value in numbers.items()}
        super().__init__(
            operands=[start], properties={"generation": StringAttr(generation), **properties}, result_types=[i64]
        )

    @property
    def fields(self) -> int:
        """The descriptor without the address."""
        generation = self.generation.data
        words = (self.leading.value.data >> 4) << 16 | (self.stride.value.data >> 4) << 32
        swizzle = SWIZZLES[generation][self.swizzle.value.data] << SWIZZLE_BIT[generation]
        return FIXED[generation] | words | swizzle

    def verify_(self) -> None:
        if not is_shared(self.start.type):
            raise VerifyException(f"{self.name}: the operand is in shared memory, !llvm.ptr<3>, not {self.start.type}")
        if self.generation.data not in SWIZZLES:
            raise VerifyException(
                f"{self.name}: generation is one of {', '.join(SWIZZLES)}, not {self.generation.data}"
            )
        if self.swizzle.value.data not in SWIZZLES[self.generation.data]:
            raise VerifyException(f"{self.name}: swizzle is 0, 32, 64 or 128 bytes, not {self.swizzle.value.data}")
        for key, value in (("leading", self.leading.value.data), ("stride", self.stride.value.data)):
            if value % 16 or not 0 <= value <= LARGEST:
                raise VerifyException(f"{self.name}: {key} is a multiple of 16 bytes below {LARGEST + 1}, not {value}")


@irdl_op_definition
class InstructionDescriptorOp(IRDLOperation):
    """The instruction descriptor of a `tcgen05` atom. `majors`: what lies side by side in A and in B, `k` or `m`."""

    name = "cute_nvgpu.instruction_descriptor"
    atom = prop_def(StringAttr)
    majors = prop_def(StringAttr)
    res = result_def(i32)
    traits = traits_def(Pure())
    assembly_format = "attr-dict `:` type($res)"
    irdl_options = (ParsePropInAttrDict(),)

    def __init__(self, atom: str, majors: str = "kk") -> None:
        super().__init__(properties={"atom": StringAttr(atom), "majors": StringAttr(majors)}, result_types=[i32])

    @property
    def word(self) -> int:
        return find_tcgen05(self.atom.data).descriptor(self.majors.data)

    def verify_(self) -> None:
        try:
            _ = self.word
        except UsageError as error:
            raise VerifyException(f"{self.name}: {error}") from error


DESCRIPTORS = (SmemDescriptorOp, InstructionDescriptorOp)
