"""Tile IR bytecode: read into the dialect, written from it. The sources `mlir` and `py` meet here."""

from .reader import is_bytecode, read, version_of
from .writer import strip_debug, write

__all__ = ["is_bytecode", "read", "strip_debug", "version_of", "write"]
