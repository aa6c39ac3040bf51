from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpt.graphs import Decode, Forward
from gpt.model import GPT, KVCache
from toolchain.errors import ConformanceError, UsageError


@pytest.fixture
def tokens(model: GPT) -> np.ndarray:
    return np.random.default_rng(8).integers(0, model.config.vocab_size, (2, 6)).astype(np.int32)


def test_a_forward_graph_is_the_forward_pass_of_its_tokens(model: GPT, tokens: np.ndarray) -> None:
    graph = Forward(model, 2, 6)
    for asked in (tokens, tokens[:, ::-1].copy()):
        graph.set_tokens(asked)
        graph.run()
        assert np.array_equal(graph.logits.numpy(), model.forward(asked).numpy())
    with pytest.raises(UsageError, match="2 x 6"):
        graph.set_tokens(tokens[:, :5])
    with pytest.raises(UsageError, match="outside the vocabulary"):
        graph.set_tokens(tokens + model.config.vocab_size)
    with pytest.raises(UsageError, match="positions are more"):
        Forward(model, 1, model.config.n_ctx + 1)


def test_decode_steps_feed_themselves(model: GPT, tokens: np.ndarray) -> None:
    cache, stepped = (KVCache(model, batch=2, positions=10) for _ in range(2))
    for each in (cache, stepped):
        model.prefill(tokens[:, :5], each)
    decode = Decode(model, stepped)
    decode.reset(tokens[:, 5])
    given = tokens[:, 5]
    for _ in range(4):
        wanted = model.decode(given, cache).numpy()
        decode.run()
        assert np.array_equal(decode.logits.numpy(), wanted)
        given = decode.tokens.numpy()
        assert given.tolist() == wanted.argmax(axis=-1).tolist()
    assert stepped.lengths.tolist() == cache.lengths.tolist() == [9, 9]
    decode.run()
    with pytest.raises(UsageError, match="cache of 10 positions is full"):
        decode.run()


def test_decode_starts_where_it_is_told(model: GPT, tokens: np.ndarray) -> None:
    cache = KVCache(model, batch=2, positions=8)
    model.prefill(tokens[:, :5], cache)
    decode = Decode(model, cache)
    decode.reset(tokens[:, 5], np.array([5, 3]))
    decode.run()
    short = model.forward(np.concatenate([tokens[1:, :3], tokens[1:, 5:]], axis=1)).numpy()[0, -1]
    assert np.abs(decode.logits.numpy()[1] - short).max() < 1e-4
    assert cache.lengths.tolist() == [6, 4]
    for lengths, match in (
        ([8, 3], "8 \\+ 1 positions are more than the 8"),
        ([-1, 3], r"of at least 0, not \[-1, 3\]"),
        ([2**32 + 1, 3], "positions are more"),  # which would be 1 in the cache's 32 bits
        ([3], "lengths of 2 sequences"),
        ([1.5, 3], "integers"),
    ):
        with pytest.raises(UsageError, match=match):
            decode.reset(tokens[:, 5], np.array(lengths))
    with pytest.raises(UsageError, match="outside the vocabulary"):
        decode.reset(np.array([0, 999]), np.array([1, 2]))
    assert cache.lengths.tolist() == [6, 4]


def test_a_token_that_the_host_feeds_is_as_one_that_is_reset(model: GPT, tokens: np.ndarray) -> None:
    cache, stepped = (KVCache(model, batch=2, positions=10) for _ in range(2))
    for each in (cache, stepped):
        model.prefill(tokens[:, :4], each)
    decode = Decode(model, stepped)
    decode.reset(tokens[:, 4])
    for given in (tokens[:, 4], tokens[:, 5], tokens[:, 0]):
        decode.feed(given)
        decode.run()
        assert np.array_equal(decode.logits.numpy(), model.decode(given, cache).numpy())


def test_the_likeliest_tokens_of_logits_that_are_numbers(model: GPT, tokens: np.ndarray) -> None:
    cache = KVCache(model, batch=2, positions=10)
    decode = Decode(model, cache)
    decode.reset(tokens[:, 0])
    decode.run()
    assert decode.likeliest().tolist() == decode.logits.numpy().argmax(axis=-1).tolist()
    cache.memory.fill(np.nan)
    decode.run()
    with pytest.raises(ConformanceError, match="NaN or infinity"):
        decode.likeliest()


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_the_likeliest_of_what_is_no_number(model: GPT, value: float) -> None:
    logits = np.linspace(-3, 3, 2 * model.config.vocab_size, dtype=np.float32).reshape(2, -1)
    assert model.argmax(model.executor.from_numpy(logits)).tolist() == [model.config.vocab_size - 1] * 2
    logits[1, 100] = value
    with pytest.raises(ConformanceError, match="NaN or infinity"):
        model.argmax(model.executor.from_numpy(logits))


def test_the_steady_state_allocates_nothing(model: GPT, tokens: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    forward, cache = Forward(model, 2, 6), KVCache(model, batch=2, positions=10)
    decode = Decode(model, cache)
    asked: list[int] = []
    allocate = model.executor.allocate

    def counted(nbytes: int) -> Any:
        asked.append(nbytes)
        return allocate(nbytes)

    monkeypatch.setattr(model.executor, "allocate", counted)
    decode.reset(tokens[:, 0])
    for _ in range(3):
        forward.set_tokens(tokens)
        forward.run()
        decode.run()
    assert asked == []
    model.forward(tokens)  # whose logits are the caller's: the count does count
    assert len(asked) > 0
