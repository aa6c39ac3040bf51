"""Blocks that wait for each other: a barrier, a flag, a lock, and a product whose parts are added up (stream-K). Each
kernel is run right, and once with a bug that a GPU may hide for long: the interpreter says what is wrong, and where.

    python examples/12_blocks_that_wait.py

A wait is a loop around an atomic operation that reads with `ACQUIRE`; the block that it waits for writes with
`RELEASE`. What was stored before the release can be loaded after the acquire.
"""

from __future__ import annotations

import cuda.tile as ct
import numpy as np

import tilestack as ts

BLOCKS, TILE = 4, 8
RELAXED, ACQUIRE, RELEASE = ct.MemoryOrder.RELAXED, ct.MemoryOrder.ACQUIRE, ct.MemoryOrder.RELEASE


@ct.kernel
def barrier(x, out, arrived, wanted: ct.Constant[int], TILE: ct.Constant[int]):
    """Every block doubles a tile, all wait for all, then each takes the tile of the next one."""
    block = ct.bid(0)
    ct.store(x, index=(block,), tile=ct.load(x, index=(block,), shape=(TILE,)) * 2)
    ct.atomic_add(arrived, 0, 1, memory_order=RELEASE)
    seen = ct.atomic_add(arrived, 0, 0, memory_order=ACQUIRE)
    while seen < wanted:
        seen = ct.atomic_add(arrived, 0, 0, memory_order=ACQUIRE)
    following = (block + 1) % ct.num_blocks(0)
    ct.store(out, index=(block,), tile=ct.load(x, index=(following,), shape=(TILE,)))


@ct.kernel
def flag(x, out, ready, RELEASES: ct.Constant[bool], TILE: ct.Constant[int]):
    """Block 1 produces a tile, block 0 waits for it."""
    if ct.bid(0) == 1:
        ct.store(x, index=(0,), tile=ct.full((TILE,), 7.0, ct.float32))
        if RELEASES:
            ct.atomic_xchg(ready, 0, 1, memory_order=RELEASE)
        else:
            ct.atomic_xchg(ready, 0, 1, memory_order=RELAXED)
    else:
        seen = ct.atomic_add(ready, 0, 0, memory_order=ACQUIRE)
        while seen == 0:
            seen = ct.atomic_add(ready, 0, 0, memory_order=ACQUIRE)
        ct.store(out, index=(0,), tile=ct.load(x, index=(0,), shape=(TILE,)))


@ct.kernel
def lock(total, taken, UNLOCKS: ct.Constant[bool]):
    """Each block adds its number to a sum, one at a time."""
    old = ct.atomic_cas(taken, 0, 0, 1, memory_order=ACQUIRE)
    while old != 0:
        old = ct.atomic_cas(taken, 0, 0, 1, memory_order=ACQUIRE)
    ct.store(total, index=(0,), tile=ct.load(total, index=(0,), shape=(1,)) + ct.bid(0))
    if UNLOCKS:
        ct.atomic_xchg(taken, 0, 0, memory_order=RELEASE)


@ct.kernel
def stream_k(a, b, out, parts, ready, ACQUIRES: ct.Constant[bool], TILE: ct.Constant[int]):
    """Each block multiplies a part along K. Block 0 waits for the others' sums and adds them to its own (fix-up)."""
    block = ct.bid(0)
    left = ct.load(a, index=(0, block), shape=(TILE, TILE))
    right = ct.load(b, index=(block, 0), shape=(TILE, TILE))
    sums = ct.mma(left, right, ct.zeros((TILE, TILE), ct.float32))
    if block > 0:
        ct.store(parts, index=(block, 0, 0), tile=sums.reshape((1, TILE, TILE)))
        ct.atomic_xchg(ready, block, 1, memory_order=RELEASE)
    else:
        for other in range(1, ct.num_blocks(0)):
            seen = 0
            while seen == 0:
                if ACQUIRES:
                    seen = ct.atomic_add(ready, other, 0, memory_order=ACQUIRE)
                else:
                    seen = ct.atomic_add(ready, other, 0, memory_order=RELAXED)
            sums += ct.load(parts, index=(other, 0, 0), shape=(1, TILE, TILE)).reshape((TILE, TILE))
        ct.store(out, index=(0, 0), tile=sums)


def numbers(count: int = 1) -> np.ndarray:
    """Counters and flags, reset."""
    return np.zeros(count, np.int32)


def said(kernel, blocks: int, *args, **constants) -> None:
    """Runs a kernel that has a bug, and prints what the interpreter says of it."""
    try:
        ts.load(kernel)[blocks](*args, on="cpu", **constants)
    except ts.SanitizerError as error:
        print(f"  wrong: {error}")
    else:
        raise SystemExit("the bug was not found")


def main() -> None:
    x, out = np.arange(BLOCKS * TILE, dtype=np.float32), np.zeros(BLOCKS * TILE, np.float32)
    arrived, wanted = numbers(), np.roll(2 * x, -TILE)
    ts.load(barrier)[BLOCKS](x, out, arrived, on="cpu", wanted=BLOCKS, TILE=TILE)
    print("a barrier, as numpy's:", np.array_equal(out, wanted))
    said(barrier, BLOCKS, x, out, arrived, wanted=BLOCKS, TILE=TILE)  # again, and nobody has reset the counter
    said(barrier, BLOCKS, x, out, numbers(), wanted=BLOCKS + 1, TILE=TILE)  # one block too many is waited for

    ts.load(flag)[2](x, out, numbers(), on="cpu", RELEASES=True, TILE=TILE)
    print("a flag, as numpy's:", np.array_equal(out[:TILE], np.full(TILE, 7)))
    said(flag, 2, x, out, numbers(), RELEASES=False, TILE=TILE)

    total = numbers()
    ts.load(lock)[BLOCKS](total, numbers(), on="cpu", UNLOCKS=True)
    print("a lock, as numpy's:", total[0] == sum(range(BLOCKS)))
    said(lock, BLOCKS, total, numbers(), UNLOCKS=False)

    a, b = np.random.default_rng(0).integers(-4, 5, (2, TILE, BLOCKS * TILE)).astype(np.float32)
    b = np.ascontiguousarray(b.T)
    product, parts = np.zeros((TILE, TILE), np.float32), np.zeros((BLOCKS, TILE, TILE), np.float32)
    ts.load(stream_k)[BLOCKS](a, b, product, parts, numbers(BLOCKS), on="cpu", ACQUIRES=True, TILE=TILE)
    print("stream-K, as numpy's:", np.array_equal(product, a @ b))
    said(stream_k, BLOCKS, a, b, product, parts, numbers(BLOCKS), ACQUIRES=False, TILE=TILE)


if __name__ == "__main__":
    main()
