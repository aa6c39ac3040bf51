"""Work on many tensors at once: numpy lets other threads run while it computes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from toolchain import knobs

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_threads(work: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """The result for each item, in their order. The first exception, in this order, is raised."""
    with ThreadPoolExecutor(knobs.jobs(), thread_name_prefix="weights") as pool:
        return list(pool.map(work, items))
