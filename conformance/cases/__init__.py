"""The op cases of the conformance matrix, each with the reason for its sizes: a module for each family of ops.

The matrix runs and lists them in the order below.
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
from .case import Case

__all__ = ["CASES", "Case"]

CASES: tuple[Case, ...] = (
    *tokens.EMBEDDING,
    *rows.LAYERNORM,
    *products.LINEAR,
    *rms_products.GPT2,
    *products.SPLIT_K,
    *scaled.ANY_SIZE,
    *weights_8bits.CASES,
    *scaled.LARGER,
    *rows.RESIDUAL_LAYERNORM,
    *products.LOGITS,
    *causal_attention.CASES,
    *rows.GELU_AND_SOFTMAX,
    *decode.CASES,
    *tokens.NEXT_TOKEN,
    *rows.RMSNORM,
    *products.MATMUL,
    *rms_products.SMOLLM2,
    *grouped.SPLIT,
    *cache_f8.CASES,
    *grouped.UNSPLIT,
    *paged.CASES,
    *collectives.CASES,
)
