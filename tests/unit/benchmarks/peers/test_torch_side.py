from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.cases.roofline import Ceilings
from toolchain.errors import ConformanceError

pytestmark = pytest.mark.needs("torch")


@pytest.fixture
def side(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A TorchSide that compares three rows of 30 elements at a time."""
    from benchmarks.peers import torch_side

    monkeypatch.setattr(torch_side, "PIECE", 100)
    return torch_side.TorchSide("cpu", flush_bytes=16)


def pair() -> tuple[Any, Any]:
    """A bf16 result, transposed in memory, and its f32 reference, both (20, 30)."""
    from benchmarks.peers.pytorch import torch

    rng = np.random.default_rng(0)
    exact = torch.from_numpy(rng.standard_normal((20, 30)).astype(np.float32))
    return (exact + 1e-2).to(torch.bfloat16).t().contiguous().t(), exact


def test_errors_in_pieces_are_those_of_the_whole(side: Any) -> None:
    result, reference = pair()
    found = side.errors(result, reference)
    got, exact = result.double().numpy(), reference.double().numpy()
    assert found.frobenius == pytest.approx(np.linalg.norm(got - exact) / np.linalg.norm(exact))
    assert found.worst == np.abs(got - exact).max()
    assert found.largest == np.abs(exact).max()
    assert (found.not_finite, found.elements) == (0, 600)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_counted_and_spoils_no_sum(side: Any, bad: float) -> None:
    result, reference = pair()
    result[3, 4] = result[19, 29] = bad
    found = side.errors(result, reference)
    assert found.not_finite == 2
    assert np.isfinite([found.frobenius, found.worst]).all()


def test_another_shape_is_wrong(side: Any) -> None:
    result, reference = pair()
    with pytest.raises(ConformanceError, match=r"shape \(20, 29\), wants \(20, 30\)"):
        side.errors(result[:, :29], reference)


class FakeEvent:
    """An event of a stream that always takes 2 ms."""

    def __init__(self, enable_timing: bool) -> None:
        assert enable_timing
        self.recorded = 0

    def record(self) -> None:
        self.recorded += 1

    def synchronize(self) -> None:
        assert self.recorded == 1

    def elapsed_time(self, end: Any) -> float:
        assert self.recorded == end.recorded == 1
        return 2.0


def test_a_graph_keeps_the_last_output_of_each_set_and_can_poison_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU, but without one: the calls run once, at the time when a GPU would record them."""
    from contextlib import nullcontext
    from types import SimpleNamespace

    from benchmarks.peers.pytorch import torch
    from benchmarks.peers.torch_side import TorchSide

    side = TorchSide("cpu", flush_bytes=16)
    monkeypatch.setattr(side, "on_gpu", True)
    for name, fake in {
        "synchronize": lambda: None, "CUDAGraph": lambda: SimpleNamespace(replay=lambda: None), "Event": FakeEvent,
        "graph": lambda _, capture_error_mode: nullcontext(capture_error_mode),
    }.items():  # fmt: skip
        monkeypatch.setattr(torch.cuda, name, fake)
    made: list[int] = []

    def call(index: int) -> Any:
        made.append(index)
        return torch.full((3,), float(index))

    prepared: list[int] = []
    calls = [lambda i=i: call(i) for i in range(6)]
    replay = side.capture(calls, 2, lambda: prepared.append(len(made)))
    assert made == [0, 1] * 3 + list(range(6))
    assert len(prepared) == 6
    assert [output[0].item() for output in replay.outputs()] == [4, 5]
    replay.poison()
    assert all(output.isnan().all() for output in replay.outputs())
    assert side.time_us(replay.run) == 2000


def test_what_is_not_a_graph_is_poisoned_where_its_last_outputs_were() -> None:
    """Those of another library too."""

    from benchmarks.peers.pytorch import torch
    from benchmarks.peers.torch_side import TorchSide

    held = [torch.zeros(3), torch.zeros(3, dtype=torch.int32), np.zeros(3, np.float32)]
    replay = TorchSide("cpu", flush_bytes=16).each([lambda x=x: x for x in held] * 2, len(held))
    replay.poison()
    assert [output is None for output in replay.outputs()] == [True] * 3  # their memory is free for the next
    replay.run()
    floats, integers, foreign = replay.outputs()
    assert floats.isnan().all()
    assert (integers == -(2**31)).all()
    assert np.isnan(foreign).all()


def test_the_rates_are_those_of_the_fastest_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks.peers import torch_side

    monkeypatch.setattr(torch_side, "WARM_UP_S", 0)
    monkeypatch.setattr(torch_side, "REST_S", 0)
    side = torch_side.TorchSide("cpu", flush_bytes=16)
    times = iter([7.0, 2.0, 9.0, 8.0, 4.0, 16.0])

    def time_us(run: Any) -> float:
        run()
        return next(times)

    monkeypatch.setattr(side, "time_us", time_us)
    rates = torch_side.measure_ceilings(side, copy_bytes=1000, size=10, repeats=3)
    assert rates == Ceilings(bytes_per_s=2000 / 4e-6, flops_per_s=2000 / 2e-6)
