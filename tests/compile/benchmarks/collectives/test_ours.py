"""How our collectives are compared and timed, with two ranks on the interpreter."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from benchmarks.collectives import ours
from toolchain.bundles.bundle import Bundle
from toolchain.runtime.peers import Peers, open_peers


@pytest.fixture
def peers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Peers]:
    monkeypatch.setattr(ours, "launches", lambda _: 2)
    monkeypatch.setattr(ours, "samples", lambda once: [once()])
    with open_peers(["cpu", "cpu"]) as opened:
        yield opened


def test_every_collective_has_a_row_of_the_chosen_entry(bundle: Bundle, peers: Peers) -> None:
    rows = ours.measure(bundle, peers, "py", sizes=[1024])
    assert [row.collective for row in rows] == [
        "all_reduce", "all_reduce", "all_gather", "reduce_scatter", "broadcast"
    ]  # fmt: skip
    assert all(row.us > 0 and not row.error for row in rows)


def test_a_wrong_result_is_not_timed(bundle: Bundle, peers: Peers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ours, "_wanted", lambda _op, _rank, parts: lambda part: np.zeros_like(parts[0])[part])
    (row,) = ours.measure(bundle, peers, "py", sizes=[1024], collectives=["broadcast"])
    assert row.error == "rank 0 has a wrong result" and row.us == 0
