"""Ranks on the CPU: which launches run together. tests/compile/kernels/test_collectives.py runs some."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from toolchain.errors import LaunchError
from toolchain.runtime.peers.cpu import Collective, Turns


def launch(meeting: str) -> Collective:
    found: Any = SimpleNamespace(symbol="an_entry", meeting=meeting)
    return Collective(found)


def test_launches_that_are_not_of_one_collective_are_told_and_forgotten() -> None:
    """Their symbols say nothing of that."""
    turns = Turns(2, sanitize=False)
    turns.add(1, [launch("a step of L=2")])
    with pytest.raises(LaunchError, match="rank 1 waits in an_entry for rank 0, which has not launched it"):
        turns.check_done(1)
    with pytest.raises(LaunchError, match="not launch the same collective: rank 0 a step of L=1; rank 1 a step of L=2"):
        turns.add(0, [launch("a step of L=1")])
    for rank in range(2):
        turns.check_done(rank)
