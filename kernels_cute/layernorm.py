"""`layernorm`, with copies and reductions alone: a warp for each row. Runs on every GPU from sm_80 on.

1. Mean: each lane reads vectors of its row, adds them in f32, and the warp adds the lanes' sums by shuffles. A row that
   fits into the warp's registers is read once; others are read three times, from the L2 cache.
2. Variance: the same of the squared differences to the mean.
3. Write: each lane scales its values, applies weight and bias, rounds, and writes vectors.

It runs on a CPU, here for 4 rows of up to 256 elements (toolchain.cute.executor has `run`):

    run(layernorm("bf16", Rows(4, 256)), (x, weight, bias, out, 1e-5), grid=1)
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch
from toolchain.cute.layout import Layout, size
from toolchain.errors import UsageError

from .products.epilogues import parameters

WARP = 32
VECTOR_BYTES = 16


@dataclass(frozen=True)
class Rows:
    """`rows`: of a block, a warp for each. `columns`: of a tile. `aligned`: addresses and rows are multiples of 16
    bytes; otherwise each element is moved alone. `whole`: no row is longer than a tile. Raises UsageError."""

    rows: int = 4
    columns: int = 1024
    aligned: bool = True
    whole: bool = True

    def __post_init__(self) -> None:
        if not 1 <= self.rows <= 32:
            raise UsageError(f"a block of {self.rows} warps", hint="1 to 32")
        if self.columns % 256:
            raise UsageError(f"a tile of {self.columns} columns is no whole number of steps", hint="a multiple of 256")

    def vector(self, dtype: str) -> int:
        """Elements that a thread moves at once."""
        return VECTOR_BYTES * 8 // cute.BITS[dtype] if self.aligned else 1


def layernorm(dtype: str = "bf16", rows: Rows | None = None, name: str = "layernorm") -> cute.Kernel:
    """The kernel of `layernorm` in f32, f16 or bf16, with sums in f32. The grid has one dimension: a block for `rows`
    rows. With `aligned` rows their length is a multiple of a vector. Raises UsageError.
    """
    r = rows or Rows()
    vector, bits = r.vector(dtype), cute.BITS[dtype]
    lanes = Layout((r.rows, WARP), (WARP, 1))
    tiled = cute.make_tiled_copy(cute.CopyAtom(f"universal.b{vector * bits}", bits), lanes, Layout((1, vector)))

    @cute.kernel(*parameters("layernorm", dtype, vector), threads=r.rows * WARP, name=name)
    def kernel(x: Any, weight: Any, bias: Any, out: Any, eps: Any) -> None:
        shape = x.shape
        thread, block = arch.thread_idx()[0], arch.block_idx()[0]

        def part(tensor: Any, number: Any) -> Any:
            """What a thread holds of a tile of a tensor (N, C)."""
            return cute.partition(tiled, "S", cute.local_tile(tensor, (r.rows, r.columns), (block, number)), thread)

        def where(number: Any) -> Any:
            return part(cute.make_identity_tensor(shape), number)

        def read(tensor: Any, number: Any) -> list[Any]:
            held = cute.make_fragment(where(number).layout.shape, dtype)
            cute.copy(tiled, part(tensor, number), held, where=where(number), inside=shape)
            return [held[i].to("f32") for i in range(size(held.layout))]

        read_x = functools.cache(functools.partial(read, x)) if r.whole else functools.partial(read, x)

        def inside(number: Any) -> list[Any]:
            """For each vector, if it lies in the row."""
            found = where(number)
            _, down, across = found.layout
            return [cute.in_bounds(found[None, i, j], shape) for j in range(size(across)) for i in range(size(down))]

        def total(term: Callable[[Any], list[Any]]) -> Any:
            """The sum over the row of what each tile adds."""
            held = cute.make_fragment(1, "f32")
            cute.fill(held, 0.0)
            for number in (0,) if r.whole else cute.range_(cute.ceil_div(shape[1], r.columns)):
                held[0] = _sum([held[0], *term(number)])
            return arch.warp_sum(held[0])

        def squares(number: Any) -> list[Any]:
            there = inside(number)
            values = [value - mean for value in read_x(number)]
            return [cute.select(there[i // vector], v * v, 0.0) for i, v in enumerate(values)]

        width = cute.scalar(shape[1]).to("f32")
        mean = total(read_x) / width
        scale = cute.scalar(1.0) / (total(squares) / width + eps).sqrt()
        for number in (0,) if r.whole else cute.range_(cute.ceil_div(shape[1], r.columns)):
            values = read_x(number)
            weights, biases = (read(cute.broadcast_rows(one, shape[0]), number) for one in (weight, bias))
            made = cute.make_fragment(where(number).layout.shape, dtype)
            for i, value in enumerate(values):
                made[i] = ((value - mean) * scale).fma(weights[i], biases[i]).to(dtype)
            cute.copy(tiled, made, part(out, number), where=where(number), inside=shape)

    return kernel


def _sum(values: list[Any]) -> Any:
    """A sum in pairs, so that few additions wait for each other."""
    while len(values) > 1:
        pairs = [a + b for a, b in zip(values[::2], values[1::2], strict=False)]
        values = pairs + values[len(pairs) * 2 :]
    return values[0]
