"""Texts in a changing batch on the real kernels, each family by a source, on the interpreter, and each text alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpt.batches.batching import Batching
from gpt.config import LLAMAS, PRESETS, GPTConfig
from gpt.generate import generate_batch
from gpt.model import GPT
from gpt.parameters.weights import random_weights
from gpt.sampling import Sampling
from toolchain.bundles.bundle import Bundle
from toolchain.runtime import Launcher, open_executor

pytestmark = pytest.mark.needs("toolchain")

GREEDY = Sampling(temperature=0)


@pytest.mark.parametrize(("source", "config"), [("mlir", PRESETS["nano"]), ("py", LLAMAS["nano"])])
def test_a_text_in_a_batch_is_the_text_alone(bundle: Bundle, source: str, config: GPTConfig) -> None:
    """In f32, where no two logits are so near that rounding could choose between them. One text joins later, and one is
    set back."""
    config = replace(config, n_layer=1)
    model = GPT(config, random_weights(config, seed=1), Launcher(bundle, source, open_executor("cpu")), "f32")
    rng = np.random.default_rng(2)
    texts = [rng.integers(0, config.vocab_size, length).tolist() for length in (61, 5, 17)]
    batching = Batching(model, texts=2, pages=2, pieces=2)
    for text in texts[:2]:
        batching.add(text, 6, GREEDY)
    found: dict[int, list[int]] = {0: [], 1: [], 2: []}
    late = False
    while batching.busy:
        for drawn in batching.step():
            found[drawn.text].append(-1 if drawn.token is None else drawn.token)
        if not late:
            batching.add(texts[2], 3, GREEDY)
            late = True
    for number, (text, count) in enumerate(zip(texts, (6, 6, 3), strict=True)):
        steps = generate_batch(model, [text], max_new_tokens=count, sampling=GREEDY)
        assert found[number] == [token for (token,) in steps]
