"""Compiled kernels in Python and in C++: compiling MLIR, loading cubins and PTX, launching, without a model's bundle.

The C++ library is header-only: `include_dirs()` has the folders that a compiler needs. docs/cute-runtime.md has a
program in each language.
"""

from __future__ import annotations

import importlib

importlib.import_module("tilestack")  # it finds `toolchain`, which an installed wheel has below it

from toolchain.contract.im2col import Im2colDescriptor
from toolchain.contract.tma import TMADescriptor

from .buffer import DeviceBuffer
from .compiler import Compiler, compile_mlir
from .device import DeviceInfo, get_device_info
from .gemm import Gemm, Tile
from .headers import include_dirs
from .kernel import Kernel

__all__ = [
    "Compiler",
    "DeviceBuffer",
    "DeviceInfo",
    "Gemm",
    "Im2colDescriptor",
    "Kernel",
    "TMADescriptor",
    "Tile",
    "compile_mlir",
    "get_device_info",
    "include_dirs",
]
