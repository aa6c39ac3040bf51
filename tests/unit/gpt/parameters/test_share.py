"""The parts of the weights: together they are the whole ones, and they are views."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from gpt.config import LLAMAS, PRESETS, GPTConfig, llama, shared
from gpt.families.llama_shared import device_weights
from gpt.parameters.fold import fold
from gpt.parameters.share import NOTHING, WHOLE, Share
from gpt.parameters.weights import random_weights
from toolchain.errors import UsageError
from toolchain.runtime.cpu import CpuExecutor

CONFIG = GPTConfig(n_layer=1, n_head=6, n_embd=192, n_ctx=8, vocab_size=11)


@pytest.mark.parametrize("ranks", [2, 3, 4])  # four share six heads unevenly
def test_the_parts_make_the_whole(ranks: int) -> None:
    whole = random_weights(CONFIG, seed=1)

    nowhere: Any = (None, None)

    shares = [
        Share(rank, ranks, CONFIG.vocab_size, {}, *nowhere).weights(CONFIG, whole, "f32") for rank in range(ranks)
    ]
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


@pytest.mark.parametrize(("heads", "folded"), [(6, False), (5, True)])
def test_a_rank_may_have_the_whole_projection_and_has_its_rows_of_it(heads: int, *, folded: bool) -> None:
    config = GPTConfig(n_layer=1, n_head=heads, n_embd=64 * heads, n_ctx=8, vocab_size=11)
    whole, nowhere = random_weights(config, seed=1), cast("Any", (None, None))
    cpu = CpuExecutor()
    for rank in range(2):
        share = Share(rank, 2, config.vocab_size, {}, *nowhere)
        wanted = share.weights(config, whole, "bf16", folded=folded)
        made = share.weights(config, whole, "bf16", folded=folded, whole=True)
        assert len(made) == len([*made]) == len(wanted)
        held = {name: cpu.from_numpy(tensor) for name, tensor in made.items()}
        rows = share.own_rows(config.part(rank, 2), held)
        projection = "h.0.attn.c_proj"
        assert [*rows] == [f"{projection}.weight"]
        assert set(wanted) == {*rows, *made} - {f"{projection}.{WHOLE}"}
        assert rows[f"{projection}.weight"].numpy().tobytes() == wanted[f"{projection}.weight"].tobytes()
        tensor = (fold(whole) if folded else whole)[f"{projection}.weight"].astype("bfloat16")
        assert held[f"{projection}.{WHOLE}"].numpy().tobytes() == tensor.tobytes()


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


@pytest.mark.parametrize(("groups", "tied"), [(3, True), (2, False)])
def test_the_parts_of_a_llama_make_the_whole(groups: int, tied: bool) -> None:
    """Three heads of keys on two ranks are one and two of them, each with its two heads of queries."""
    config = llama(1, 2 * groups, 64, 8, 11, kv_heads=groups, head_size=32, ffn=160, tied=tied)
    whole = random_weights(config, seed=1)
    nowhere: Any = (None, None)
    made = [Share(rank, 2, config.vocab_size, {}, *nowhere) for rank in range(2)]
    parts = [share.weights(config, whole, "bf16") for share in made]
    for name, dimension in (
        ("self_attn.q_proj", 0), ("self_attn.k_proj", 0), ("self_attn.v_proj", 0), ("self_attn.o_proj", 1),
        ("mlp.gate_proj", 0), ("mlp.up_proj", 0), ("mlp.down_proj", 1),
    ):  # fmt: skip
        own = [part[f"layers.0.{name}.weight"] for part in parts]
        joined = np.concatenate(own, axis=dimension)
        assert np.array_equal(joined, whole[f"layers.0.{name}.weight"].astype(joined.dtype)), name
        wanted = (64, 96) if "mlp" in name else (groups // 2 * 32, (groups - groups // 2) * 32)
        heads = 2 if name in ("self_attn.q_proj", "self_attn.o_proj") else 1
        assert tuple(x.shape[dimension] for x in own) == tuple(heads * size for size in wanted), name
    assert NOTHING not in parts[0] and len(parts[0]) == len(whole)
    for share, part in zip(made, parts, strict=True):
        on_device = dict(device_weights(config, part, share))
        size = config.part(share.rank, 2)
        joined = (size.n_head + 2 * size.kv_heads) * 32
        assert on_device["layers.0.self_attn.qkv"].shape == (64, joined)
        assert on_device["embed_tokens.weight"].shape == (16, 64)
        assert tied or np.array_equal(on_device["lm_head.weight"][: len(share.tokens)], part["lm_head.weight"])
        assert tied or on_device["lm_head.weight"].shape == (8, 64)


def test_a_weight_that_is_out_of_range() -> None:
    whole = {**random_weights(CONFIG, seed=1), "ln_f.weight": np.full(192, 1e6, np.float32)}
    nowhere: Any = (None, None)
    parts = Share(0, 2, CONFIG.vocab_size, {}, *nowhere).weights(CONFIG, whole, "f16")
    with pytest.raises(UsageError, match=r"ln_f\.weight has a weight outside of f16's range"):
        parts["ln_f.weight"]


def test_sizes_of_a_part_of_smollm2() -> None:
    parts = [LLAMAS["smollm2"].part(rank, 2) for rank in range(2)]
    assert [(part.kv_heads, part.n_head, part.ffn) for part in parts] == [(1, 3, 768), (2, 6, 768)]
    assert {(part.n_embd, part.head_size, part.group, part.n_layer) for part in parts} == {(576, 64, 3, 30)}


def test_a_llama_that_cannot_be_shared() -> None:
    with pytest.raises(UsageError, match="3 heads of keys cannot be shared by 4 GPUs") as said:
        LLAMAS["smollm2"].part(0, 4)
    assert said.value.hint == "at most 3 can share this model"
    narrow = llama(1, 3, 96, 8, 99, ffn=100)
    with pytest.raises(UsageError, match="2 times 64 columns of a hidden layer cannot be shared by 3 GPUs"):
        narrow.part(0, 3)
