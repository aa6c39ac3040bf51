"""`cute_nvgpu`: the instructions behind atoms, with plain operands, and their PTX text."""

from .arch import ARCH
from .row import ArchOp

__all__ = ["ARCH", "ArchOp"]
