"""The entries that a model launches, found without a device."""

from __future__ import annotations

from dataclasses import replace

from gpt.config import PRESETS
from gpt.launches import DryExecutor, continue_texts, launched
from gpt.parameters.weights import random_weights
from toolchain.contract.sources import load_source, packages

NANO = PRESETS["nano"]


def test_a_token_that_ends_texts_leaves_out_no_step() -> None:
    """Without a device all logits are zero, so the likeliest token is 0."""
    specs = [spec for spec in load_source(packages()["mlir"]).entries() if not spec.targets]
    weights, use = random_weights(NANO, 1), continue_texts([3, 5], 8)
    usual, ending = (
        {spec.symbol for spec in launched(specs, config, weights, "f32", DryExecutor(None, 1), use)}
        for config in (NANO, replace(NANO, end_tokens=(0,)))
    )
    assert usual == ending
    assert any("decode_attention" in symbol for symbol in usual)
