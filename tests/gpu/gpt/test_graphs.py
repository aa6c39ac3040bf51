"""The model as graphs: a replay gives the same bits as separate launches."""

from __future__ import annotations

import numpy as np
import pytest

from conformance.cells import borrows_from
from gpt.graphs import Decode, Forward
from gpt.model import GPT, KVCache
from gpt.parameters.weights import SHIPPED
from toolchain.bundles.bundle import Bundle
from toolchain.errors import ConformanceError
from toolchain.runtime import Executor, Launcher

pytestmark = pytest.mark.needs("gpu")
BATCH, LENGTH = 3, 20


@pytest.fixture
def tokens() -> np.ndarray:
    return np.random.default_rng(1).integers(0, 256, (BATCH, LENGTH)).astype(np.int32)


def models(bundle: Bundle, cuda: Executor) -> list[GPT]:
    return [
        GPT.from_pretrained(
            SHIPPED, launcher=Launcher(bundle, source, cuda, borrows_from=borrows_from(source)), dtype="bf16"
        )
        for source in bundle.sources
    ]


def test_a_forward_graph_follows_its_tokens(cuda: Executor, bundle: Bundle, tokens: np.ndarray) -> None:
    for model in models(bundle, cuda):
        graph = Forward(model, BATCH, LENGTH)
        for given in (tokens, tokens[:, ::-1].copy()):
            graph.set_tokens(given)
            graph.run()
            assert np.array_equal(graph.logits.numpy(), model.forward(given).numpy())


def test_decode_steps_feed_themselves(cuda: Executor, bundle: Bundle, tokens: np.ndarray) -> None:
    for model in models(bundle, cuda):
        plain, stepped = (KVCache(model, BATCH, positions=LENGTH + 6) for _ in range(2))
        for cache in (plain, stepped):
            model.prefill(tokens[:, :-1], cache)
        decode = Decode(model, stepped)
        decode.reset(tokens[:, -1])
        given = tokens[:, -1]
        for _ in range(5):
            wanted = model.decode(given, plain).numpy()
            decode.run()
            given = decode.tokens.numpy()
            assert np.array_equal(decode.logits.numpy(), wanted)
            assert given.tolist() == wanted.argmax(axis=-1).tolist() == decode.likeliest().tolist()


def test_a_token_that_the_host_feeds_is_as_one_that_is_reset(
    cuda: Executor, bundle: Bundle, tokens: np.ndarray
) -> None:
    for model in models(bundle, cuda):
        plain, stepped = (KVCache(model, BATCH, positions=LENGTH + 6) for _ in range(2))
        for cache in (plain, stepped):
            model.prefill(tokens[:, :-1], cache)
        decode = Decode(model, stepped)
        decode.reset(tokens[:, -1])
        for given in (tokens[:, -1], tokens[:, 0], tokens[:, 1]):
            decode.feed(given)
            decode.run()
            assert np.array_equal(decode.logits.numpy(), model.decode(given, plain).numpy())


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_one_logit_that_is_no_number_ends_a_greedy_text(cuda: Executor, bundle: Bundle, value: float) -> None:
    for model in models(bundle, cuda):
        logits = np.linspace(-3, 3, 2 * model.config.vocab_size).astype(np.float32).reshape(2, -1)
        held = model.new_logits(2)
        numbers = np.zeros(held.shape, held.numpy().dtype)
        numbers[:, : model.config.vocab_size] = logits
        held.copy_from(numbers)
        assert model.argmax(model.visible(held)).tolist() == [model.config.vocab_size - 1] * 2
        numbers[1, 100] = value
        held.copy_from(numbers)
        with pytest.raises(ConformanceError, match="NaN or infinity"):
            model.argmax(model.visible(held))
