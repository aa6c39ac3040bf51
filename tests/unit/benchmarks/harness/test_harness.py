from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from benchmarks.cases.cases import OpCase
from benchmarks.cases.check import Verdict
from benchmarks.cases.roofline import Ceilings
from benchmarks.harness.harness import (
    WARM_UP_ROUNDS,
    Contender,
    Kind,
    Maker,
    MeasurementPlan,
    floor,
    rows,
    run_contenders,
    shorten,
)
from benchmarks.harness.status import MACHINE
from toolchain.errors import ConformanceError, DeviceError

CASE = OpCase("gelu", {"M": 8, "N": 16})
RIGHT = Verdict(0.001, 0.01, 0.1, 0.2)
RATES = Ceilings(1e9, 1e12)


@dataclass
class Bench:
    """Contenders that record when they are sampled. `lost`: the sample from which on the device is lost."""

    said: list[str] = field(default_factory=list)
    order: list[str] = field(default_factory=list)
    lost: bool = False

    def plan(self, samples: int = 30, limit_s: float = 5) -> MeasurementPlan:
        return MeasurementPlan(samples, limit_s, lambda: not self.lost, self.said.append)

    def maker(
        self, name: str, kind: Kind = "graph", us: float = 100, calls: int = 1,
        check: Callable[[], Verdict] = lambda: RIGHT, sample: Callable[[], object] = lambda: None,
    ) -> Maker:  # fmt: skip
        drift = self._drift()

        def time_us() -> float:
            self.order.append(name)
            sample()
            return us * next(drift)

        return Maker(name, kind, lambda: Contender(check, time_us, calls))

    @staticmethod
    def _drift() -> Iterator[float]:
        """A factor that slows down whole rounds, and so all contenders alike."""
        step = 0
        while True:
            yield 1 + (step % 7) / 10
            step += 1


@pytest.fixture
def bench() -> Bench:
    return Bench()


def fail(error: BaseException) -> Any:
    raise error


def test_samples_are_taken_in_turns(bench: Bench) -> None:
    outcomes = run_contenders([bench.maker(n, "ours" if n == "a" else "graph") for n in "abc"], bench.plan(samples=30))
    rounds = [bench.order[first : first + 3] for first in range(0, len(bench.order), 3)]
    assert len(rounds) == WARM_UP_ROUNDS + 30
    assert all(sorted(round_) == ["a", "b", "c"] for round_ in rounds)
    assert [len(o.samples) for o in outcomes] == [30, 30, 30]


def test_each_contender_runs_behind_each_other_one(bench: Bench) -> None:
    """Under a power limit the clock depends on what ran before: in a fixed order the same one would always pay."""
    run_contenders([bench.maker(n, "ours" if n == "a" else "graph") for n in "abc"], bench.plan(samples=30))
    behind = Counter(pair for pair in itertools.pairwise(bench.order) if len(set(pair)) == 2)
    assert len(behind) == 6
    assert min(behind.values()) > len(bench.order) / 6 / 2


def test_rows_have_times_of_one_call_and_a_paired_ratio(bench: Bench) -> None:
    makers = [
        bench.maker("mlir", "ours", us=100, calls=2), bench.maker("py", "ours", us=50),
        bench.maker("slow", us=300, calls=4), bench.maker("fast", us=60),
    ]  # fmt: skip
    made = rows(CASE, run_contenders(makers, bench.plan()), floor(CASE, RATES), gpu_before={"power_w": "100"})
    assert [(r.source, r.peer, r.best) for r in made] == [
        ("mlir", "slow", False), ("mlir", "fast", True), ("py", "slow", False), ("py", "fast", True),
    ]  # fmt: skip
    first = made[0]
    assert first.ours_ms == pytest.approx(0.05 * 1.3)  # of 2 calls in 100 us, slowed down by 1 .. 1.6
    assert first.peer_ms == pytest.approx(0.075 * 1.3)
    assert (first.ratio, first.ratio_low, first.ratio_high) == pytest.approx((1.5, 1.5, 1.5))
    assert (first.calls, first.samples, first.gpu_before) == (2, 30, {"power_w": "100"})
    assert first.floor_ms == pytest.approx(8 * 16 * 4 / 1e9 * 1e3)
    assert first.ours_error == first.peer_error == RIGHT.to_json()


