"""The Llama of transformers with our weights: beside the reference, with its static cache, and without a mask."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpt.config import LLAMAS
from gpt.parameters.weights import random_weights
from gpt.reference import forward as reference
from toolchain.errors import ToolchainError

pytestmark = pytest.mark.needs("transformers")

CONFIG = LLAMAS["nano"]
WEIGHTS = random_weights(CONFIG, 3)
TOKENS = np.random.default_rng(0).integers(0, CONFIG.vocab_size, (2, 30))


@pytest.fixture(scope="module")
def model() -> Any:
    from benchmarks.peers import torch_llama
    from benchmarks.peers.pytorch import torch

    torch.set_grad_enabled(False)
    return torch_llama.build(CONFIG, torch_llama.state(CONFIG, WEIGHTS, "cpu"), torch.float32)


def close(logits: Any, wanted: np.ndarray[Any, Any]) -> None:
    assert logits.shape == wanted.shape
    assert np.abs(logits.numpy() - wanted).max() < 1e-4


@pytest.mark.parametrize("masked", [True, False])
def test_it_is_the_reference(model: Any, masked: bool) -> None:
    from benchmarks.peers.pytorch import torch

    close(model(torch.from_numpy(TOKENS), masked=masked), reference.float64(CONFIG, WEIGHTS, TOKENS))


@pytest.mark.parametrize("masked", [True, False])
def test_a_step_is_the_next_position_of_a_text(model: Any, masked: bool) -> None:
    """Also when it is repeated, and its keys and values lie where the caller put the cache. Masked, positions behind it
    do not count."""
    from benchmarks.peers.pytorch import torch
    from benchmarks.peers.torch_gpt import Cache

    last = TOKENS.shape[1] - 1
    tokens, positions = torch.from_numpy(TOKENS), last + (9 if masked else 1)
    cache = Cache(
        *([torch.full((2, CONFIG.kv_heads, positions, CONFIG.head_size), 1e4) for _ in range(2)] for _ in "kv")
    )
    model.fill(tokens[:, :last], cache)
    held = model.hold(cache)
    wanted = reference.float64(CONFIG, WEIGHTS, TOKENS)[:, last]
    for _ in range(2):
        model.rewind(held, last)
        cache.k[1][:, :, last] = 1e4
        close(model.step(tokens[:, last], torch.tensor([last]), held, masked=masked), wanted)
        assert cache.k[1][:, :, last].abs().max() < 100


def test_no_mask_is_made_while_a_graph_is_captured(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """transformers makes one there, and copies keys for each head of queries, which is why there are two models."""
    from benchmarks.peers.pytorch import torch

    sdpa, seen = torch.nn.functional.scaled_dot_product_attention, list[tuple[bool, bool]]()

    def watched(*args: Any, **also: Any) -> Any:
        seen.append((also["attn_mask"] is not None, also.get("enable_gqa", False)))
        return sdpa(*args, **also)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", watched)
    monkeypatch.setattr("transformers.masking_utils.is_tracing", lambda *_: True)
    for masked in (False, True):
        seen.clear()
        model(torch.from_numpy(TOKENS), masked=masked)
        assert set(seen) == {(masked, not masked)}


def test_a_broken_installation_is_not_a_missing_one(monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks.peers import torch_llama

    def importing(_: str) -> Any:
        raise ModuleNotFoundError("no", name=missing)

    monkeypatch.setattr(torch_llama.importlib, "import_module", importing)
    monkeypatch.setattr(torch_llama, "transformers", torch_llama.transformers.__wrapped__)
    missing = "transformers"
    with pytest.raises(ToolchainError, match="not run: transformers missing\n  next: pip install"):
        torch_llama.transformers()
    missing = "regex"
    with pytest.raises(ModuleNotFoundError):
        torch_llama.transformers()
