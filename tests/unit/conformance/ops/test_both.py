from __future__ import annotations

import threading

import pytest

from conformance.ops.both import both


def test_the_two_run_beside_one_another() -> None:
    met = threading.Barrier(2, timeout=60)

    def meet(name: str) -> str:
        met.wait()
        return name

    assert both(lambda: meet("exact"), lambda: meet("rounded")) == ("exact", "rounded")


@pytest.mark.parametrize("first", [True, False])
def test_an_error_of_either_is_raised(first: bool) -> None:
    with pytest.raises(ZeroDivisionError):
        both(lambda: 1 // (not first), lambda: 1 // first)
