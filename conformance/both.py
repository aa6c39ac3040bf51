"""The two references of a result, computed beside one another."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")


def both(exact: Callable[[], A], rounded: Callable[[], B]) -> tuple[A, B]:
    """What the two return, the first in a thread of its own: numpy lets threads run beside one another. The longest
    jobs of a matrix end last, when other cores have nothing left to do. Raises what they raise."""
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(exact)
        mine = rounded()
        return other.result(), mine
