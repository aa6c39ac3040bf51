"""Operands of different shapes are broadcast, by numpy's rules; reshape and permute change how a tile is seen.

    python examples/03_broadcast.py

A table of all sums of a column and a row costs two small loads for each tile, not two matrices.
"""

from __future__ import annotations

import cuda.tile as ct
import numpy as np

import tilestack as ts

M, N, TM, TN = 40, 50, 16, 32


@ct.kernel
def table(column, row, out, TM: ct.Constant[int], TN: ct.Constant[int]):
    """out[i, j] = column[i] + row[j]: (TM, 1) and (1, TN) are broadcast to (TM, TN)."""
    i, j = ct.bid(0), ct.bid(1)
    left = ct.load(column, index=(i,), shape=(TM,), padding_mode=ct.PaddingMode.ZERO)
    top = ct.load(row, index=(j,), shape=(TN,), padding_mode=ct.PaddingMode.ZERO)
    ct.store(out, index=(i, j), tile=ct.expand_dims(left, 1) + top[None, :])


@ct.kernel
def transposed(x, out, TM: ct.Constant[int], TN: ct.Constant[int]):
    """Each block turns one tile around, and stores it at the mirrored place."""
    i, j = ct.bid(0), ct.bid(1)
    tile = ct.load(x, index=(i, j), shape=(TM, TN), padding_mode=ct.PaddingMode.ZERO)
    ct.store(out, index=(j, i), tile=ct.permute(tile, (1, 0)))


@ct.kernel
def repeated(x, out, COPIES: ct.Constant[int], TN: ct.Constant[int]):
    """Each element COPIES times in a row: a dimension of size 1 is broadcast, then two become one."""
    j = ct.bid(0)
    tile = ct.load(x, index=(j,), shape=(TN,), padding_mode=ct.PaddingMode.ZERO)
    copies = ct.broadcast_to(tile[:, None], (TN, COPIES))
    ct.store(out, index=(j,), tile=ct.reshape(copies, (TN * COPIES,)))


def main() -> None:
    column, row = np.arange(M, dtype=np.float32), 100 * np.arange(N, dtype=np.float32)
    sums, turned, four = np.zeros((M, N), np.float32), np.zeros((N, M), np.float32), np.zeros(4 * N, np.float32)
    grid = (-(-M // TM), -(-N // TN))
    print(f"on {ts.device_name()}: a grid of {grid[0]} x {grid[1]} blocks")
    ts.load(table)[grid](column, row, sums, TM=TM, TN=TN)
    ts.load(transposed)[grid](sums, turned, TM=TM, TN=TN)
    ts.load(repeated)[grid[1]](row, four, COPIES=4, TN=TN)
    print("(40,) and (50,) make (40, 50):")
    print(sums[:3, :4])
    print("transposed:")
    print(turned[:3, :4])
    print("repeated:", four[:10])
    same = (sums == column[:, None] + row).all(), (turned == sums.T).all(), (four == row.repeat(4)).all()
    print("as numpy's:", all(same))


if __name__ == "__main__":
    main()
