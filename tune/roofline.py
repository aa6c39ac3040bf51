"""Predicts how long a launch takes, from a GPU's published rates: a roofline of each tile.

A block works through its tiles step by step. The steps of a tile take as long as the slowest of these: the tensor
cores, reading operands from shared memory, filling shared memory from the L2 cache. Where blocks share a multiprocessor
they also share these, but hide each other's waits: the fill before a tile's first step, and the barrier of each step.
All in all a launch takes at least as long as its arrays need to come from and go to device memory.

It leaves out much: caches that miss, clocks that fall, how well the compiler did. Against what was measured on an H200
its times are off by up to half, see docs/tuning.md. So it is used to choose among variants, which its errors share.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from toolchain.contract.expressions import cdiv

from .devices import Device

ITEMSIZE = 2  # bytes: only 16-bit variants are predicted
# Bytes that the L2 cache gives a multiprocessor in a clock: the A100's whitepaper says 5120 for all 108 of them. NVIDIA
# publishes no such number for the others: assumed to be the same there.
L2 = 5120 / 108
SHARED = 128  # bytes that a multiprocessor reads of its shared memory in a clock: 32 banks of 4 (programming guide)
SPECIAL = 16  # special functions, such as exp2, of a multiprocessor a clock (programming guide, 8.0 to 12.0)
# Assumed, in clocks but for the first: from one launch to the next, with the first load; the fill of a pipeline and the
# store of a tile; the barrier of a step; f32 operations of attention for each of its scores.
LAUNCH_US = 2.0
FILL = 1000
STEP = 60
SOFTMAX = 8


def product_us(device: Device, constants: Mapping[str, int], hints: Mapping[str, int], dims: Mapping[str, int],
               arrays: int, *, special: bool = False) -> float:  # fmt: skip
    """Microseconds of a product of (M, K) and (K, N). `arrays`: how many (M, N) arrays it reads and writes. `special`:
    its epilogue has a special function for each element."""
    rows, depth, columns = dims["M"], dims["K"], dims["N"]
    bm, bn, bk = constants["BM"], constants["BN"] + constants.get("BR", 0), constants["BK"]
    blocks, warps = hints.get("occupancy", 1), hints.get("num_worker_warps", 4)
    high, wide = _split(device.readers(warps), bm, bn)
    clocks = max(
        2 * bm * bn / device.flops,
        (wide * bm + high * bn) * ITEMSIZE / SHARED,
        (bm + bn) * ITEMSIZE / L2,
    )
    tiles = cdiv(cdiv(rows, bm) * cdiv(columns, bn), device.sms)  # of the multiprocessor that has the most
    turns = cdiv(tiles, blocks)
    work = tiles * (depth * clocks + (bm * bn / SPECIAL if special else 0))
    waits = turns * (FILL + cdiv(depth, bk) * STEP)
    moved = (rows * depth + depth * columns + arrays * rows * columns) * ITEMSIZE
    return LAUNCH_US + max((work + waits) / device.mhz, moved / device.gbytes / 1e3)


def attention_us(
    device: Device, constants: Mapping[str, int], hints: Mapping[str, int], dims: Mapping[str, int]
) -> float:
    """Microseconds of causal attention of the last T of S positions. In one block the products of a step wait for its
    softmax, and this for the products; other blocks of the multiprocessor work meanwhile."""
    queries, keys, head = constants["BT"], constants["BS"], constants["D"]
    blocks, warps = hints.get("occupancy", 1), hints.get("num_worker_warps", 4)
    scores = queries * keys
    parts = (
        4 * scores * head / device.flops,
        device.readers(warps) * 2 * keys * head * ITEMSIZE / SHARED,
        scores / SPECIAL + SOFTMAX * scores / device.f32,
    )
    loads = 2 * keys * head * ITEMSIZE / L2
    alone = max(parts[0], parts[1]) + parts[2] + STEP
    before = dims["S"] - dims["T"]
    steps = [cdiv(min(before + first + queries, dims["S"]), keys) for first in range(0, dims["T"], queries)]
    grids = dims["B"] * dims["H"]
    resident = min(blocks, cdiv(grids * len(steps), device.sms))
    each = max(*parts, loads, alone / resident)
    clocks = max(each * grids * sum(steps) / device.sms, alone * max(steps))
    waits = FILL * cdiv(grids * len(steps), device.sms * resident)
    moved = grids * head * (2 * dims["T"] + 2 * dims["S"]) * ITEMSIZE
    return LAUNCH_US + max((clocks + waits) / device.mhz, moved / device.gbytes / 1e3)


def _split(readers: int, rows: int, columns: int) -> tuple[int, int]:
    """How `readers` share a tile: the number of parts of its rows and of its columns with the fewest reads."""
    ways = [(high, readers // high) for high in range(1, readers + 1) if readers % high == 0]
    return min(ways, key=lambda way: way[1] * rows + way[0] * columns)


def mean(times: Mapping[str, float]) -> float:
    """The geometric mean."""
    return math.exp(math.fsum(map(math.log, times.values())) / len(times))
