from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gpt.config import GPTConfig
from gpt.generate import generate, sample
from gpt.model import GPT, KVCache
from gpt.reference import eager, float64
from gpt.weights import Weights, random_weights
from toolchain.errors import ConformanceError, UsageError


@pytest.fixture
def tokens(config: GPTConfig) -> np.ndarray:
    return np.random.default_rng(8).integers(0, config.vocab_size, (2, 11)).astype(np.int32)


@pytest.mark.parametrize("dtype", ["f32", "tf32", "f16", "bf16"])
def test_forward_is_the_references_sequence_of_ops(
    config: GPTConfig, weights: Weights, launcher: Any, tokens: np.ndarray, dtype: str
) -> None:
    logits = GPT(config, weights, launcher, dtype).forward(tokens).numpy()
    wanted = eager.forward(config, weights.astype(dtype), tokens, dtype=dtype)
    allowed = {"f32": 1e-5, "tf32": 2e-3, "f16": 5e-3, "bf16": 5e-2}[dtype]  # other shapes, another order of summation
    assert logits.dtype == wanted.dtype
    assert np.abs(logits.astype(np.float64) - wanted.astype(np.float64)).max() < allowed
    kinds = dict(launcher.launches)
    assert kinds["linear"] == kinds["attention"] == dtype
    assert kinds["layernorm"] == ("f32" if dtype == "tf32" else dtype)


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
    config: GPTConfig, weights: Weights, launcher: Any, monkeypatch: pytest.MonkeyPatch,
    rows: int, dtype: str, panel: bool, in_parts: bool,
) -> None:  # fmt: skip
    monkeypatch.setattr("gpt.model.PANEL", config.n_embd if panel else 2 * config.n_embd)
    GPT(config, weights, launcher, dtype).forward(np.zeros((rows, 1), np.int32))
    launched = [op for op, _ in launcher.launches]
    assert ("linear_parts" in launched) == ("residual_layernorm" in launched) == in_parts


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
    assert model._squares(batch * length) == ((parts, batch * length) if parts else (0, 0))
    wanted = eager.forward(config, weights.astype(dtype), tokens, dtype=dtype)
    allowed = {"f32": 1e-5, "tf32": 2e-3, "f16": 5e-3, "bf16": 5e-2}[dtype]
    assert np.abs(logits - wanted.astype(np.float64)).max() < allowed


