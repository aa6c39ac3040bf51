"""Tile IR's own assembly format: parsed into the dialect, printed from it."""

from . import irregular, structured
from .parser import parse
from .printer import print_module

# Importing irregular and structured registers their operations with the parser.
__all__ = ["irregular", "parse", "print_module", "structured"]
