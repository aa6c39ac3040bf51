"""Kernels composed from parts: skeletons with holes, fragments that are inlined, signatures derived from `ops.toml`."""

from .library import Library
from .parser import compose

__all__ = ["Library", "compose"]
