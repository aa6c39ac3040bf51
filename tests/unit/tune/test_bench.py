"""The process that launches, here on the interpreter: its checks, its times, and the number of samples."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import kernels_py
from toolchain.bundles.bundle import Compiled, write
from toolchain.contract.entry import EntrySpec
from toolchain.errors import BundleError
from toolchain.runtime import open_executor
from tune import bench, check
from tune.bench import GpuBench, Setup, driver_release, times_us
from tune.worker import Shape, Task

GELU = Shape("gelu", "f32", {"M": 3, "N": 100})


def compiled(spec: EntrySpec) -> Compiled:
    return Compiled(spec, kernels_py.SOURCE.artifact(spec), {})


def last(op: str) -> EntrySpec:
    """The most general f32 entry of an op."""
    return [spec for spec in kernels_py.SOURCE.entries() if (spec.op, spec.dtype) == (op, "f32")][-1]


@pytest.fixture(scope="module")
def setup(tmp_path_factory: pytest.TempPathFactory) -> Setup:
    """gelu's own entry, a variant that is another kernel, and a variant that does not take the shape."""
    folder = tmp_path_factory.mktemp("bench")
    good = replace(last("gelu"), symbol="good")
    wrong = replace(last("softmax"), symbol="wrong", op="gelu", kernel=last("softmax").kernel or "softmax")
    picky = replace(good, symbol="picky", multiples={"N": 64})
    write(folder / "own", [compiled(last("gelu"))], {})
    write(folder / "variants", [compiled(spec) for spec in (good, wrong, picky)], {})
    return Setup(folder / "variants", folder / "own", "cpu")


@pytest.fixture
def made(setup: Setup) -> GpuBench:
    return GpuBench(setup)


@pytest.fixture(params=["float64 reference", "an entry"])
def prepared(request: pytest.FixtureRequest, made: GpuBench, monkeypatch: pytest.MonkeyPatch) -> GpuBench:
    """A prepared bench, once for each kind of expected result."""
    if request.param == "an entry":
        monkeypatch.setattr(check, "SMALL", 0)
    compared_with = last("gelu").symbol if request.param == "an entry" else request.param
    assert made.prepare(GELU) == f"{compared_with}, 1 sets of arguments"
    return made


def test_what_is_right_is_timed(prepared: GpuBench) -> None:
    outcome = prepared.measure(Task("py", "good", None))
    assert (outcome.status, outcome.entry, outcome.lost) == ("ok", "good", False)
    assert outcome.us and outcome.low and outcome.high and outcome.low <= outcome.us <= outcome.high
    assert outcome.samples == bench.FIRST + bench.REST and 0 <= (outcome.share or 0) <= 1


def test_what_is_wrong_is_not(prepared: GpuBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "times_us", lambda *_: pytest.fail("timed"))
    outcome = prepared.measure(Task("py", "wrong", None))
    assert (outcome.status, outcome.us, outcome.entry) == ("wrong", None, "wrong") and outcome.why


def test_what_is_slow_is_dropped(prepared: GpuBench) -> None:
    outcome = prepared.measure(Task("py", "good", 1e-3))
    assert (outcome.status, outcome.samples) == ("dropped", bench.FIRST)


def test_the_sources_own_choice_is_measured_by_name(prepared: GpuBench) -> None:
    outcome = prepared.measure(Task("py", None, None))
    assert (outcome.status, outcome.entry) == ("ok", last("gelu").symbol)


@pytest.mark.parametrize(
    ("symbol", "said"),
    [("picky", "LaunchError: picky: N must be a multiple of 64"), ("none", "BundleError: .* has no entry 'none'")],
)
def test_an_error_is_an_outcome(prepared: GpuBench, symbol: str, said: str) -> None:
    outcome = prepared.measure(Task("py", symbol, None))
    assert (outcome.status, outcome.lost) == ("error", False)
    assert re.match(said, outcome.why)


def test_nothing_is_measured_before_a_shape_is_prepared(made: GpuBench) -> None:
    assert "no shape was prepared" in made.measure(Task("py", "good", None)).why
    assert made.describe().kind == "cpu" and made.describe().target == "cpu"


class Clock:
    """An executor whose every launch takes `us`."""

    def __init__(self, us: float) -> None:
        self.us, self.launches, self.replays = us, 0, 0

    def times_us(self, run: Callable[[], object], repeats: int) -> list[float]:
        times: list[float] = []
        for _ in range(repeats + 1):
            before = self.launches
            run()
            times.append((self.launches - before) * self.us)
        return times[1:]

    def capture(self) -> Any:
        return Capture(self)


class Capture:
    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    def __enter__(self) -> Capture:
        self.before = self.clock.launches
        return self

    def __exit__(self, *_: object) -> None:
        self.size = self.clock.launches - self.before
        self.clock.launches = self.before

    def replay(self) -> None:
        self.clock.replays += 1
        self.clock.launches += self.size


@pytest.mark.parametrize(("us", "sets", "launches"), [(2.0, 64, 512), (2.0, 3, 501), (100.0, 4, 12), (5000.0, 2, 2)])
def test_a_sample_is_many_launches_over_all_sets(us: float, sets: int, launches: int) -> None:
    clock = Clock(us)

    def call() -> None:
        clock.launches += 1

    found = times_us(clock, [call] * sets, None)  # pyright: ignore[reportArgumentType]
    assert found == pytest.approx([us] * (bench.FIRST + bench.REST))
    replays = clock.replays - bench.FIRST - bench.REST - 2 - 2  # one of each is not counted; a round's length
    assert launches * us * replays >= bench.WARM_UP_US > launches * us * (replays - 1)


def test_enough_sets_to_find_nothing_in_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    def sets(size: int, l2: int) -> int:
        monkeypatch.setattr(bench, "_l2_bytes", lambda _: l2)
        return bench._sets(open_executor("cpu"), size)

    assert sets(10 << 20, 50 << 20) == 11, "more than twice the cache"
    assert sets(1 << 30, 50 << 20) == sets(1000, 0) == 1
    assert sets(1000, 50 << 20) == bench.MAX_SETS


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159  Tue Sep\nGCC version:", "580.159"),
        ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build", "580.95.05"),
        ("", "unknown"),
    ],
)
def test_the_release_of_the_driver(tmp_path: Path, text: str, release: str) -> None:
    (tmp_path / "version").write_text(text)
    assert driver_release(tmp_path / "version") == release
    assert driver_release(tmp_path / "none") == "unknown"


def test_no_entry_to_compare_with(made: GpuBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "SMALL", 0)
    monkeypatch.setattr(made, "trusted", SimpleNamespace(root="own", entries=()))
    with pytest.raises(BundleError, match=r"own has no gelu\[f32\] for .*\n  next: .*--baseline"):
        made.prepare(GELU)


def test_a_baseline_is_compared_with_and_not_raced(
    setup: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "SMALL", 0)
    tuned, general = (replace(last("gelu"), symbol=name) for name in ("tuned", "general"))
    write(tmp_path / "ordinary", [compiled(tuned), compiled(general)], {})
    bench = GpuBench(replace(setup, baseline=tmp_path / "ordinary"))
    assert bench.prepare(GELU) == "general, 1 sets of arguments"
    assert bench.measure(Task("py", None, None)).entry == last("gelu").symbol, "not the tuned entry, which comes first"


def test_a_shape_that_is_not_cold_has_one_set(made: GpuBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "_l2_bytes", lambda _: 10_000)
    assert made.prepare(GELU).endswith(", 9 sets of arguments")
    assert made.prepare(replace(GELU, cold=False)).endswith(", 1 sets of arguments")
