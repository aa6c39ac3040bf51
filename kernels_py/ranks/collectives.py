"""Collectives over peer memory: sums, copies and norms of what several GPUs hold. See docs/several-gpus.md."""

from __future__ import annotations

import cuda.tile as ct

from ..rows.layernorm import block, normed, vector
from ..rows.next_token import comes_first, first_of
from ..rows.rmsnorm import inverse_root
from .meeting import meet

ConstInt = ct.Constant[int]


def pair(parts, p, j, BN):
    """Elements j BN to (j + 1) BN of the parts of ranks 2 p and 2 p + 1, which are read at once, (2, BN)."""
    zero = ct.PaddingMode.ZERO
    return ct.load(parts, index=(p, j), shape=(2, BN), padding_mode=zero, allow_tma=False)


def sum_of(parts, j, BN):
    """The sum of the parts in f32, (1, BN): of pairs of ranks, and of these in their order."""
    total = ct.zeros((1, BN), ct.float32)
    for p in range(ct.cdiv(parts.shape[0], 2)):
        total += ct.sum(pair(parts, p, j, BN).astype(ct.float32), axis=0, keepdims=True)
    return total


@ct.kernel
def all_reduce(parts, out, flags, state, rank, BN: ConstInt, SPINS: ConstInt):
    ct.grid_dependency_control_wait()
    meet(flags, state, rank, SPINS)
    for j in range(ct.bid(0), ct.cdiv(out.shape[0], BN), ct.num_blocks(0)):
        ct.store(out, index=(j,), tile=sum_of(parts, j, BN).astype(out.dtype).reshape((BN,)), allow_tma=False)


@ct.kernel
def all_reduce_two_shot(parts, out, flags, state, rank, BN: ConstInt, SPINS: ConstInt):
    """Tile j is added by rank j mod R. The second meeting is after all ranks have stored what this one gets."""
    ct.grid_dependency_control_wait()
    meet(flags, state, rank, SPINS)
    ranks = parts.shape[0]
    tiles = ct.cdiv(out.shape[1], BN)
    for j in range(ct.bid(0) * ranks + rank, tiles, ct.num_blocks(0) * ranks):
        total = sum_of(parts, j, BN).astype(out.dtype)
        for r in range(ranks):
            ct.store(out, index=(r, j), tile=total, allow_tma=False)
    meet(flags, state, rank, SPINS)


def add_and_norm(parts, x, out, flags, state, rank, ROWS, BC, SPINS, added, norm):
    """x = `added` of x, and the sum of the parts, and out = `norm` of what was stored there. One block makes every B-th
    tile of ROWS rows, of at most BC columns, which stay in registers."""
    ct.grid_dependency_control_wait()
    meet(flags, state, rank, SPINS)
    for n in range(ct.bid(0), ct.cdiv(x.shape[0], ROWS), ct.num_blocks(0)):
        total = ct.zeros((ROWS, BC), ct.float32)
        for p in range(ct.cdiv(parts.shape[0], 2)):
            zero = ct.PaddingMode.ZERO
            both = ct.load(parts, index=(p, n, 0), shape=(2, ROWS, BC), padding_mode=zero, allow_tma=False)
            total += ct.sum(both.astype(ct.float32), axis=0)
        rounded = (added(block(x, n, ROWS, BC)) + total).astype(x.dtype)
        ct.store(x, index=(n, 0), tile=rounded, allow_tma=False)
        result = norm(rounded.astype(ct.float32), x.shape[1])
        ct.store(out, index=(n, 0), tile=result.astype(out.dtype), allow_tma=False)


@ct.kernel
def all_reduce_layernorm(
    parts, bias, norm_weight, norm_bias, x, out, flags, state, rank, eps, ROWS: ConstInt, BC: ConstInt, SPINS: ConstInt
):
    offset, gain, shift = vector(bias, BC), vector(norm_weight, BC), vector(norm_bias, BC)

    def added(value):
        return value + offset

    def norm(value, width):
        return normed(value, gain, shift, width, eps)

    add_and_norm(parts, x, out, flags, state, rank, ROWS, BC, SPINS, added, norm)


