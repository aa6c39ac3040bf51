"""`cute_nvgpu`: the instructions behind atoms, with plain operands, and their PTX text."""

from .arch import ARCH, ArchOp

__all__ = ["ARCH", "ArchOp"]
