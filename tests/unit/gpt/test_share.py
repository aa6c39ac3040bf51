"""The parts of the weights: together they are the whole ones, and they are views."""

from __future__ import annotations

import numpy as np
import pytest

from gpt.config import GPTConfig
from gpt.share import NOTHING, Share
from gpt.weights import random_weights
from toolchain.errors import UsageError

CONFIG = GPTConfig(n_layer=1, n_head=6, n_embd=192, n_ctx=8, vocab_size=11)


@pytest.mark.parametrize("ranks", [2, 3])
def test_the_parts_make_the_whole(ranks: int) -> None:
    whole = random_weights(CONFIG, seed=1)

    def nowhere(_turn: int, _rows: int) -> None: ...

    shares = [Share(rank, ranks, {}, nowhere).weights(CONFIG, whole) for rank in range(ranks)]  # type: ignore[arg-type]
    qkv, width = "h.0.attn.c_attn.weight", CONFIG.n_embd
    x = np.random.default_rng(2).standard_normal((3, width))
    by_head = np.concatenate([(x @ part[qkv]).reshape(3, 3, -1, 32) for part in shares], axis=2)
    assert np.allclose(by_head, (x @ whole[qkv]).reshape(3, 3, 6, 32))
    fc, projection = "h.0.mlp.c_fc", "h.0.mlp.c_proj.weight"
    hidden = np.concatenate([x @ part[f"{fc}.weight"] + part[f"{fc}.bias"] for part in shares], axis=1)
    assert np.allclose(hidden, x @ whole[f"{fc}.weight"] + whole[f"{fc}.bias"])
    sums = sum(h @ part[projection] for h, part in zip(np.split(hidden, ranks, axis=1), shares, strict=True))
    assert np.allclose(sums, hidden @ whole[projection])
    assert all(np.shares_memory(part[f"{fc}.weight"], whole[f"{fc}.weight"]) for part in shares)
    assert all(part["wte.weight"] is whole["wte.weight"] for part in shares)
    assert not shares[0][NOTHING].any()


@pytest.mark.parametrize(("ranks", "hint"), [(4, "this model takes 2, 3, 6"), (5, "this model takes 2, 3, 6")])
def test_heads_have_to_divide(ranks: int, hint: str) -> None:
    with pytest.raises(UsageError, match=f"6 heads cannot be shared by {ranks} GPUs") as said:
        CONFIG.part(ranks)
    assert said.value.hint == hint