@ct.kernel
def all_reduce_rmsnorm(
    parts, norm_weight, x, out, flags, state, rank, eps, ROWS: ConstInt, BC: ConstInt, SPINS: ConstInt
):
    gain = vector(norm_weight, BC)

    def added(value):
        return value

    def norm(value, width):
        return value * inverse_root(ct.sum(value * value, axis=1, keepdims=True), width, eps) * gain

    add_and_norm(parts, x, out, flags, state, rank, ROWS, BC, SPINS, added, norm)


@ct.kernel
def all_gather(parts, out, flags, state, rank, BN: ConstInt, SPINS: ConstInt):
    ct.grid_dependency_control_wait()
    meet(flags, state, rank, SPINS)
    for j in range(ct.bid(0), ct.cdiv(out.shape[1], BN), ct.num_blocks(0)):
        for p in range(ct.cdiv(parts.shape[0], 2)):
            ct.store(out, index=(p, j), tile=pair(parts, p, j, BN), allow_tma=False)


@ct.kernel
def reduce_scatter(parts, out, flags, state, rank, BN: ConstInt, SPINS: ConstInt):
    ct.grid_dependency_control_wait()
    meet(flags, state, rank, SPINS)
    for j in range(ct.bid(0), ct.cdiv(out.shape[0], BN), ct.num_blocks(0)):
        total = ct.zeros((BN,), ct.float32)
        for p in range(ct.cdiv(parts.shape[0], 2)):
            zero = ct.PaddingMode.ZERO
            both = ct.load(parts, index=(p, rank, j), shape=(2, 1, BN), padding_mode=zero, allow_tma=False)
            total += ct.sum(both.reshape((2, BN)).astype(ct.float32), axis=0)
        ct.store(out, index=(j,), tile=total.astype(out.dtype), allow_tma=False)


@ct.kernel
def broadcast(parts, out, flags, state, rank, root, BN: ConstInt, SPINS: ConstInt):
    ct.grid_dependency_control_wait()
    meet(flags, state, rank, SPINS)
    for j in range(ct.bid(0), ct.cdiv(out.shape[0], BN), ct.num_blocks(0)):
        zero = ct.PaddingMode.ZERO
        part = ct.load(parts, index=(root, j), shape=(1, BN), padding_mode=zero, allow_tma=False)
        ct.store(out, index=(j,), tile=part.reshape((BN,)), allow_tma=False)


@ct.kernel
def next_token_of_ranks(values, indices, tokens, positions, flags, state, rank, width, BZ: ConstInt, SPINS: ConstInt):
    """One block makes every B-th row: the best of all ranks' parts, BZ at a time, of equals that of the least index."""
    ct.grid_dependency_control_wait()
    meet(flags, state, rank, SPINS)
    for m in range(ct.bid(0), tokens.shape[0], ct.num_blocks(0)):
        best = ct.full((1, 1), -float("inf"), ct.float32)
        token = ct.zeros((1, 1), ct.int32)
        for r in range(values.shape[0]):
            for j in range(ct.cdiv(values.shape[2], BZ)):
                at, shape = (r, m, j), (1, 1, BZ)
                value = ct.load(values, index=at, shape=shape, padding_mode=ct.PaddingMode.NEG_INF, allow_tma=False)
                index = ct.load(indices, index=at, shape=shape, padding_mode=ct.PaddingMode.ZERO, allow_tma=False)
                value, index = value.reshape((1, BZ)), index.reshape((1, BZ))
                largest = ct.max(value, axis=1, keepdims=True)
                first = first_of(largest, value, index) + r * width
                better = comes_first(largest, first, best, token)
                token = ct.where(better, first, token)
                best = ct.where(better, largest, best)
        ct.store(tokens, index=(m,), tile=token.reshape((1,)), allow_tma=False)
        position = ct.load(positions, index=(m,), shape=(1,), allow_tma=False)
        ct.store(positions, index=(m,), tile=position + 1, allow_tma=False)