def test_a_copy_is_sampled_in_turns_and_is_no_peer(bench: Bench) -> None:
    makers = [bench.maker("mlir", "ours"), bench.maker("peer", us=300), bench.maker("copy", "copy", us=50, calls=2)]
    (made,) = rows(CASE, run_contenders(makers, bench.plan(samples=4)), floor(CASE, RATES))
    assert Counter(bench.order) == dict.fromkeys(["mlir", "peer", "copy"], WARM_UP_ROUNDS + 4)
    assert (made.peer, made.best, made.ratio) == ("peer", True, pytest.approx(3))
    assert made.ours_ms is not None
    assert made.copy_ms == pytest.approx(made.ours_ms / 4)
    broken = bench.maker("copy", "copy", check=lambda: fail(ConformanceError("off")))
    (made,) = rows(CASE, run_contenders([*makers[:2], broken], bench.plan()), floor(CASE, RATES))
    assert (made.status, made.copy_ms, made.copy_detail) == ("ok", None, "off")


def test_another_bundles_kernels_stand_beside_ours_of_their_source(bench: Bench) -> None:
    makers = [
        bench.maker("mlir", "ours"), bench.maker("py", "ours"), bench.maker("peer", us=150),
        replace(bench.maker("old mlir", "against", us=90), beside="mlir"),
        replace(bench.maker("old py", "against", us=110), beside="py"),
    ]  # fmt: skip
    made = rows(CASE, run_contenders(makers, bench.plan()), floor(CASE, RATES))
    assert [(r.source, r.peer, r.peer_kind, r.best) for r in made] == [
        ("mlir", "peer", "graph", True), ("mlir", "old mlir", "against", False),
        ("py", "peer", "graph", True), ("py", "old py", "against", False),
    ]  # fmt: skip
    assert [r.ratio for r in made] == pytest.approx([1.5, 0.9, 1.5, 1.1])
    assert [(len(r.ours_rounds_us), len(r.peer_rounds_us)) for r in made] == [(0, 0), (30, 30), (0, 0), (30, 30)]
    old = made[3]  # its rounds pair: a whole round is slower, so their quotient is the same in each
    assert [b / a for a, b in zip(old.ours_rounds_us, old.peer_rounds_us, strict=True)] == pytest.approx([1.1] * 30)
    alone = rows(CASE, run_contenders([*makers[:2], makers[3]], bench.plan()), floor(CASE, RATES))
    assert [(r.source, r.peer, r.ours_ms is None) for r in alone] == [("mlir", "old mlir", False), ("py", "", False)]


def test_a_wrong_output_is_not_timed(bench: Bench) -> None:
    def wrong() -> Verdict:
        raise ConformanceError("3 of 9 elements are not finite")

    made = rows(CASE, run_contenders(
        [bench.maker("mlir", "ours", check=wrong), bench.maker("py", "ours"), bench.maker("peer")], bench.plan()
    ), floor(CASE, RATES))  # fmt: skip
    mlir, py = made
    assert "mlir" not in bench.order
    assert (mlir.status, mlir.ratio, mlir.ours_ms) == ("wrong", None, None)
    assert mlir.detail == "mlir: 3 of 9 elements are not finite"
    assert mlir.peer_ms is not None
    assert (py.status, py.ratio) == ("ok", pytest.approx(1))


def test_a_wrong_peer_has_no_ratio_and_is_never_the_best(bench: Bench) -> None:
    wrong = bench.maker("peer", us=1, check=lambda: fail(ConformanceError("off")))
    (made,) = rows(CASE, run_contenders([bench.maker("mlir", "ours"), wrong], bench.plan()), floor(CASE, RATES))
    assert (made.status, made.ratio, made.peer_ms, made.best) == ("wrong", None, None, False)
    assert made.ours_ms is not None


