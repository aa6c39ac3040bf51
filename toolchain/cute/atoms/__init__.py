"""Atoms: the matrix instructions of GPUs, each with the layouts that say which thread holds which element."""

from .mma import MmaAtom, atoms, find

__all__ = ["MmaAtom", "atoms", "find"]
