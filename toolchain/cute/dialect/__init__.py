"""The `cute` dialect on xDSL: the types of layouts, and the operations on them."""

from .ops import OPERATIONS, AlgebraOp, StaticOp
from .tensor_ops import CUTE

__all__ = ["CUTE", "OPERATIONS", "AlgebraOp", "StaticOp"]
