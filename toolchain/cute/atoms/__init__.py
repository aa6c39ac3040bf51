"""Atoms: the matrix instructions of GPUs, each with the layouts that say which thread holds which element."""

from .compress import compress
from .copy import MatrixCopyAtom, copies, find_copy
from .mma import MmaAtom, atoms, find

__all__ = ["MatrixCopyAtom", "MmaAtom", "atoms", "compress", "copies", "find", "find_copy"]
