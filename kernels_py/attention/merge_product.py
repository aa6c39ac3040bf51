"""linear_residual_squares of what merge_attention makes: the product behind a split-KV attention merges the spans
itself, in place of a launch of its own. Every block merges all heads of its row, so it is for few spans. Merged heads
are rounded to the storage's dtype before the product, as merge_attention stores them: the result is that of the two
launches."""

from __future__ import annotations

import cuda.tile as ct

from ..products.products import Int, add_residual, bias_rows, load_directly, row_squares_alone, store_directly
from ..products.small_m import gemv_step, load_bias_directly, load_weight_directly, store_squares
from .attention import LEAST, nothing_yet

SPANS = 8  # that are merged at once


def merge_spans(partial, stats, b, h, j, maximum, total, acc, D, BH):
    """The heads of tile h of row b with the spans SPANS j and on: their maximum and the sum of their weights (BH, 1),
    and the weighted sum of their partial results (BH, D). Written out, and by addresses: each thread then gets what it
    adds up, and waits for no other. What is not there has no weight, and the sum of a head past the last is not 0."""
    heads = (h * BH + ct.arange(BH, dtype=ct.int32))[:, None]
    columns = ct.arange(D, dtype=ct.int32)[None, :]
    tops, sums, parts = (), (), ()
    for i in ct.static_iter(range(SPANS)):
        z = j * SPANS + i
        tops = (*tops, ct.gather(stats, (b, heads, z, 0), padding_value=LEAST))
        sums = (*sums, ct.gather(stats, (b, heads, z, 1), padding_value=1.0))
        parts = (*parts, ct.gather(partial, (b, heads, z, columns), padding_value=0.0))
    risen = maximum
    for i in ct.static_iter(range(SPANS)):
        risen = ct.maximum(risen, tops[i])
    rescale = ct.exp2(maximum - risen)
    total, acc = total * rescale, acc * rescale
    for i in ct.static_iter(range(SPANS)):
        weight = ct.exp2(tops[i] - risen)
        total, acc = total + sums[i] * weight, acc + parts[i] * weight
    return risen, total, acc


def merged_heads(total, acc, storage, D, BH):
    """Heads, rounded to the storage's dtype, as a column in f32."""
    return (acc * (1.0 / total)).astype(storage).astype(ct.float32).reshape((BH * D, 1))


@ct.kernel
def merge_linear_residual_squares_gemv(
    partial, stats, weight, bias, residual, out, squares, D: Int, BH: Int, BM: Int, BN: Int, BK: Int
):
    """At most three steps of heads, whose weights are read before the wait. A part of the squares is one tile wide."""
    n, b = ct.bid(0), ct.bid(1)
    steps = ct.cdiv(partial.shape[2], SPANS)
    tiles = load_weight_directly(weight, 0, n, BN, BK)
    line = bias_rows(load_bias_directly(bias, n, BN))
    ct.grid_dependency_control_wait()
    before = load_directly(residual, (b, n), (BM, BN))
    max0, sum0, acc0 = nothing_yet(BH, D, LEAST)
    max1, sum1, acc1 = nothing_yet(BH, D, LEAST)
    max2, sum2, acc2 = nothing_yet(BH, D, LEAST)
    for j in range(steps):
        max0, sum0, acc0 = merge_spans(partial, stats, b, 0, j, max0, sum0, acc0, D, BH)
        max1, sum1, acc1 = merge_spans(partial, stats, b, 1, j, max1, sum1, acc1, D, BH)
        max2, sum2, acc2 = merge_spans(partial, stats, b, 2, j, max2, sum2, acc2, D, BH)
    total = ct.zeros((BK, BN), ct.float32)
    total = gemv_step(merged_heads(sum0, acc0, out.dtype, D, BH), tiles[0], total)
    total = gemv_step(merged_heads(sum1, acc1, out.dtype, D, BH), tiles[1], total)
    total = gemv_step(merged_heads(sum2, acc2, out.dtype, D, BH), tiles[2], total)
    value = add_residual(ct.sum(total, axis=0, keepdims=True) + line, before)
    store_directly(out, (b, n), value)
    store_squares(squares, b, n, value, BM)


@ct.kernel
def merge_linear_residual_squares(
    partial, stats, weight, bias, residual, out, squares, D: Int, BH: Int, BM: Int, BN: Int, BK: Int
):
    """Any number of heads and parts: one block walks the tiles of a part of one row, and merges the heads for each
    again."""
    p, b = ct.bid(0), ct.bid(1)
    n_tiles = ct.cdiv(weight.shape[1], BN)
    part = ct.cdiv(n_tiles, squares.shape[0])
    sums = ct.zeros((BM,), ct.float32)
    for n in range(p * part, ct.minimum((p + 1) * part, n_tiles)):
        total = ct.zeros((BK, BN), ct.float32)
        for h in range(ct.cdiv(partial.shape[1], BH)):
            top, weights, acc = nothing_yet(BH, D, LEAST)
            for j in range(ct.cdiv(partial.shape[2], SPANS)):
                top, weights, acc = merge_spans(partial, stats, b, h, j, top, weights, acc, D, BH)
            column = merged_heads(weights, acc, out.dtype, D, BH)
            total = gemv_step(column, load_directly(weight, (h, n), (BK, BN)), total)
        product = ct.sum(total, axis=0, keepdims=True) + bias_rows(load_bias_directly(bias, n, BN))
        value = add_residual(product, load_directly(residual, (b, n), (BM, BN)))
        store_directly(out, (b, n), value)
        sums += row_squares_alone(value)
    store_directly(squares, (p, b), sums.reshape((1, BM)))
