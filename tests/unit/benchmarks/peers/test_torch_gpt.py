"""The GPT-2 in PyTorch that ours is compared with."""

from __future__ import annotations

import numpy as np
import pytest

pytestmark = pytest.mark.needs("torch")


def test_the_model_in_pytorch_is_the_reference() -> None:
    from benchmarks.peers import torch_gpt
    from benchmarks.peers.pytorch import torch
    from gpt.config import PRESETS
    from gpt.parameters.weights import random_weights
    from gpt.reference import forward as reference

    config = PRESETS["nano"]
    weights = random_weights(config, 3)
    tokens = np.random.default_rng(0).integers(0, config.vocab_size, (2, 30))
    tensors = torch_gpt.state(config, weights, "cpu")
    for fused in (False, True):
        model = torch_gpt.build(config, tensors, torch.float32, fused_gelu=fused)
        logits = model(torch.from_numpy(tokens))
        assert logits.shape == (2, 30, 384)
        wanted = reference.float64(config, weights, tokens)
        assert np.abs(logits[..., : config.vocab_size].numpy() - wanted).max() < 1e-4
