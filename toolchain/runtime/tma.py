"""The bytes of a TMADescriptor or an Im2colDescriptor, which the CUDA driver makes."""

from __future__ import annotations

import ctypes
from typing import Any

from ..contract.im2col import Im2colDescriptor
from ..contract.tma import BYTES, TYPES, TMADescriptor
from .driver import check, load


def encode(descriptor: TMADescriptor | Im2colDescriptor, driver: Any = None) -> bytes:
    """The 128 bytes that a kernel takes as a `__grid_constant__` parameter. Raises NoGPU without a driver."""
    driver = driver or load()

    def number(of: str, name: str) -> Any:
        return getattr(getattr(driver, of), f"CU_TENSOR_MAP_{name}")

    words, wide = driver.cuuint32_t, driver.cuuint64_t
    rank = len(descriptor.sizes)
    if isinstance(descriptor, Im2colDescriptor):
        call = "cuTensorMapEncodeIm2col"
        corners = list(descriptor.lower), list(descriptor.upper)
        moved = [*corners, words(descriptor.channels), words(descriptor.pixels)]
    else:
        call, moved = "cuTensorMapEncodeTiled", [[words(size) for size in descriptor.box]]
    made = getattr(driver, call)(
        number("CUtensorMapDataType", f"DATA_TYPE_{TYPES[descriptor.dtype][1]}"),
        words(rank),
        descriptor.address,
        [wide(size) for size in descriptor.sizes],
        [wide(stride) for stride in descriptor.strides],
        *moved,
        [words(step) for step in descriptor.element_strides or (1,) * rank],
        number("CUtensorMapInterleave", "INTERLEAVE_NONE"),
        number("CUtensorMapSwizzle", f"SWIZZLE_{f'{descriptor.swizzle}B' if descriptor.swizzle else 'NONE'}"),
        number(
            "CUtensorMapL2promotion",
            f"L2_PROMOTION_{f'L2_{descriptor.l2_promotion}B' if descriptor.l2_promotion else 'NONE'}",
        ),
        number("CUtensorMapFloatOOBfill",
               "FLOAT_OOB_FILL_" + ("NAN_REQUEST_ZERO_FMA" if descriptor.fill == "nan" else "NONE")),
    )  # fmt: skip
    return ctypes.string_at(check(call, made, f"making a {type(descriptor).__name__}").getPtr(), BYTES)
