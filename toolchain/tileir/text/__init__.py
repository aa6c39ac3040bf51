"""Tile IR's own assembly format: parsed into the dialect, printed from it."""

from .parser import parse
from .printer import print_module

__all__ = ["parse", "print_module"]
