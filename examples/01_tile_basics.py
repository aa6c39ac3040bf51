"""A kernel is the work of one block: it loads tiles, computes with them, and stores one.

    python examples/01_tile_basics.py

Three blocks add ten numbers, four at a time. The last tile reaches beyond the arrays: zeros are read there, and nothing
is stored.
"""

from __future__ import annotations

import cuda.tile as ct
import numpy as np

import tilestack as ts


@ct.kernel
def add(x, y, out, TILE: ct.Constant[int]):
    block = ct.bid(0)
    a = ct.load(x, index=(block,), shape=(TILE,), padding_mode=ct.PaddingMode.ZERO)
    b = ct.load(y, index=(block,), shape=(TILE,), padding_mode=ct.PaddingMode.ZERO)
    ct.printf("block %d adds a tile\n", block)
    ct.store(out, index=(block,), tile=a + b)


@ct.kernel
def clamp(x, out, TILE: ct.Constant[int]):
    """A whole tile is compared at once, and each element is selected by its own answer."""
    block = ct.bid(0)
    tile = ct.load(x, index=(block,), shape=(TILE,), padding_mode=ct.PaddingMode.ZERO)
    limit = ct.full((TILE,), 5.0, ct.float32)
    ct.store(out, index=(block,), tile=ct.where(ct.greater(tile, limit), limit, tile))


def main() -> None:
    tile = 4
    x, y = np.arange(10, dtype=np.float32), np.full(10, 100, np.float32)
    out = np.zeros(10, np.float32)
    blocks = -(-x.size // tile)
    print(f"on {ts.device_name()}: {blocks} blocks, tiles of {tile}")
    ts.load(add)[blocks](x, y, out, TILE=tile)
    print("x + y    ", out)
    ts.load(clamp)[blocks](x, out, TILE=tile)
    print("min(x, 5)", out)


if __name__ == "__main__":
    main()
