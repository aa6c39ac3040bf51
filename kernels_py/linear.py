"""Matrix products with epilogues: bias, bias + GELU, bias + residual, and the logits of tied embeddings."""

from __future__ import annotations

import cuda.tile as ct

from .elementwise import gelu_tile

ConstInt = ct.Constant[int]
ConstBool = ct.Constant[bool]


def product(x, weight, m, n, BM, BN, BK, TF32):
    """The f32 tile (m, n) of x @ weight, walking K in steps of BK."""
    acc = ct.zeros((BM, BN), ct.float32)
    for k in range(ct.cdiv(x.shape[1], BK)):
        a = ct.load(x, index=(m, k), shape=(BM, BK), padding_mode=ct.PaddingMode.ZERO)
        b = ct.load(weight, index=(k, n), shape=(BK, BN), padding_mode=ct.PaddingMode.ZERO)
        if TF32:
            a, b = a.astype(ct.tfloat32), b.astype(ct.tfloat32)
        acc = ct.mma(a, b, acc)
    return acc


def biased(x, weight, bias, m, n, BM, BN, BK, TF32):
    line = ct.load(bias, index=(n,), shape=(BN,), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
    return product(x, weight, m, n, BM, BN, BK, TF32) + line[None, :]


@ct.kernel
def linear(x, weight, bias, out, BM: ConstInt, BN: ConstInt, BK: ConstInt, TF32: ConstBool):
    m, n = ct.bid(0), ct.bid(1)
    result = biased(x, weight, bias, m, n, BM, BN, BK, TF32)
    ct.store(out, index=(m, n), tile=result.astype(out.dtype))


@ct.kernel
def linear_gelu(x, weight, bias, out, BM: ConstInt, BN: ConstInt, BK: ConstInt, TF32: ConstBool):
    m, n = ct.bid(0), ct.bid(1)
    result = gelu_tile(biased(x, weight, bias, m, n, BM, BN, BK, TF32))
    ct.store(out, index=(m, n), tile=result.astype(out.dtype))


@ct.kernel
def linear_residual(x, weight, bias, residual, out, BM: ConstInt, BN: ConstInt, BK: ConstInt, TF32: ConstBool):
    """The residual may be the output itself: each block reads just what it writes."""
    m, n = ct.bid(0), ct.bid(1)
    result = biased(x, weight, bias, m, n, BM, BN, BK, TF32)
    before = ct.load(residual, index=(m, n), shape=(BM, BN), padding_mode=ct.PaddingMode.ZERO)
    ct.store(out, index=(m, n), tile=(result + before.astype(ct.float32)).astype(out.dtype))


@ct.kernel
def logits(x, weight, out, BM: ConstInt, BN: ConstInt, BK: ConstInt, TF32: ConstBool):
    """x @ weight.T: both operands are walked along their rows, the weight's tile is turned over."""
    m, n = ct.bid(0), ct.bid(1)
    acc = ct.zeros((BM, BN), ct.float32)
    for k in range(ct.cdiv(x.shape[1], BK)):
        a = ct.load(x, index=(m, k), shape=(BM, BK), padding_mode=ct.PaddingMode.ZERO)
        b = ct.load(weight, index=(n, k), shape=(BN, BK), padding_mode=ct.PaddingMode.ZERO)
        if TF32:
            a, b = a.astype(ct.tfloat32), b.astype(ct.tfloat32)
        acc = ct.mma(a, ct.permute(b, (1, 0)), acc)
    ct.store(out, index=(m, n), tile=acc.astype(out.dtype))
