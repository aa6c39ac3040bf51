"""Attention of one token to a cache in 8-bit floats (e4m3) with a scale for each head of each position, for sm_90.

`spans` is the op `grouped_decode_attention_f8`, a block for each span of a head of keys. `unsplit` is
`decode_attention_unsplit_f8`: one block takes all of a head, rounds the token's key and value to the cache itself, and
divides its sums. `cache_f8_walk.py` has what both do with the positions.
"""

from __future__ import annotations

from typing import Any

from toolchain.contract.op import ops
from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch

from ..decode.block import as_number
from ..products.epilogues import parameters
from .cache_f8_walk import Attention, Tiles

VECTORS = ("q", "k", "v", "k_cache", "v_cache", "k_scales", "v_scales")  # what is read many elements at once


def spans(tiles: Tiles | None = None, name: str = "grouped_decode_attention_f8", dtype: str = "bf16") -> cute.Kernel:
    """The kernel of `grouped_decode_attention_f8`, in the grid (G * ceil(Q / queries), B, Z)."""
    t = tiles or Tiles()

    @cute.kernel(*_parameters("grouped_decode_attention_f8", dtype), threads=t.threads, name=name, min_blocks=t.blocks)
    def kernel(
        q: Any, k_cache: Any, v_cache: Any, k_scales: Any, v_scales: Any, positions: Any, partial: Any, stats: Any,
        scale: Any,
    ) -> None:  # fmt: skip
        block, sequence, z = arch.block_idx()
        parts = cute.ceil_div(q.shape[2], t.queries)
        head, first = block // parts, block % parts * t.queries
        position = as_number(positions[sequence])
        arch.grid_wait()
        attention = Attention(t, (k_cache, v_cache), (k_scales, v_scales), sequence, head, position)
        attention.take_queries(q[sequence, head, (first + attention.i).minimum(q.shape[2] - 1), None], scale)
        attention.walk(z * t.span)

        def write(row: Any, column: Any, sums: Any, most: Any, weight: Any) -> None:
            partial[sequence, head, first + row, z, column] = sums
            with cute.when(cute.same(column, 0)):
                stats[sequence, head, first + row, z, 0] = most
                stats[sequence, head, first + row, z, 1] = weight

        attention.merge((q.shape[2] - first).minimum(t.queries), write)

    return kernel


def unsplit(tiles: Tiles | None = None, name: str = "decode_attention_unsplit_f8", dtype: str = "bf16") -> cute.Kernel:
    """The kernel of `decode_attention_unsplit_f8`, in the grid (H, B)."""
    t = tiles or Tiles(span=0)

    @cute.kernel(*_parameters("decode_attention_unsplit_f8", dtype), threads=t.threads, name=name, min_blocks=t.blocks)
    def kernel(
        q: Any, k: Any, v: Any, positions: Any, k_cache: Any, v_cache: Any, k_scales: Any, v_scales: Any, out: Any,
        scale: Any,
    ) -> None:  # fmt: skip
        head, sequence, _ = arch.block_idx()
        position = as_number(positions[sequence])
        attention = Attention(t, (k_cache, v_cache), (k_scales, v_scales), sequence, head, position)
        if t.stages:
            attention.begin()
        attention.unsplit(q, k, v, out, scale)

    return kernel


def _parameters(op: str, dtype: str) -> tuple[cute.Parameter, ...]:
    """The parameters of an op's kernel. Those in VECTORS have strides that are multiples of 16 bytes."""
    made = list[cute.Parameter]()
    for param, one in zip(ops()[op].params, parameters(op, dtype), strict=True):
        if param.name in VECTORS:
            assert isinstance(one, cute.Array)
            one = cute.Array(one.dtype, one.rank, 16 * 8 // cute.BITS[one.dtype])
        made.append(one)
    return tuple(made)