@pytest.mark.parametrize(
    ("width", "rows", "within"), [(768, 1, True), (768, 9, True), (768, 192, True), (768, 193, False), (384, 9, False)]
)
def test_of_few_rows_the_norm_between_products_is_part_of_them(
    launcher: Any, width: int, rows: int, within: bool
) -> None:
    """Where a block reads its weights for a whole row at once."""
    config = replace(FOLDED, n_layer=1, n_embd=width, n_head=width // 64)
    weights = random_weights(config, seed=5)
    tokens = np.random.default_rng(8).integers(0, config.vocab_size, (1, rows)).astype(np.int32)
    logits = GPT(config, weights, launcher, "f16").forward(tokens).numpy().astype(np.float64)
    launched = [op for op, _ in launcher.launches]
    assert set(launched) & NORMS == (NORMS - {"rms_linear"} if within else set())
    assert launched.count("layernorm") + launched.count("residual_layernorm") == (2 if within else 3)
    wanted = eager.forward(config, weights.astype("f16"), tokens, dtype="f16")
    assert np.abs(logits - wanted.astype(np.float64)).max() < 5e-3


@pytest.mark.parametrize(("width", "batch", "parts"), [(256, 3, 2), (320, 7, 3)])
def test_norms_of_other_widths_are_folded_too_but_where_they_are_asked_to_be_launches(
    launcher: Any, width: int, batch: int, parts: int
) -> None:
    config = replace(FOLDED, n_embd=width, n_head=width // 32)
    weights, length = random_weights(config, seed=5), 256
    tokens = np.random.default_rng(8).integers(0, config.vocab_size, (batch, length)).astype(np.int32)
    apart, model = (GPT(config, weights, launcher, "f16", folded=folded) for folded in (False, None))
    assert apart._squares(batch * length) == (0, 0)
    assert model._squares(batch * length) == (parts, batch * length)
    wanted = apart.forward(tokens).numpy().astype(np.float64)
    assert not {op for op, _ in launcher.launches} & NORMS
    logits = model.forward(tokens).numpy().astype(np.float64)
    assert {op for op, _ in launcher.launches} >= NORMS
    assert np.abs(logits - wanted).max() < 5e-3
    with pytest.raises(UsageError, match="f32 model"):
        GPT(config, weights, launcher, "f32", folded=True)


def test_norms_are_folded_only_where_there_are_tiles_for_it(launcher: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = random_weights(FOLDED, seed=5)
    for target, folded in (("sm_90", True), ("sm_100", False), (None, True)):
        monkeypatch.setattr(launcher.executor, "target", target)
        model = GPT(FOLDED, weights, launcher, "bf16")
        assert model.folded == folded
        gains = model.weights["h.0.ln_1.weight"].numpy().astype(np.float32)
        assert (gains == 1).all() == folded
        assert (model._squares(600) != (0, 0)) == folded


def test_a_folded_model_prefills_and_decodes_as_it_goes_forward(launcher: Any) -> None:
    """The prompt's rows are many, a decoding step's few: one with norms as launches, the other without."""
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
    config: GPTConfig, weights: Weights, launcher: Any, monkeypatch: pytest.MonkeyPatch,
    batch: int, length: int, sizes: list[int],
) -> None:  # fmt: skip
    """Two sequences of 11 tokens are one chunk's worth."""
    monkeypatch.setattr("gpt.model.FEW", 1)  # the parts of a product would be a chunk's alone
    whole = GPT(config, weights, launcher, "f32")
    tokens = np.random.default_rng(8).integers(0, config.vocab_size, (batch, length)).astype(np.int32)
    wanted, memory = whole.forward(tokens).numpy(), whole.new_workspace(batch, length).nbytes
    monkeypatch.setattr("gpt.model.CHUNK", 2 * 11 * 4 * config.n_embd * 4)
    launcher.launches.clear()
    model = GPT(config, weights, launcher, "f32")
    assert model._chunk_sizes(batch, length) == sizes
    assert np.abs(model.forward(tokens).numpy() - wanted).max() < 1e-5
    assert [op for op, _ in launcher.launches].count("attention") == config.n_layer * len(sizes)
    assert [op for op, _ in launcher.launches].count("logits") == 1
    assert (model.new_workspace(batch, length).nbytes < memory) == (len(sizes) > 1)


def test_a_prompt_of_many_rows_fills_its_cache_in_chunks(
    model: GPT, launcher: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = np.random.default_rng(8).integers(0, model.config.vocab_size, (5, 12)).astype(np.int32)
    wanted = model.forward(tokens).numpy()
    monkeypatch.setattr("gpt.model.CHUNK", 10 * 4 * model.config.n_embd * 4)
    cache = KVCache(model, batch=5)
    model.prefill(tokens[:, :5], cache)
    launcher.launches.clear()
    model._workspaces.clear()
    found = model.prefill(tokens[:, 5:11], cache).numpy()
    assert [op for op, _ in launcher.launches].count("kv_append") == 3 * model.config.n_layer
    assert np.abs(found - wanted[:, 10]).max() < 1e-5
    assert np.abs(model.decode(tokens[:, 11], cache).numpy() - wanted[:, 11]).max() < 1e-5


def test_logits_are_the_callers(model: GPT, tokens: np.ndarray) -> None:
    first = model.forward(tokens)
    kept = first.numpy()
    model.forward(tokens[:, ::-1].copy())
    assert np.array_equal(first.numpy(), kept)


def test_prefill_and_decode_continue_as_forward_does(model: GPT, tokens: np.ndarray) -> None:
    wanted = model.forward(tokens).numpy()
    cache = KVCache(model, batch=2, positions=11)
    found = {4: model.prefill(tokens[:, :5], cache).numpy(), 7: model.prefill(tokens[:, 5:8], cache).numpy()}
    for t in range(8, 11):
        found[t] = model.decode(tokens[:, t], cache).numpy()
    assert cache.lengths.tolist() == [11, 11]
    for t, logits in found.items():
        assert np.abs(logits - wanted[:, t]).max() < 1e-4, t


@pytest.mark.parametrize(
    ("batch", "positions", "heads", "spans"),
    [
        (1, 1000, 1, 8), (3, 1000, 1, 2), (3, 513, 1, 2), (3, 200, 1, 2), (5, 100, 1, 1),
        (6, 1000, 1, None), (6, 1000, 2, 2),
    ],
)  # fmt: skip
def test_a_cache_is_split_where_multiprocessors_would_idle(
    config: GPTConfig, weights: Weights, launcher: Any, batch: int, positions: int, heads: int, spans: int | None
) -> None:
    """Two multiprocessors want six blocks; of heads of 32 the cache is never taken whole."""
    long = replace(config, n_ctx=1000, n_head=heads)
    wide = np.zeros((1000, config.n_embd), np.float32)
    model = GPT(long, Weights({**dict(weights.items()), "wpe.weight": wide}), launcher, "f32")
    model.executor.sms = 2
    cache = KVCache(model, batch, positions)
    found = model.new_spans(cache)
    assert (found and found[0].shape[2]) == spans
    model.decode(np.zeros(batch, np.int32), cache)
    launched = [op for op, _ in launcher.launches]
    assert ("decode_attention_whole" in launched) == (spans is None) == ("merge_attention" not in launched)


def test_sequences_of_different_lengths_decode_together(
    config: GPTConfig, weights: Weights, model: GPT, tokens: np.ndarray
) -> None:
    cache = KVCache(model, batch=2)
    model.prefill(tokens[:, :6], cache)
    cache.lengths[1] = 3  # forget the second sequence's last three
    logits = model.decode(tokens[:, 6], cache).numpy()
    short = np.array([[*tokens[1, :3], tokens[1, 6]]])
    assert np.abs(logits[0] - float64.forward(config, weights, tokens[:1, :7])[0, -1]).max() < 1e-4
    assert np.abs(logits[1] - float64.forward(config, weights, short)[0, -1]).max() < 1e-4
    with pytest.raises(UsageError, match="equally long"):
        model.prefill(tokens[:, :2], cache)


def test_bad_tokens_are_refused_before_any_launch(model: GPT, launcher: Any) -> None:
    n_ctx, vocab = model.config.n_ctx, model.config.vocab_size
    cache = KVCache(model, batch=1, positions=4)
    for use, match in (
        (lambda: model.forward(np.zeros((1, n_ctx + 1), np.int32)), f"{n_ctx + 1} positions"),
        (lambda: model.forward(np.full((1, 2), vocab)), f"token {vocab} is outside"),
        (lambda: model.forward(np.full((1, 2), -1)), "token -1 is outside"),
        (lambda: model.forward(np.zeros((1, 2))), "float64"),
        (lambda: model.forward(np.zeros(3, np.int32)), r"\(B, T\)"),
        (lambda: model.forward(np.zeros((1, 0), np.int32)), "at least one"),
        (lambda: model.prefill(np.zeros((1, 5), np.int32), cache), r"0 \+ 5 positions"),
        (lambda: model.decode(np.zeros(2, np.int32), cache), "2 sequences for a cache of 1"),
        (lambda: KVCache(model, batch=1, positions=n_ctx + 1), "at most"),
        (lambda: generate(model, [1] * n_ctx, max_new_tokens=1), "context"),
        (lambda: generate(model, [], max_new_tokens=1), "empty"),
        (lambda: generate(model, np.ones((2, 3), int), max_new_tokens=1), r"\[2, 3\] tokens are several"),
        (lambda: generate(model, [1], max_new_tokens=1, seed=-1), "seed is -1"),
        (lambda: generate(model, [1], max_new_tokens=1, temperature=-1), "temperature"),
        (lambda: generate(model, [1], max_new_tokens=1, top_k=0), "top_k"),
        (lambda: generate(model, [1], max_new_tokens=1, top_p=0.0), "top_p"),
        (lambda: generate(model, [1], max_new_tokens=-1), "negative"),
    ):
        with pytest.raises(UsageError, match=match):
            use()
    assert launcher.launches == []


def test_greedy_generation_takes_the_likeliest_each_time(config: GPTConfig, weights: Weights, model: GPT) -> None:
    sequence = [7, 100, 256]
    found = list(generate(model, sequence, max_new_tokens=6, temperature=0))
    for token in found:
        assert token == float64.forward(config, weights, np.array([sequence]))[0, -1].argmax()
        sequence.append(token)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_nothing_is_generated_from_logits_that_are_not_finite(
    config: GPTConfig, weights: Weights, launcher: Any, temperature: float
) -> None:
    large = {name: np.full_like(w, 6e4) if name.startswith("ln_f") else w for name, w in weights.items()}
    model = GPT(config, Weights(large), launcher, "f16")  # its logits overflow
    with np.errstate(all="ignore"), pytest.raises(ConformanceError, match="NaN or infinity"):
        list(generate(model, [1, 2], max_new_tokens=3, temperature=temperature))


def test_generation_stops(model: GPT) -> None:
    found = list(generate(model, [7, 100], max_new_tokens=8, seed=3))
    assert len(found) == 8
    index = next(i for i in range(2, 8) if found[i] not in found[:i])
    assert list(generate(model, [7, 100], max_new_tokens=8, seed=3, stop={found[index]})) == found[:index]
    assert list(generate(model, [7, 100], max_new_tokens=8, seed=3, stop={found[0]})) == []
    assert list(generate(model, [7], max_new_tokens=0)) == []


def test_sampling_is_seeded(model: GPT) -> None:
    def run(seed: int) -> list[int]:
        return list(generate(model, [1, 2, 3], max_new_tokens=8, temperature=1.0, seed=seed))

    assert run(1) == run(1) != run(2)


def test_top_k_and_top_p_cut_the_tail() -> None:
    logits = np.log(np.array([0.1, 0.5, 0.15, 0.25]))
    rng = np.random.default_rng(0)

    def drawn(temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None) -> set[int]:
        return {sample(logits, rng, temperature, top_k, top_p) for _ in range(300)}

    assert drawn() == {0, 1, 2, 3}
    assert drawn(top_k=2) == {1, 3}
    assert drawn(top_p=0.5) == {1}
    assert drawn(top_p=0.51) == {1, 3}
    assert drawn(top_p=0.76) == {1, 2, 3}
    assert drawn(top_k=3, top_p=0.8) == {1, 3}
    assert drawn(temperature=0.01) == {1}


def test_sampling_follows_the_probabilities() -> None:
    rng = np.random.default_rng(0)
    counts = np.bincount([sample(np.log([0.2, 0.8]), rng, 1.0, None, None) for _ in range(2000)])
    assert abs(counts[1] / 2000 - 0.8) < 0.04
    flatter = np.bincount([sample(np.log([0.2, 0.8]), rng, 2.0, None, None) for _ in range(2000)])
    assert abs(flatter[1] / 2000 - 2 / 3) < 0.04
