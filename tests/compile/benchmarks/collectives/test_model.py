"""How a model on several GPUs is checked and timed, with two ranks on the interpreter."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pytest

from benchmarks.collectives import model as module
from benchmarks.collectives.cases import PassRow
from benchmarks.collectives.model import HALVES, ONE, ROWS, WHOLE, check, measure, table
from gpt.config import GPTConfig
from gpt.parallel import ParallelForward
from tests.compile.gpt.processes import run_in_processes
from toolchain.bundles.bundle import Bundle
from toolchain.errors import ConformanceError
from toolchain.runtime import Launcher
from toolchain.runtime.peers import Peers, Place, open_peers, open_rank

CONFIG = GPTConfig(n_layer=2, n_head=2, n_embd=64, n_ctx=16, vocab_size=67)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples and steps."""
    monkeypatch.setattr(module, "samples", lambda once: [once()])
    monkeypatch.setattr(module, "STEPS", 2)
    monkeypatch.setattr(module, "LEFT", 2)


@pytest.fixture
def peers(few: None) -> Iterator[Peers]:
    del few
    with open_peers(["cpu", "cpu"], sanitize=False) as opened:
        yield opened


def test_every_pass_has_a_row_of_each_variant(bundle: Bundle, peers: Peers) -> None:
    launchers = [Launcher(bundle, "py", executor) for executor in peers.executors]
    told: list[PassRow] = []
    rows = measure(CONFIG, launchers, peers, forward=[(3, 5), (1, 5)], decode=[2], say=told.append)
    assert rows == told
    assert [(row.case, row.ranks, row.variant) for row in rows] == [
        ("forward (3, 5)", 1, ONE), ("forward (1, 5)", 1, ONE), ("decode 2", 1, ONE),
        ("forward (3, 5)", 2, HALVES), ("forward (3, 5)", 2, WHOLE), ("forward (1, 5)", 2, WHOLE),
        ("decode 2", 2, WHOLE),
    ]  # fmt: skip
    assert all(0 < row.low <= row.ms <= row.high for row in rows)


@pytest.mark.usefixtures("few")
def test_of_processes_the_shortest_time_counts(bundle: Bundle) -> None:
    """Each has its own GPU alone, and of a pass on all GPUs the same time."""

    def run(place: Place) -> str:
        with open_rank(place, "cpu", sanitize=False) as peers:
            launchers = [Launcher(bundle, "py", peers.executors[0])]
            rows = measure(CONFIG, launchers, peers, forward=[(2, 5)], decode=[2], say=str)
        return json.dumps([(row.case, row.ranks, row.variant, row.ms) for row in rows])

    first, second = (json.loads(said) for said in run_in_processes(2, run))
    assert [row[:3] for row in first] == [
        ["forward (2, 5)", 1, ONE], ["decode 2", 1, ONE], ["forward (2, 5)", 2, HALVES], ["forward (2, 5)", 2, WHOLE],
        ["decode 2", 2, WHOLE],
    ]  # fmt: skip
    assert first[2:] == second[2:] and first[:2] != second[:2]


def test_wrong_logits_of_the_second_half_are_found(
    bundle: Bundle, peers: Peers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tokens are those of the first one."""
    launchers = [Launcher(bundle, "py", executor) for executor in peers.executors]
    check(CONFIG, launchers, peers, [(3, 5)])
    right = ParallelForward.set_tokens

    def wrong(passes: ParallelForward, tokens: np.ndarray[tuple[int, int], np.dtype[np.int32]]) -> None:
        right(passes, np.concatenate([tokens[:2], tokens[:1]]))

    monkeypatch.setattr(ParallelForward, "set_tokens", wrong)
    with pytest.raises(ConformanceError, match="forward bf16"):
        check(CONFIG, launchers, peers, [(3, 5)])


def test_a_second_run_with_other_bits_is_an_error(
    bundle: Bundle, peers: Peers, monkeypatch: pytest.MonkeyPatch
) -> None:
    launchers = [Launcher(bundle, "py", executor) for executor in peers.executors]
    runs: list[int] = []
    right = ParallelForward.run

    def changing(passes: ParallelForward) -> None:
        runs.append(1)
        if len(runs) == 2:
            passes.set_tokens(np.ones((1, 5), np.int32))
        right(passes)

    monkeypatch.setattr(ParallelForward, "run", changing)
    with pytest.raises(ConformanceError, match=r"forward \(1, 5\), whole batch: a second run gives other bits"):
        check(CONFIG, launchers, peers, [(1, 5)])


def test_the_table_has_a_row_for_each_case() -> None:
    rows = [
        PassRow("forward (8, 1024)", 1, ONE, 48.1234, 48.0, 48.2),
        PassRow("forward (8, 1024)", 2, HALVES, 33.5, 33.4, 33.6),
        PassRow("forward (8, 1024)", 2, ROWS, 29.9, 29.9, 30.1),
        PassRow("decode 1", 2, WHOLE, 2.2, 2.2, 2.2),
    ]
    assert table(rows).splitlines()[2:] == [
        "| forward (8, 1024) | 48.12 ± 0.1 | 29.9 ± 0.1 | 33.5 ± 0.1 | - | - |",
        "| decode 1 | - | - | - | 2.2 ± 0 | - |",
    ]
