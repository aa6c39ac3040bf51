"""Tile IR's own assembly format: parsed into the dialect, printed from it."""

from . import irregular, structured
from .parser import parse
from .printer import print_module

__all__ = ["irregular", "parse", "print_module", "structured"]  # irregular, structured: their import fills the parser
