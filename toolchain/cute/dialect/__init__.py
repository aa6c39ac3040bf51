"""The `cute` dialect on xDSL: the types of layouts, and the operations on them."""

from .ops import CUTE, OPERATIONS, AlgebraOp, StaticOp
from .parse import parse

__all__ = ["CUTE", "OPERATIONS", "AlgebraOp", "StaticOp", "parse"]
