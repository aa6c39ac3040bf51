"""Tile IR bytecode: read into the dialect, written from it. The waist of the project: both kernel sources meet here."""

from .reader import is_bytecode, read, version_of
from .writer import strip_debug, write

__all__ = ["is_bytecode", "read", "strip_debug", "version_of", "write"]
