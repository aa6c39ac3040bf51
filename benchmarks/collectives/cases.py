"""The sizes that are measured, and how many launches make a sample: the same for our kernels and the peers.

A sample is a CUDA graph of many launches of one collective on every rank. No rank ends before the others have come, so
the rank that began last has the shortest time, and none of it is waiting for a graph that had not been launched yet.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from conformance.results.stats import median

KILOBYTE, MEGABYTE = 1 << 10, 1 << 20
SIZES = tuple(KILOBYTE << (2 * step) for step in range(9))  # 1 KB .. 64 MB
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "broadcast")
SAMPLES, WARM_UP = 15, 3
LAUNCHES, FEW_LAUNCHES, MANY_BYTES = 200, 20, MEGABYTE
ITEM = 2  # bytes of a bf16 number


@dataclass(frozen=True)
class Row:
    """`nbytes`: of the whole message: what a rank has of a sum or a broadcast, what it gets of an all-gather, what it
    gives to a reduce-scatter. `us`: the median of one launch, with its 95 % interval. `variant`: the kernel or
    algorithm. `error`: why there is no time; empty if there is one."""

    side: str
    collective: str
    nbytes: int
    variant: str
    us: float = 0.0
    low: float = 0.0
    high: float = 0.0
    error: str = ""


@dataclass(frozen=True)
class PassRow:
    """Milliseconds of a pass: the median, with its 95 % interval. `variant`: how the batch is run."""

    case: str
    ranks: int
    variant: str
    ms: float
    low: float
    high: float


def launches(nbytes: int) -> int:
    """How many a sample has."""
    return LAUNCHES if nbytes <= MANY_BYTES else FEW_LAUNCHES


def row(side: str, collective: str, nbytes: int, variant: str, samples_us: Sequence[float]) -> Row:
    """From samples of one launch each."""
    time = median(samples_us)
    return Row(side, collective, nbytes, variant, round(time.value, 3), round(time.low, 3), round(time.high, 3))


def samples(once: Callable[[], float], count: int = SAMPLES) -> list[float]:
    """`once` gives the time of one sample; the first ones are not counted."""
    return [once() for _ in range(WARM_UP + count)][WARM_UP:]