@pytest.mark.parametrize("error", [RuntimeError("no kernel"), ImportError("cupy"), MemoryError()])
def test_a_peer_that_fails_is_a_row(bench: Bench, error: Exception) -> None:
    broken = Maker("peer", "graph", lambda: fail(error))
    made = rows(
        CASE,
        run_contenders([bench.maker("mlir", "ours"), broken, bench.maker("other")], bench.plan()),
        floor(CASE, RATES),
    )
    assert [(r.status, r.ratio is None) for r in made] == [("error", True), ("ok", False)]
    assert type(error).__name__ in made[0].detail
    assert made[0].ours_ms is not None


def test_a_traceback_is_kept_in_the_row_and_shown(bench: Bench) -> None:
    """It says where a peer failed: while it was built, or later while it was timed."""
    said: list[str] = []
    plan = replace(bench.plan(), say=said.append)
    count = iter(range(100))

    def build() -> Contender:
        return fail(RuntimeError("no kernel"))

    def later() -> bool:
        return next(count) < 10 or fail(RuntimeError("too late"))

    makers = [bench.maker("mlir", "ours"), Maker("peer", "graph", build), bench.maker("other", sample=later)]
    made = rows(CASE, run_contenders(makers, plan), floor(CASE, RATES))
    for row, function, text in zip(made, ("in build", "in later"), ("no kernel", "too late"), strict=True):
        assert function in row.traceback
        assert row.traceback.rstrip().endswith(f"RuntimeError: {text}")
        assert any(function in line and text in line for line in said)
    assert all("test_harness.py" in row.traceback for row in made)


def test_one_that_fails_while_it_is_timed_leaves_the_others(bench: Bench) -> None:
    count = iter(range(100))
    fragile = bench.maker("peer", sample=lambda: next(count) < 10 or fail(RuntimeError("later")))
    outcomes = run_contenders([bench.maker("mlir", "ours"), fragile], bench.plan())
    assert [len(o.samples) for o in outcomes] == [30, 0]
    assert outcomes[1].status == "error"


def test_a_peer_has_a_time_limit_ours_has_none(bench: Bench) -> None:
    def slow() -> Contender:
        time.sleep(0.2)
        return bench.maker("x").build()

    plan = bench.plan(limit_s=0.05)
    ours, peer = run_contenders([Maker("mlir", "ours", slow), Maker("peer", "compile", slow)], plan)
    assert ours.status == "ok"
    assert (peer.status, peer.detail) == ("error", "TimedOut: took longer than 0.05 s")


def test_a_lost_device_ends_the_case(bench: Bench) -> None:
    def lose() -> Verdict:
        bench.lost = True
        raise RuntimeError("illegal memory access")

    outcomes = run_contenders(
        [bench.maker("mlir", "ours"), bench.maker("peer", check=lose), bench.maker("other")], bench.plan()
    )
    assert bench.order == []
    assert [o.status for o in outcomes] == ["error"] * 3
    assert outcomes[1].detail == "RuntimeError: illegal memory access"
    assert outcomes[0].detail == outcomes[2].detail == "DeviceError: the device was lost in peer"


def test_an_error_of_the_machine_is_told_from_any_other(bench: Bench) -> None:
    error = DeviceError("launch failed")
    details: list[str] = []
    for error.code in (214, 700):

        def fail() -> Verdict:
            raise error

        (outcome,) = run_contenders([bench.maker("mlir", "ours", check=fail)], bench.plan())
        details.append(outcome.detail)
    assert details[0].startswith(f"{MACHINE}memory of the GPU is damaged")
    assert details[1] == "DeviceError: launch failed"


def test_ours_alone_is_a_row(bench: Bench) -> None:
    (made,) = rows(CASE, run_contenders([bench.maker("mlir", "ours")], bench.plan()), floor(CASE, RATES))
    assert (made.status, made.peer, made.ratio, made.best) == ("ok", "", None, False)


def test_long_errors_lose_their_middle() -> None:
    assert shorten(" short ") == "short"
    long = shorten("a" * 1000 + "b" * 1000)
    assert len(long) < 700
    assert (long[0], long[-1]) == ("a", "b")
