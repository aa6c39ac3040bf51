"""Kernel bugs people write, as replacements in the parts of the `.mlir` files. Each must be caught by a case of an op.

A row: the part that has the bug, the cheapest kernel that shows it, what the bug is, the text that stands in the part
exactly once, and what replaces it; the dtype in which it shows, where that is not f32; and of a text that stands there
several times, which one of how many is meant. A part is `fragment @x`, `skeleton @x`, `kernel @x` or, for a type, its
file's stem and name: `products !x_part`.

There is a module for each family of ops, named as that of its cases. A bug is with the op whose kernel shows it.
"""

from __future__ import annotations

from . import (
    cache_f8,
    causal_attention,
    collectives,
    decode,
    grouped,
    paged,
    products,
    rms_products,
    rows,
    scaled,
    tokens,
    weights_8bits,
)
from .mutation import Mutation
from .untested import UNTESTED

__all__ = ["FAMILIES", "MUTATIONS", "UNTESTED", "Mutation"]

FAMILIES = (
    cache_f8,
    causal_attention,
    collectives,
    decode,
    grouped,
    paged,
    products,
    rms_products,
    rows,
    scaled,
    tokens,
    weights_8bits,
)
MUTATIONS: tuple[Mutation, ...] = tuple(mutation for family in FAMILIES for mutation in family.MUTATIONS)
