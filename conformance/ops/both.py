"""The two references of a result, computed beside one another."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")


def both(exact: Callable[[], A], rounded: Callable[[], B]) -> tuple[A, B]:
    """Calls both functions at once, `exact` in a second thread, and returns both results. numpy releases the lock of
    the interpreter, so they use two cores: the longest jobs end when other cores are idle. Raises what they raise."""
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(exact)
        mine = rounded()
        return other.result(), mine
