from __future__ import annotations

from typing import Any

import numpy as np
import pytest

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
