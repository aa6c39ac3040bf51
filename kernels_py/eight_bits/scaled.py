"""Products of 8-bit numbers with a scale for each row of both operands, and the rounding of rows, whatever the numbers
are.

Persistent, as persistent.py. Both operands are walked along their rows, as the tensor cores take 8 bits."""

from __future__ import annotations

import cuda.tile as ct

from ..products.products import bias_rows, load, load_bias, store, tile_place
from ..rows.layernorm import block, norm_of_two_tiles, normed, normed_tile, rows_part, vector

LEAST_SCALE = 2.0**-126  # the smallest normal f32: of a row of zeros


def persistent_scaled(x, x_scales, weight, weight_scales, bias, out, BM, BN, BK, GROUP, product, epilogue):
    """The holes: `product(m, n, steps)` makes the product of their rows m and n over so many steps of K, in f32;
    `epilogue(value, m, n)` gets it scaled, with its bias."""
    m_tiles, n_tiles = ct.cdiv(x.shape[0], BM), ct.cdiv(weight.shape[0], BN)
    for tile in range(ct.bid(0), m_tiles * n_tiles, ct.num_blocks(0)):
        m, n = tile_place(tile, m_tiles, n_tiles, GROUP)
        line = load_bias(bias, n, BN)
        columns = load(weight_scales, (n,), (BN,))
        acc = product(m, n, ct.cdiv(x.shape[1], BK))
        rows = load(x_scales, (m,), (BM,))
        value = acc * rows[:, None] * columns[None, :] + bias_rows(line)
        store(out, (m, n), epilogue(value, m, n))


def scale_within(largest, most):
    """The scale that makes this the largest number of a range."""
    return ct.maximum(largest / most, LEAST_SCALE, propagate_nan=True)


def largest_of(value):
    """The largest magnitude of each row, (R, 1)."""
    return ct.max(abs(value), axis=1, keepdims=True, propagate_nan=True)


def round_rows(x, scales, R, BC, most, store_tile):
    """Rows of any width. One block makes R rows, in steps of BC columns: first their largest magnitude, then the
    quotients, which `store_tile(m, n, value)` rounds."""
    m = ct.bid(0)
    steps = ct.cdiv(x.shape[1], BC)
    largest = ct.zeros((R, 1), ct.float32)
    for n in range(steps):
        value = load(x, (m, n), (R, BC)).astype(ct.float32)
        largest = ct.maximum(largest, largest_of(value), propagate_nan=True)
    scale = scale_within(largest, most)
    ct.store(scales, index=(m,), tile=scale.reshape((R,)))
    inverse = 1.0 / scale
    for n in range(steps):
        value = load(x, (m, n), (R, BC)).astype(ct.float32)
        store_tile(m, n, value * inverse)


def round_whole_rows(value, scales, m, most, store_tile):
    """Whole rows: their scales, and the rows divided by them. One division a row, as a division of each element is a
    call that takes longer than all the rest."""
    scale = scale_within(largest_of(value), most)
    ct.store(scales, index=(m,), tile=scale.reshape((scale.shape[0],)))
    store_tile(m, 0, value * (1.0 / scale))


def round_norm(x, weight, bias, scales, eps, R, BC, most, store_tile):
    """layernorm of R rows of at most BC columns, which stay in registers, and the rounding of its result"""
    n = ct.bid(0)
    gain, shift = vector(weight, BC), vector(bias, BC)
    ct.grid_dependency_control_wait()
    result = normed(block(x, n, R, BC), gain, shift, x.shape[1], eps)
    round_whole_rows(result, scales, n, most, store_tile)


def round_two_tiles(left, right, scales, m, place, most, store_tile):
    """round_whole_rows of rows in two parts, the right one `place` times its width from their beginning."""
    scale = scale_within(ct.maximum(largest_of(left), largest_of(right), propagate_nan=True), most)
    ct.store(scales, index=(m,), tile=scale.reshape((scale.shape[0],)))
    inverse = 1.0 / scale
    store_tile(m, 0, left * inverse)
    store_tile(m, place, right * inverse)


def round_rows_in_two(x, scales, R, BC, BR, most, store_tile):
    """Rows of BC + BR columns, in these two parts: GPT-2's 768 and 3072 are no powers of two."""
    m, right = ct.bid(0), BC // BR
    round_two_tiles(rows_part(x, m, 0, R, BC), rows_part(x, m, right, R, BR), scales, m, right, most, store_tile)


def round_norm_in_two(x, weight, bias, scales, eps, R, BC, BR, most, store_tile):
    """round_norm of such rows, with one pass for mean and variance"""
    n, place = ct.bid(0), BC // BR
    left, right, mean, inverse = norm_of_two_tiles(x, weight, bias, eps, n, place, R, BC, BR)
    left, right = normed_tile(left, mean, inverse), normed_tile(right, mean, inverse)
    round_two_tiles(left, right, scales, n, place, most, store_tile)
