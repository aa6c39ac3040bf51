"""The structures of the CUDA driver's interface that a launch passes: https://docs.nvidia.com/cuda/cuda-driver-api."""

from __future__ import annotations

import ctypes

_GRID_AND_BLOCK = [(name, ctypes.c_uint32) for name in ("gx", "gy", "gz", "bx", "by", "bz", "shared_bytes")]


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        *_GRID_AND_BLOCK, ("stream", ctypes.c_void_p), ("attributes", ctypes.c_void_p), ("count", ctypes.c_uint32),
    )  # fmt: skip
