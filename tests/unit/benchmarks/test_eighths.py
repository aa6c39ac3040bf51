"""Passes in 8 bits beside bf16: which ways there are, that each is checked, and what a wrong one is told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.eighths import MODELS, Way, check, measure, ways
from benchmarks.harness.passes import Pass
from conformance.ops.compare import benchmark_bound
from tests.unit.gpt.conftest import ReferenceLauncher
from toolchain.errors import ConformanceError
from toolchain.runtime import CpuExecutor


def test_a_llama_has_only_ways_that_round_no_rows() -> None:
    names = [way.name for way in ways(MODELS["gpt2"])]
    assert names == [
        "bf16", "f8", "f8, logits", "i8", "i8, logits", "f8-weights", "i8-weights", "cache f8", "f8-weights, cache f8",
        "i8-weights, cache f8", "f8, cache f8, logits",
    ]  # fmt: skip
    assert [way.name for way in ways(MODELS["llama-nano"])] == ["bf16", *names[5:-1]]


@pytest.mark.parametrize("name", ["nano", "llama-nano"])
def test_each_way_of_each_pass_is_measured(name: str) -> None:
    launcher: Any = ReferenceLauncher()
    config, every = MODELS[name], {way.name for way in ways(MODELS[name])}
    found = measure(config, launcher, 2, forwards=((2, 40),), batches=(1,))
    assert list(found) == ["forward (2, 40)", "decode 1"]
    named = [{row.name.split(": ", 1)[1] for row in rows} for rows in found.values()]
    assert named == [{each for each in every if without not in each} for without in ("cache", "i8, logits")]
    assert all(row.samples == 2 and row.median > 0 for rows in found.values() for row in rows)
    ran = {op for op, _ in launcher.launches}
    assert {"linear_residual_weight_f8", "linear_residual_weight_i8", "grouped_decode_attention_f8"} <= ran


def test_what_rounds_more_may_be_further_away() -> None:
    gpt2, llama = MODELS["gpt2"], MODELS["llama-smollm2"]
    once = benchmark_bound("eighths", "bf16")
    bounds = {way.name: way.bound(gpt2) / once for way in ways(gpt2)}
    assert bounds["f8"] == bounds["i8"] == pytest.approx(np.sqrt(12 * 4 * 2))  # weights and rows of four products
    assert bounds["f8, logits"] == pytest.approx(np.sqrt(12 * 4 * 2 + 2))
    assert bounds["f8-weights"] == pytest.approx(np.sqrt(12 * 4))
    assert bounds["f8-weights, cache f8"] == pytest.approx(np.sqrt(12 * (4 + 2)))
    assert bounds["cache f8"] == pytest.approx(np.sqrt(12 * 2))
    assert Way("i8-weights").bound(llama) / once == pytest.approx(np.sqrt(30 * 5))
    assert all(way.bound(config) < 0.5 for config in (gpt2, llama) for way in ways(config)), "a scale left out"


def test_wrong_logits_are_not_timed() -> None:
    def made(scale: float) -> Pass:
        return Pass(lambda: None, lambda: None, lambda: scale * np.ones((2, 8), np.float32), lambda: 1.0)

    bounds = {"bf16": 0.01, "i8": 0.1}
    check("decode 1", {"bf16": made(1.0), "i8": made(1.05)}, bounds, CpuExecutor())
    for wrong in (1.2, np.nan):
        with pytest.raises(ConformanceError, match=r"decode 1: logits of i8 differ .* above 0\.1"):
            check("decode 1", {"bf16": made(1.0), "i8": made(wrong)}, bounds, CpuExecutor())
