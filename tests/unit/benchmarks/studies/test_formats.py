"""Roundings to 8-bit floats in numpy, and a model with them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.studies import formats
from benchmarks.studies.formats import FORMATS, MODEL, PLACES, Setting
from gpt.config import PRESETS
from gpt.parameters.weights import Weights, random_weights
from gpt.reference import forward as reference

CONFIG = PRESETS["nano"]
TOKENS = np.arange(20, dtype=np.int32).reshape(2, 10)


@pytest.fixture(scope="module")
def weights() -> Weights:
    return random_weights(CONFIG, 3)


def logits(weights: Weights, setting: Setting) -> np.ndarray:
    return formats.Measured(CONFIG, formats.model(CONFIG, weights, setting)).logits(TOKENS, steps=False)


def test_the_largest_of_a_row_stays_and_others_are_rounded_by_its_scale() -> None:
    rows = np.array([[1.0, -3.0, 0.7], [0.0, 0.0, 0.0]], np.float32)
    for dtype, steps in ((FORMATS["e4m3"], 16), (FORMATS["e5m2"], 8)):
        made = formats.rounded(rows, dtype)
        assert made[0, 1] == -3 and not made[1].any()
        assert 0 < np.abs(made - rows).max() <= 1 / steps
    assert formats.rounded(rows, FORMATS["e4m3"], 2.0**-8)[0].tolist() == [1.0, -1.75, 0.6875]  # 448 / 256 at most


def test_without_a_format_it_is_the_reference(weights: Weights) -> None:
    exact = reference.eager(CONFIG, weights, TOKENS, dtype="f32")
    assert np.allclose(logits(weights, Setting({})), exact, atol=1e-5)


@pytest.mark.parametrize("one_scale", [(), MODEL, PLACES])
@pytest.mark.parametrize("place", PLACES)
def test_each_place_counts_and_e5m2_is_further_off(weights: Weights, place: str, one_scale: tuple[str, ...]) -> None:
    exact = logits(weights, Setting({}))
    fine, coarse = (np.abs(logits(weights, Setting({place: n}, one_scale)) - exact).mean() for n in FORMATS)
    assert 0 < fine < coarse < np.abs(exact).mean()


def test_no_number_is_beyond_the_bound_of_its_place(weights: Weights, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[float, float]] = []
    whole = formats.rounded

    def watched(rows: np.ndarray, dtype: np.dtype, scale: float | None = None) -> np.ndarray:
        if scale is not None:
            seen.append((float(np.abs(rows).max()), scale * 448))
        return whole(rows, dtype, scale)

    monkeypatch.setattr(formats, "rounded", watched)
    logits(weights, Setting(dict.fromkeys(PLACES, "e4m3"), PLACES))
    assert len(seen) == 4 * CONFIG.n_layer
    assert all(0 < largest <= bound for largest, bound in seen)


def test_it_says_what_each_setting_costs(tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                         monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    (tmp_path / "text").write_text("In the beginning God created the heaven and the earth. " * 9)
    monkeypatch.setattr(formats, "settings", lambda: {"all e5m2": Setting(dict.fromkeys(PLACES, "e5m2"))})
    formats.main([str(tmp_path / "text"), "--pieces", "2"])
    assert capsys.readouterr().out.startswith("all e5m2: perplexity ")
