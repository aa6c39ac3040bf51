"""Tile IR's own assembly format: parsed into the dialect, printed from it."""

from . import generic, irregular, structured
from .printer import print_module, print_modules
from .toplevel import parse, parse_all

# Importing generic, irregular and structured registers their operations with the parser.
__all__ = ["generic", "irregular", "parse", "parse_all", "print_module", "print_modules", "structured"]
