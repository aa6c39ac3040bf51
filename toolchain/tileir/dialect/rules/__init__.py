"""The requirements of each operation on its types and attributes: `RULES` by mnemonic. A rule raises `Invalid`.

Source: the operations section of the Tile IR specification, 13.1 to 13.4.
"""

from __future__ import annotations

from . import arithmetic, control, conversions, memory, shaping
from .base import RULES, Invalid, need

__all__ = ["RULES", "Invalid", "arithmetic", "control", "conversions", "memory", "need", "shaping"]
