"""The `cute` dialect on xDSL: the types of layouts, and the operations on them."""

from .ops import OPERATIONS, AlgebraOp, StaticOp
from .parse import CUTE_NVGPU, parse
from .tensor_ops import CUTE

__all__ = ["CUTE", "CUTE_NVGPU", "OPERATIONS", "AlgebraOp", "StaticOp", "parse"]
