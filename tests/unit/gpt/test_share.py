"""The parts of the weights: together they are the whole ones, and they are views."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpt.config import LLAMAS, PRESETS, GPTConfig, shared
from gpt.share import NOTHING, Share
from gpt.weights import random_weights
from toolchain.errors import UsageError

CONFIG = GPTConfig(n_layer=1, n_head=6, n_embd=192, n_ctx=8, vocab_size=11)


@pytest.mark.parametrize("ranks", [2, 3, 4])  # four share six heads unevenly
def test_the_parts_make_the_whole(ranks: int) -> None:
    whole = random_weights(CONFIG, seed=1)

    nowhere: Any = (None, None)

    shares = [Share(rank, ranks, CONFIG.vocab_size, {}, *nowhere).weights(CONFIG, whole) for rank in range(ranks)]
    qkv, width = "h.0.attn.c_attn.weight", CONFIG.n_embd
    x = np.random.default_rng(2).standard_normal((3, width))
    by_head = np.concatenate([(x @ part[qkv]).reshape(3, 3, -1, 32) for part in shares], axis=2)
    assert np.allclose(by_head, (x @ whole[qkv]).reshape(3, 3, 6, 32))
    fc, projection = "h.0.mlp.c_fc", "h.0.mlp.c_proj.weight"
    hidden = np.concatenate([x @ part[f"{fc}.weight"] + part[f"{fc}.bias"] for part in shares], axis=1)
    assert np.allclose(hidden, x @ whole[f"{fc}.weight"] + whole[f"{fc}.bias"])
    ends = np.cumsum([part[projection].shape[0] for part in shares])
    sums = sum(h @ part[projection] for h, part in zip(np.split(hidden, ends[:-1], axis=1), shares, strict=True))
    assert np.allclose(sums, hidden @ whole[projection])
    assert all(np.shares_memory(part[f"{fc}.weight"], whole[f"{fc}.weight"]) for part in shares)
    assert all(part["wte.weight"] is whole["wte.weight"] for part in shares)
    assert not shares[0][NOTHING].any()


def test_heads_that_do_not_divide() -> None:
    """GPT-2 XL on two GPUs."""
    parts = [PRESETS["xl"].part(rank, 2) for rank in range(2)]
    assert [part.n_head for part in parts] == [12, 13]
    assert [part.kv_heads for part in parts] == [12, 13]
    assert {(part.ffn, part.head_size, part.n_embd) for part in parts} == {(3200, 64, 1600)}


@pytest.mark.parametrize(("count", "ranks", "step"), [(25, 2, 1), (6400, 7, 64), (67, 2, 64), (3, 3, 1)])
def test_shares_cover_everything_once(count: int, ranks: int, step: int) -> None:
    found = [shared(count, rank, ranks, step) for rank in range(ranks)]
    assert [number for share in found for number in share] == list(range(count))
    sizes = [len(share) for share in found]
    assert max(sizes) - min(sizes) <= step


def test_fewer_heads_than_ranks() -> None:
    with pytest.raises(UsageError, match="6 heads cannot be shared by 7 GPUs") as said:
        CONFIG.part(0, 7)
    assert said.value.hint == "at most 6 can share this model"


def test_a_llama_is_not_shared() -> None:
    with pytest.raises(UsageError, match="a llama runs on one GPU"):
        LLAMAS["nano"].part(0, 2)
