"""A kernel with a race that a GPU may hide: the interpreter stops at it. An atomic operation repairs it.

    python examples/08_sanitizer_finds_a_bug.py

The kernel counts how many numbers share their three lowest bits. Its first version reads a counter, adds one and writes
it back; another block may do so in between. With few blocks a GPU often gives the right result.
"""

from __future__ import annotations

import cuda.tile as ct
import numpy as np

import tilestack as ts

COUNT, TILE, BUCKETS = 64, 16, 8


@ct.kernel
def racy(x, counts, TILE: ct.Constant[int]):
    """Reads, adds, writes: two steps between which anything may happen."""
    bucket = ct.bitwise_and(ct.load(x, index=(ct.bid(0),), shape=(TILE,)), 7)
    ct.scatter(counts, bucket, ct.gather(counts, bucket) + 1)


@ct.kernel
def atomic(x, counts, largest, TILE: ct.Constant[int]):
    """The same in one step. It also keeps the largest number of each bucket."""
    value = ct.load(x, index=(ct.bid(0),), shape=(TILE,))
    bucket = ct.bitwise_and(value, 7)
    ct.atomic_add(counts, bucket, 1)
    ct.atomic_max(largest, bucket, value)


def main() -> None:
    x = np.random.default_rng(0).integers(0, 1000, COUNT).astype(np.int32)
    counts, largest = np.zeros((2, BUCKETS), np.int32)
    print("the first version, on the interpreter:")
    try:
        ts.load(racy)[COUNT // TILE](x, counts, on="cpu", TILE=TILE)
    except ts.SanitizerError as error:
        print(f"  {error}")
    else:
        raise SystemExit("the race was not found")

    print(f"with atomic operations, on {ts.device_name()}:")
    counts[:] = 0
    ts.load(atomic)[COUNT // TILE](x, counts, largest, TILE=TILE)
    print("  counts", counts, "as numpy's:", np.array_equal(counts, np.bincount(x & 7, minlength=BUCKETS)))
    wanted = [max(x[x & 7 == bucket], default=0) for bucket in range(BUCKETS)]
    print("  largest", largest, "as numpy's:", np.array_equal(largest, wanted))


if __name__ == "__main__":
    main()
