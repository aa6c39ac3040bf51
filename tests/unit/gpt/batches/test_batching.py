"""Texts in a changing batch become what each becomes alone; each op is computed by the reference in numpy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpt.batches.batching import Batching, Drawn, shape
from gpt.batches.pages import PAGE
from gpt.config import LLAMAS, PRESETS, GPTConfig
from gpt.generate import generate_batch
from gpt.model import GPT
from gpt.sampling import Sampling
from toolchain.errors import ConformanceError, UsageError

GREEDY = Sampling(temperature=0)
CONFIGS = [PRESETS["nano"], LLAMAS["nano"], replace(LLAMAS["nano"], qk_norm=True)]


@pytest.fixture(params=CONFIGS, ids=["gpt2", "llama", "qk_norm"])
def config(request: pytest.FixtureRequest) -> GPTConfig:
    return request.param


def prompts(config: GPTConfig, *lengths: int) -> list[list[int]]:
    rng = np.random.default_rng(3)
    return [rng.integers(0, config.vocab_size, length).tolist() for length in lengths]


def all_of(batching: Batching, found: dict[int, list[int]] | None = None) -> dict[int, list[int]]:
    """The new tokens of each text, once all have ended."""
    found = {} if found is None else found
    while batching.busy:
        keep(found, batching.step())
    return found


def keep(found: dict[int, list[int]], drawn: list[Drawn]) -> None:
    for each in drawn:
        found.setdefault(each.text, []).extend([] if each.token is None else [each.token])


def alone(model: GPT, tokens: list[int], count: int, sampling: Sampling = GREEDY) -> list[int]:
    steps = generate_batch(model, [tokens], max_new_tokens=count, sampling=sampling)
    return [token for (token,) in steps if token is not None]


def test_a_text_in_a_batch_is_the_text_alone(model: GPT) -> None:
    """Prompts of a token, of less than a piece, of a whole one, and of more than a page; one joins later; and so little
    memory that texts are set back."""
    texts = prompts(model.config, 1, 9, 16, 77, 40)
    counts = [12, 30, 3, 20, 25]
    wanted = [alone(model, text, count) for text, count in zip(texts, counts, strict=True)]
    batching = Batching(model, texts=3, pages=4, pieces=2)
    for text, count in zip(texts[:4], counts, strict=False):
        batching.add(text, count, GREEDY)
    found: dict[int, list[int]] = {}
    for _ in range(4):
        keep(found, batching.step())
    assert batching.add(texts[4], counts[4], GREEDY) == 4
    assert [all_of(batching, found)[number] for number in range(5)] == wanted
    assert batching.schedule.pages.free == 4


def test_drawn_texts_do_not_depend_on_their_neighbours(model: GPT) -> None:
    texts, drawn = prompts(model.config, 20, 33), Sampling(temperature=1.0, seed=5, repetition_penalty=1.3)
    wanted = [alone(model, text, 6, sampling) for text, sampling in zip(texts, (drawn, GREEDY), strict=True)]
    batching = Batching(model, texts=2, pages=6)
    for text, sampling in zip(texts, (drawn, GREEDY), strict=True):
        batching.add(text, 6, sampling)
    assert list(all_of(batching).values()) == wanted


def test_a_stop_token_ends_a_text_and_is_left_out(model: GPT) -> None:
    (text,) = prompts(model.config, 20)
    wanted = alone(model, text, 8)
    batching = Batching(model, texts=1, pages=2)
    batching.add(text, 8, GREEDY, stop={wanted[3]})
    drawn = [each for _ in range(4) for each in batching.step()]
    first = wanted.index(wanted[3])
    assert drawn[first] == Drawn(0, None, True)
    assert not batching.busy


def test_a_cancelled_or_refused_text_takes_nothing_from_the_others(model: GPT) -> None:
    texts = prompts(model.config, 20, 90, 50)
    wanted = [alone(model, text, 7) for text in (texts[0], texts[2])]
    batching = Batching(model, texts=3, pages=4, pieces=2)
    for text in texts:
        batching.add(text, 7, GREEDY)
    found: dict[int, list[int]] = {}
    keep(found, batching.step())
    batching.cancel(1)
    for tokens, count, message in (
        ([], 3, "the prompt is empty"),
        ([model.config.vocab_size], 3, "outside the vocabulary"),
        ([1] * 120, 9, "more than the 128 that one text may have"),
        ([1] * 200, 9, "positions are more than the 128 there are"),
    ):
        with pytest.raises(UsageError, match=message):
            batching.add(tokens, count)
    with pytest.raises(UsageError, match="text 1 is not there"):
        batching.cancel(1)
    found = all_of(batching, found)
    assert [found[0], found[2]] == wanted
    assert batching.schedule.pages.free == 4


def test_what_a_former_text_left_behind_is_not_read(model: GPT) -> None:
    """Not even NaN, which 0 times a weight does not undo."""
    (text,) = prompts(model.config, 70)
    wanted = alone(model, text, 5)
    batching = Batching(model, texts=1, pages=2)
    batching.cache.memory.fill(np.nan)
    batching.add(text, 5, GREEDY)
    assert all_of(batching) == {0: wanted}


def test_logits_that_are_not_finite_are_refused(model: GPT) -> None:
    model.weights["ln_f.weight" if model.config.family == "gpt2" else "norm.weight"].fill(np.nan)
    batching = Batching(model, texts=1, pages=2)
    batching.add([1, 2], 2, GREEDY)
    with pytest.raises(ConformanceError, match="NaN"):
        batching.step()


def test_memory_is_that_of_the_pages(model: GPT) -> None:
    batching = Batching(model, texts=4, pages=3, pieces=2)
    assert batching.cache.memory.shape[2:4] == (3 + 1, PAGE)  # and one of nobody
    for texts, pages, pieces, message in (
        (0, 3, 2, "0 texts"), (257, 3, 2, "257 texts"), (4, 3, 3, "3 pieces"), (4, 0, 2, "0 pages")
    ):  # fmt: skip
        with pytest.raises(UsageError, match=message):
            Batching(model, texts=texts, pages=pages, pieces=pieces)


def test_steps_that_were_captured_before_are_taken(model: GPT) -> None:
    batching = Batching(model, texts=2, pages=2, pieces=2)
    batching.warm(2, (0, 2), 2)
    captured = dict(batching.steps)
    assert sorted(captured) == [(1, 0, 8), (1, 2, 8), (2, 0, 8), (2, 2, 8)]
    wanted = [alone(model, text, 4) for text in prompts(model.config, 3, 20)]
    for text in prompts(model.config, 3, 20):
        batching.add(text, 4, GREEDY)
    assert list(all_of(batching).values()) == wanted
    assert batching.steps == captured


def test_few_shapes_are_captured() -> None:
    assert shape(1, 0, 1) == (1, 0, 8)
    assert shape(3, 3, 9) == (4, 8, 32)
    assert shape(256, 32, 128) == (256, 32, 128)
