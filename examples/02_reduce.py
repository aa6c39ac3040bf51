"""A reduction folds one dimension of a tile; a scan keeps what it has on the way. Both take a function of your own.

    python examples/02_reduce.py

In CUDA C++ these are shuffles, shared memory and barriers for a fixed number of threads. Here each is one call.
"""

from __future__ import annotations

import cuda.tile as ct
import numpy as np

import tilestack as ts

ROWS, COLUMNS = 4, 100


@ct.kernel
def statistics(x, sums, largest, places, WIDTH: ct.Constant[int]):
    """One block takes one row. Columns past the end are -inf: no maximum, and for the sum they are made 0."""
    row = ct.bid(0)
    tile = ct.load(x, index=(row, 0), shape=(1, WIDTH), padding_mode=ct.PaddingMode.NEG_INF)
    inside = ct.less(ct.arange(WIDTH, dtype=ct.int32), x.shape[1])[None, :]
    ct.store(sums, index=(row,), tile=ct.sum(ct.where(inside, tile, 0.0), axis=1))
    ct.store(largest, index=(row,), tile=ct.max(tile, axis=1))
    ct.store(places, index=(row,), tile=ct.argmax(tile, axis=1).astype(ct.int32))


def longer(a, b):
    """The one of two numbers that is farther from zero."""
    return ct.where(ct.greater(ct.abs(a), ct.abs(b)), a, b)


@ct.kernel
def farthest(x, out, WIDTH: ct.Constant[int]):
    row = ct.bid(0)
    tile = ct.load(x, index=(row, 0), shape=(1, WIDTH), padding_mode=ct.PaddingMode.ZERO)
    ct.store(out, index=(row,), tile=ct.reduce(tile, 1, longer, 0.0))


@ct.kernel
def running(x, sums, records, WIDTH: ct.Constant[int]):
    """The sum of everything up to each element, and the largest so far."""
    row = ct.bid(0)
    tile = ct.load(x, index=(row, 0), shape=(1, WIDTH), padding_mode=ct.PaddingMode.ZERO)
    ct.store(sums, index=(row, 0), tile=ct.cumsum(tile, axis=1))
    ct.store(records, index=(row, 0), tile=ct.scan(tile, 1, ct.maximum, -float("inf")))


def main() -> None:
    x = np.random.default_rng(0).standard_normal((ROWS, COLUMNS), np.float32)
    sums, largest, far = (np.zeros(ROWS, np.float32) for _ in range(3))
    places = np.zeros(ROWS, np.int32)
    print(f"on {ts.device_name()}")
    ts.load(statistics)[ROWS](x, sums, largest, places, WIDTH=128)
    ts.load(farthest)[ROWS](x, far, WIDTH=128)
    for row in range(ROWS):
        print(f"row {row}: sum {sums[row]:7.3f}, max {largest[row]:.3f} at {places[row]:2d}, farthest {far[row]:.3f}")
    print("sum, largest difference from numpy:", abs(sums - x.sum(axis=1)).max())
    print("places as numpy's:", np.array_equal(places, x.argmax(axis=1)))
    print("farthest as numpy's:", np.array_equal(far, x[np.arange(ROWS), abs(x).argmax(axis=1)]))

    so_far, records = np.zeros_like(x), np.zeros_like(x)
    ts.load(running)[ROWS](x, so_far, records, WIDTH=128)
    print("running sum, largest difference from numpy:", abs(so_far - x.cumsum(axis=1)).max())
    print("records as numpy's:", np.array_equal(records, np.maximum.accumulate(x, axis=1)))


if __name__ == "__main__":
    main()
