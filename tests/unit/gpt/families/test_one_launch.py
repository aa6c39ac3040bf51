"""A step as one launch is the step of many, for the models and caches that it is for."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from gpt.config import PRESETS, GPTConfig, vocabulary_part
from gpt.families.one_launch import (
    IN_CACHE_F8,
    OP,
    OP_F8,
    OP_F8_LOGITS,
    OP_RANKS,
    OPS_CACHE_F8,
    OPS_TEXTS,
    OneLaunch,
    dims,
)
from gpt.graphs import Decode
from gpt.model import GPT, KVCache
from gpt.parameters.weights import quantized, random_weights
from toolchain.contract.entries import entries_of
from toolchain.errors import ConformanceError

from ..conftest import POLICY, ReferenceLauncher

CONFIG = GPTConfig(vocab_size=300, n_ctx=32, n_embd=768, n_head=12, n_layer=2)
OPS = (OP, OP_F8, OP_F8_LOGITS, *OPS_TEXTS, *OPS_CACHE_F8)
NEAR = 0.02  # of the largest: two ways of rounding to bf16, through two layers
NEAR_CACHE_F8 = 0.1  # numbers near 448 are 32 apart in e4m3
NEAR_F8 = 0.06  # logits in 8 bits beside those in 16: each weight may be 2^-4 of itself away
TOKENS = np.random.default_rng(1).integers(0, 300, (2, 9)).astype(np.int32)


class Launcher(ReferenceLauncher):
    """One for sm_90 that has the op, or not."""

    def __init__(self, *, has: bool = True) -> None:
        super().__init__()
        self.target, self.executor.sms, self._has = "sm_90", POLICY.sms, has

    def has(self, op: str, dtype: str, dims: Mapping[str, int]) -> bool:
        return self._has and op in OPS and dtype == "bf16" and dims["P"] <= 32


@functools.cache
def _weights(kind: str) -> tuple[GPTConfig, Any]:
    weights = random_weights(CONFIG, seed=2)
    kind, *logits = kind.split(", ")
    return quantized(CONFIG, weights, kind, logits=bool(logits)) if kind else (CONFIG, weights)


def _model(launcher: Any, kind: str = "", **more: Any) -> GPT:
    return GPT(*_weights(kind), launcher, "bf16", **more)


@pytest.mark.parametrize("cached", ["", "f8"])
@pytest.mark.parametrize(("kind", "op"), [("", OP), ("f8", OP_F8), ("f8-weights", OP_F8), ("f8, logits", OP_F8_LOGITS)])
def test_one_launch_gives_the_logits_and_the_cache_of_many(kind: str, op: str, cached: str) -> None:
    one, many = (_model(Launcher(has=has), kind, cache=cached) for has in (True, False))
    op += IN_CACHE_F8 if cached else ""
    logits, caches, likeliest = list[Any](), list[KVCache](), list[int]()
    for model in (one, many):
        cache = KVCache(model, 1, 12)
        model.prefill(TOKENS[:1, :5], cache)
        steps = Decode(model, cache)
        steps.reset(TOKENS[:1, 5])
        steps.run()
        steps.feed(TOKENS[:1, 6])
        steps.run()
        likeliest += steps.likeliest().tolist()
        logits.append(steps.logits.numpy().astype(np.float64))
        assert logits[-1][0].argmax() == likeliest[-1]
        caches.append(cache)
    launched = [{name for name, _ in model.launcher.launches} for model in (one, many)]  # pyright: ignore[reportAttributeAccessIssue]
    assert op in launched[0] and op not in launched[1]
    choosing = {"argmax_parts", "next_token"}
    assert choosing <= launched[1] and not choosing & launched[0], "a step chooses the likeliest token"
    largest = np.abs(logits[1]).max()
    near = NEAR_F8 if OP_F8_LOGITS in op else NEAR
    assert np.abs(logits[0] - logits[1]).max() <= near * largest
    filled = [_filled(cache, 7) for cache in caches]
    assert np.abs(filled[0] - filled[1]).max() <= (NEAR_CACHE_F8 if cached else NEAR) * np.abs(filled[1]).max()
    assert caches[0].lengths.tolist() == [7]


def _filled(cache: KVCache, positions: int) -> Any:
    """Keys and values of the first positions, with their scales."""
    numbers = cache.memory.numpy()[:, :, :, :positions].astype(np.float64)
    if cache.scales is None:
        return numbers
    return numbers * cache.scales.numpy()[..., :positions].swapaxes(3, 4)[..., None]


@pytest.mark.parametrize(("texts", "kind", "which"), [(8, "", 0), (3, "f8-weights", 1), (8, "f8, logits", 2)])
def test_one_launch_gives_several_texts_what_many_give_them(texts: int, kind: str, which: int) -> None:
    """They are of different lengths."""
    tokens = np.random.default_rng(2).integers(0, 300, (texts, 2)).astype(np.int32)
    logits, filled, likeliest = list[Any](), list[Any](), list[Any]()
    for model in (_model(Launcher(), kind), _model(Launcher(has=False), kind)):
        cache = KVCache(model, texts, 12)
        model.prefill(np.repeat(TOKENS[:, :5], 4, axis=0)[:texts], cache)
        cache.lengths -= np.arange(texts) % 4
        steps = Decode(model, cache)
        for column in tokens.T:
            steps.reset(column)
            steps.run()
        assert (OPS_TEXTS[which] in {name for name, _ in model.launcher.launches}) is model.takes_one_launch(cache)  # pyright: ignore[reportAttributeAccessIssue]
        likeliest.append(steps.likeliest())
        logits.append(steps.logits.numpy().astype(np.float64))
        memory = cache.memory.numpy().astype(np.float64)
        filled.append(np.concatenate([memory[:, :, i, :length] for i, length in enumerate(cache.lengths)], 2))
    assert (likeliest[0] == logits[0].argmax(1)).all()
    for (one, many), near in ((logits, NEAR_F8 if which == 2 else NEAR), (filled, NEAR)):
        assert np.abs(one - many).max() <= near * np.abs(many).max()


def _recorded(monkeypatch: pytest.MonkeyPatch) -> list[OneLaunch]:
    """Those that models make from here on."""
    made = list[OneLaunch]()

    def make(*args: Any) -> OneLaunch:
        made.append(OneLaunch(*args))
        return made[-1]

    monkeypatch.setattr("gpt.model.OneLaunch", make)
    return made


def test_steps_share_a_copy_of_the_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    made, given = _recorded(monkeypatch), list[Any]()
    model = _model(Launcher())
    for _ in range(2):
        cache = KVCache(model, 1, 8)
        model.prefill(TOKENS[:1, :3], cache)
        given.append(model.decode(TOKENS[:1, 3], cache).numpy())
    assert np.array_equal(*given) and len(made) == 1


@pytest.mark.parametrize("kind", ["", "f8-weights"])
def test_steps_of_one_text_and_of_several_share_what_lies_alike(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = _recorded(monkeypatch)
    model = _model(Launcher(), kind)
    for texts in (1, 8, 2):
        Decode(model, KVCache(model, texts, 12))
    one, eight = (vars(each)["_arrays"] for each in made)
    assert {name for name in one if one[name] is not eight[name]} == {"out", "launches", "sums", "errors"}


@pytest.mark.parametrize(
    ("options", "texts", "wanted"),
    [
        ({}, 1, True), ({}, 8, True), ({}, 2, True), ({}, 9, False),
        ({"folded": False}, 1, False), ({"folded": False}, 8, False),
        ({"cache": "f8"}, 1, True), ({"cache": "f8"}, 8, False), ({"cache": "f8", "folded": False}, 1, False),
    ],
)  # fmt: skip
def test_it_is_for_one_to_eight_texts_of_a_folded_model(options: Any, texts: int, wanted: bool) -> None:
    model = _model(Launcher(), **options)
    cache = KVCache(model, texts, 8)
    assert model.takes_one_launch(cache) is wanted
    if texts > 1:  # also not for one of several, whose memory has gaps
        assert not model.takes_one_launch(cache.sequence(1))


def test_a_smaller_gpu_and_the_interpreter_take_many_launches() -> None:
    model = _model(Launcher())
    cache = KVCache(model, 1, 8)
    model.executor.sms = POLICY.sms - 1
    assert not model.takes_one_launch(cache)
    model.executor.sms, model.launcher.target = POLICY.sms, None
    assert not model.takes_one_launch(cache)


def _fit(op: str, *sizes: Any, ranks: int = 1) -> int:
    """How many entries are for a step of these sizes: see `dims`."""
    found = dims(op, *sizes, ranks=ranks)
    return sum(spec.op == op and spec.unmet(found) is None for spec in entries_of("cute"))


@pytest.mark.parametrize("op", OPS)
def test_a_size_of_gpt2_has_one_entry(op: str) -> None:
    """124M for each op, the others in bf16 of one text."""
    gpt2, (least, most) = PRESETS["gpt2"], (2, 8) if op in OPS_TEXTS else (1, 1)
    assert [_fit(op, texts, gpt2, 50304, 100, 132) for texts in (least, most)] == [1, 1]
    assert not any(_fit(op, texts, gpt2, 50304, 100, 132) for texts in (least - 1, most + 1))
    assert not _fit(op, least, gpt2, 50304, 100, 95) and not _fit(op, least, gpt2, 50304, 2000, 132)
    assert not _fit(op, least, CONFIG, 50304, 100, 132)
    wider = [_fit(op, least, PRESETS[name], 50304, 100, 132) for name in ("medium", "large", "xl")]
    assert wider == [op == OP] * 3


@pytest.mark.parametrize(
    ("name", "ranks", "wanted"),
    [("gpt2", 2, [1, 1]), ("xl", 2, [1, 1]), ("gpt2", 3, [0, 0, 0]), ("medium", 2, [1, 1]), ("large", 2, [1, 1])],
)
def test_each_of_two_ranks_has_an_entry_for_its_part(name: str, ranks: int, wanted: list[int]) -> None:
    config = PRESETS[name]
    vocabulary, parts = vocabulary_part(config.vocab_size, ranks), [config.part(rank, ranks) for rank in range(ranks)]
    assert [_fit(OP_RANKS, 1, part, vocabulary, 100, 132, ranks=ranks) for part in parts] == wanted


def test_a_wait_that_ran_out_is_named() -> None:
    model = _model(Launcher())
    cache = KVCache(model, 1, 8)
    steps = Decode(model, cache)
    steps.reset(TOKENS[:1, 5])
    steps.run()
    steps.likeliest()
    one, largest = model._one_launches[OP], steps._chosen.largest  # pyright: ignore[reportPrivateUsage]
    one.check()
    largest.fill(np.nan)
    with pytest.raises(ConformanceError, match="logits hold NaN"):
        steps.likeliest()
    errors = np.zeros((POLICY.sms, 12), np.int32)
    errors[[5, 7], 3] = 5, 3
    one._arrays["errors"].copy_from(errors)  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(ConformanceError, match="waited too long for the sums of projections"):
        steps.likeliest()
