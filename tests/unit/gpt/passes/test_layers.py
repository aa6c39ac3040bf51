"""The launches of the layers; each op is computed by the reference."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gpt.config import GPTConfig
from gpt.model import GPT, KVCache
from gpt.parameters.weights import Weights, random_weights
from gpt.reference import forward as reference
from toolchain.errors import UsageError

from ..conftest import POLICY


@pytest.mark.parametrize(
    ("rows", "dtype", "panel", "in_parts"),
    [
        (1, "bf16", True, True), (1, "f16", False, False), (1, "f32", True, False), (2, "bf16", True, True),
        (192, "bf16", True, True), (193, "f16", True, False),
        (64, "bf16", False, True), (65, "bf16", False, False), (64, "f32", True, True), (65, "f32", True, False),
        (65, "tf32", True, False),
    ],
)  # fmt: skip
def test_the_longest_product_is_made_in_parts_of_few_rows(
    config: GPTConfig, weights: Weights, launcher: Any,
    rows: int, dtype: str, panel: bool, in_parts: bool,
) -> None:  # fmt: skip
    policy = replace(POLICY, panel_width=config.n_embd if panel else 2 * config.n_embd)
    GPT(config, weights, launcher, dtype, policy=policy).forward(np.zeros((rows, 1), np.int32))
    launched = [op for op, _ in launcher.launches]
    assert ("linear_split_k" in launched) == ("residual_layernorm" in launched) == in_parts


FOLDED = GPTConfig(n_layer=2, n_head=3, n_embd=192, n_ctx=300, vocab_size=257)
NORMS = {"embedding_centred", "rms_linear", "rms_linear_gelu", "linear_residual_squares"}  # where they are no launches


@pytest.mark.parametrize(
    ("dtype", "width", "batch", "parts"),
    [("bf16", 192, 3, 1), ("f16", 192, 6, 1), ("bf16", 384, 3, 3), ("bf16", 384, 7, 2), ("bf16", 192, 2, 0),
     ("f32", 192, 3, 0), ("tf32", 192, 3, 0), ("bf16", 160, 3, 0)],
)  # fmt: skip
def test_norms_of_many_rows_are_part_of_the_products(
    launcher: Any, dtype: str, width: int, batch: int, parts: int
) -> None:
    config = replace(FOLDED, n_embd=width, n_head=width // 32)
    weights, length = random_weights(config, seed=5), 256 if parts or batch == 2 else 200
    tokens = np.random.default_rng(8).integers(0, config.vocab_size, (batch, length)).astype(np.int32)
    model = GPT(config, weights, launcher, dtype)
    logits = model.forward(tokens).numpy().astype(np.float64)
    launched = {op for op, _ in launcher.launches}
    assert launched & NORMS == (NORMS if parts else set())
    assert ("embedding" in launched) == (not parts)
    assert model.new_workspace(batch, length).squares.shape == ((parts, batch * length) if parts else (0, 0))
    wanted = reference.eager(config, weights.astype(dtype), tokens, dtype=dtype)
    allowed = {"f32": 1e-5, "tf32": 2e-3, "f16": 5e-3, "bf16": 5e-2}[dtype]
    assert np.abs(logits - wanted.astype(np.float64)).max() < allowed


@pytest.mark.parametrize(
    ("width", "rows", "within"), [(768, 1, True), (768, 9, True), (768, 192, True), (768, 193, False), (384, 9, False)]
)
def test_of_few_rows_the_norm_between_products_is_part_of_them(
    launcher: Any, width: int, rows: int, within: bool
) -> None:
    """This is so if a block reads its weights for a whole row at once."""
    config = replace(FOLDED, n_layer=1, n_embd=width, n_head=width // 64)
    weights = random_weights(config, seed=5)
    tokens = np.random.default_rng(8).integers(0, config.vocab_size, (1, rows)).astype(np.int32)
    logits = GPT(config, weights, launcher, "f16").forward(tokens).numpy().astype(np.float64)
    launched = [op for op, _ in launcher.launches]
    assert set(launched) & NORMS == (NORMS - {"rms_linear"} if within else set())
    assert launched.count("layernorm") + launched.count("residual_layernorm") == (2 if within else 3)
    wanted = reference.eager(config, weights.astype("f16"), tokens, dtype="f16")
    assert np.abs(logits - wanted.astype(np.float64)).max() < 5e-3


@pytest.mark.parametrize(("width", "batch", "parts"), [(256, 3, 2), (320, 7, 3)])
def test_norms_of_other_widths_are_folded_too_but_where_they_are_asked_to_be_launches(
    launcher: Any, width: int, batch: int, parts: int
) -> None:
    config = replace(FOLDED, n_embd=width, n_head=width // 32)
    weights, length = random_weights(config, seed=5), 256
    tokens = np.random.default_rng(8).integers(0, config.vocab_size, (batch, length)).astype(np.int32)
    apart, model = (GPT(config, weights, launcher, "f16", folded=folded) for folded in (False, None))
    assert apart.new_workspace(batch, length).squares.shape == (0, 0)
    assert model.new_workspace(batch, length).squares.shape == (parts, batch * length)
    wanted = apart.forward(tokens).numpy().astype(np.float64)
    assert not {op for op, _ in launcher.launches} & NORMS
    logits = model.forward(tokens).numpy().astype(np.float64)
    assert {op for op, _ in launcher.launches} >= NORMS
    assert np.abs(logits - wanted).max() < 5e-3
    with pytest.raises(UsageError, match="f32 model"):
        GPT(config, weights, launcher, "f32", folded=True)


def test_norms_are_folded_only_where_the_policy_of_the_launchers_target_has_it(launcher: Any) -> None:
    weights = random_weights(FOLDED, seed=5)
    launcher.bundle.policy = lambda target: POLICY if target == "sm_90" else replace(POLICY, fold=None)
    for target, folded in (("sm_90", True), ("sm_100", False)):
        launcher.target = target
        model = GPT(FOLDED, weights, launcher, "bf16")
        assert model.folded == folded
        gains = model.weights["h.0.ln_1.weight"].numpy().astype(np.float32)
        assert (gains == 1).all() == folded
        assert (model.new_workspace(3, 200).squares.nbytes > 0) == folded


def test_a_source_that_borrows_the_folded_kernels_runs_its_own_norms(launcher: Any) -> None:
    launcher.borrows_from, launcher.source = "other", "own"
    for lender, folded in (("other", False), ("own", True)):
        launcher.source_of = lambda op, dtype, lender=lender: lender  # noqa: ARG005
        assert GPT(FOLDED, random_weights(FOLDED, seed=5), launcher, "bf16").folded == folded


def test_a_folded_model_prefills_and_decodes_as_it_goes_forward(launcher: Any) -> None:
    """A prompt has many rows and uses folded norms; a decoding step has few and launches its norms."""
    model = GPT(FOLDED, random_weights(FOLDED, seed=5), launcher, "f16")
    tokens = np.random.default_rng(8).integers(0, FOLDED.vocab_size, (2, 299)).astype(np.int32)
    wanted = model.forward(tokens).numpy().astype(np.float32)
    cache = KVCache(model, batch=2)
    assert np.abs(model.prefill(tokens[:, :-1], cache).numpy() - wanted[:, -2]).max() < 5e-3
    assert np.abs(model.decode(tokens[:, -1], cache).numpy() - wanted[:, -1]).max() < 5e-3
    assert {"rms_linear", "layernorm", "embedding", "embedding_centred"} <= {op for op, _ in launcher.launches}


@pytest.mark.parametrize(
    ("batch", "length", "sizes"),
    [
        (7, 11, [3, 2, 2]),
        (6, 11, [2, 2, 2]),
        (5, 11, [5]),
        (1, 66, [1]),
        (2, 66, [2]),
        (3, 66, [1, 1, 1]),
        (70, 1, [70]),
    ],
)
def test_the_sequences_of_many_rows_go_in_chunks(
    config: GPTConfig, weights: Weights, launcher: Any,
    batch: int, length: int, sizes: list[int],
) -> None:  # fmt: skip
    """Two sequences of 11 tokens are one chunk's worth."""
    policy = replace(POLICY, split_k_rows=1)  # the parts of a product would be a chunk's alone
    whole = GPT(config, weights, launcher, "f32", policy=policy)
    tokens = np.random.default_rng(8).integers(0, config.vocab_size, (batch, length)).astype(np.int32)
    wanted, memory = whole.forward(tokens).numpy(), whole.new_workspace(batch, length).nbytes
    policy = replace(policy, chunk_bytes=2 * 11 * 4 * config.n_embd * 4)
    launcher.launches.clear()
    model = GPT(config, weights, launcher, "f32", policy=policy)
    assert np.abs(model.forward(tokens).numpy() - wanted).max() < 1e-5
    assert [op for op, _ in launcher.launches].count("attention") == config.n_layer * len(sizes)
    assert [op for op, _ in launcher.launches].count("logits") == 1
    assert (model.new_workspace(batch, length).nbytes < memory) == (len(sizes) > 1)
