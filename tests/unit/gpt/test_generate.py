"""Sequences that a model makes: with logits that are known, and of the model itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gpt.config import GPTConfig
from gpt.generate import DEFAULT_COUNT, generate, generate_batch, room
from gpt.model import GPT
from gpt.parameters.weights import Weights
from gpt.reference import forward as reference
from gpt.sampling import Sampling
from toolchain.errors import ConformanceError, UsageError
from toolchain.runtime import DeviceBuffer


def copies(monkeypatch: pytest.MonkeyPatch, launcher: Any) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    """The shapes of what is copied to the device and back from now on, but for what the launcher itself copies."""
    compute = launcher._compute
    computing: list[bool] = []

    def computed(*args: Any) -> None:
        computing.append(True)
        compute(*args)
        computing.pop()

    monkeypatch.setattr(launcher, "_compute", computed)
    up: list[tuple[int, ...]] = []
    down: list[tuple[int, ...]] = []
    copy_from, numpy = DeviceBuffer.copy_from, DeviceBuffer.numpy

    def uploaded(buffer: DeviceBuffer, array: Any) -> None:
        up.extend([] if computing else [buffer.shape])
        copy_from(buffer, array)

    def fetched(buffer: DeviceBuffer) -> Any:
        down.extend([] if computing else [buffer.shape])
        return numpy(buffer)

    monkeypatch.setattr(DeviceBuffer, "copy_from", uploaded)
    monkeypatch.setattr(DeviceBuffer, "numpy", fetched)
    return up, down


def test_greedy_generation_takes_the_likeliest_each_time(config: GPTConfig, weights: Weights, model: GPT) -> None:
    sequence = [7, 100, 256]
    found = list(generate(model, sequence, max_new_tokens=6, temperature=0))
    for token in found:
        assert token == reference.float64(config, weights, np.array([sequence]))[0, -1].argmax()
        sequence.append(token)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_nothing_is_generated_from_logits_that_are_not_finite(
    config: GPTConfig, weights: Weights, launcher: Any, temperature: float
) -> None:
    large = {name: np.full_like(w, 6e4) if name.startswith("ln_f") else w for name, w in weights.items()}
    model = GPT(config, Weights(large), launcher, "f16")  # its logits overflow
    with np.errstate(all="ignore"), pytest.raises(ConformanceError, match="NaN or infinity"):
        list(generate(model, [1, 2], max_new_tokens=3, temperature=temperature))


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_one_logit_that_is_nan_ends_it(model: GPT, temperature: float) -> None:
    tokens = generate(model, [1, 2], max_new_tokens=5, temperature=temperature)
    next(tokens)
    rows = model.weights["wte.weight"].numpy().copy()
    rows[200] = np.nan
    model.weights["wte.weight"].copy_from(rows)
    with np.errstate(all="ignore"), pytest.raises(ConformanceError, match="NaN or infinity"):
        next(tokens)


@pytest.mark.parametrize("options", [{"temperature": 0}, {"temperature": 1.0}])
def test_a_step_uploads_no_more_than_the_tokens_that_the_host_draws(
    model: GPT, launcher: Any, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    up, down = copies(monkeypatch, launcher)
    steps = generate_batch(model, [[7, 100], [3]], max_new_tokens=5, sampling=Sampling(**options))
    next(steps), next(steps)  # the prompts, and the step that is captured
    del up[:], down[:]
    next(steps)
    greedy = options["temperature"] == 0
    assert up == ([] if greedy else [(2,)])
    assert down == ([(4,)] if greedy else [(2, 257)])  # the largest logits and the tokens in one copy


def test_generation_stops(model: GPT) -> None:
    found = list(generate(model, [7, 100], max_new_tokens=8, seed=3))
    assert len(found) == 8
    index = next(i for i in range(2, 8) if found[i] not in found[:i])
    assert list(generate(model, [7, 100], max_new_tokens=8, seed=3, stop={found[index]})) == found[:index]
    assert list(generate(model, [7, 100], max_new_tokens=8, seed=3, stop={found[0]})) == []
    assert list(generate(model, [7], max_new_tokens=0)) == []


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_generation_stops_at_the_tokens_of_the_config(
    config: GPTConfig, weights: Weights, launcher: Any, model: GPT, temperature: float
) -> None:
    options: dict[str, Any] = {"max_new_tokens": 12, "temperature": temperature, "seed": 3}
    found = list(generate(model, [7, 100], **options))
    index = next(i for i in range(2, 12) if found[i] not in found[:i])
    ending = GPT(replace(config, end_tokens=(0, found[index])), weights, launcher, "f32")
    assert list(generate(ending, [7, 100], **options)) == found[:index]
    sampling = Sampling(temperature, seed=3)
    steps = generate_batch(ending, [[9], [7, 100]], max_new_tokens=12, sampling=sampling)
    assert [two for _, two in steps if two is not None] == found[:index]
    assert list(generate(ending, [7, 100], **options, stop={found[1]})) == found[: found.index(found[1])]


def test_sampling_is_seeded(model: GPT) -> None:
    def run(seed: int) -> list[int]:
        return list(generate(model, [1, 2, 3], max_new_tokens=8, temperature=1.0, seed=seed))

    assert run(1) == run(1) != run(2)


@pytest.mark.parametrize("options", [{"temperature": 0}, {"temperature": 0, "repetition_penalty": 3.0}, {"seed": 4}])
def test_texts_together_are_as_each_alone(model: GPT, options: dict[str, Any]) -> None:
    texts = [[7, 100, 256], [3], list(range(60))]
    alone = [list(generate(model, text, max_new_tokens=6, **options)) for text in texts]
    steps = list(generate_batch(model, texts, max_new_tokens=6, sampling=Sampling(**options)))
    assert [list(tokens) for tokens in zip(*steps, strict=True)] == alone


def test_a_text_that_has_ended_waits_for_the_others(model: GPT) -> None:
    sampling, texts = Sampling(seed=3), [[7, 100], [9]]
    first, second = (list(generate(model, text, max_new_tokens=8, seed=3)) for text in texts)
    stop = next(token for token in first if token not in second)
    at = first.index(stop)
    steps = list(generate_batch(model, texts, max_new_tokens=8, sampling=sampling, stop={stop}))
    assert [one for one, _ in steps] == [*first[:at], *[None] * (8 - at)]
    assert [two for _, two in steps] == second
    assert list(generate_batch(model, texts, max_new_tokens=8, sampling=sampling, stop={*first, *second})) == []


def test_a_penalty_keeps_a_text_from_repeating_itself(model: GPT) -> None:
    found = list(generate(model, [7, 100], max_new_tokens=20, temperature=0, repetition_penalty=1e6))
    assert len({7, 100, *found}) == 22


def test_how_many_tokens_there_is_room_for(config: GPTConfig) -> None:
    assert config.n_ctx == 128
    assert room(config, [[1] * 3]) == room(config, [[1], [1] * 3]) == 125
    assert room(GPTConfig(2, 2, 64, 1024, 257), [[1] * 3]) == DEFAULT_COUNT
    assert room(config, [[1] * 3], 125) == 125 and room(config, [[1] * 128], 0) == 0


@pytest.mark.parametrize(
    ("texts", "wanted", "said"),
    [
        ([], None, "there is no prompt"),
        ([[1], []], None, "the prompt is empty"),
        ([[[1], [2]]], None, r"tokens of shape \[2, 1\] are several"),
        ([[1]], -1, "max_new_tokens is -1"),
        ([[1] * 3], 126, "3 tokens and 126 new ones are more than the context of 128\n  next: .* at most 125"),
        ([[1] * 128], None, "128 tokens and one more is more than the context of 128\n  next: shorten the prompt$"),
        ([[1] * 128], 1, "128 tokens and 1 new ones are more than the context of 128\n  next: shorten the prompt$"),
    ],
)
def test_texts_that_are_refused(config: GPTConfig, texts: Any, wanted: int | None, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        room(config, texts, wanted)
