"""PTX on the executor: a reader of what our own ways emit for sm_80 and sm_90a, as steps beside those of the IR."""

from .program import program_of
from .text import is_ptx, parse
from .types import given_types

__all__ = ["given_types", "is_ptx", "parse", "program_of"]
