"""Many prompts: what each becomes, and what of those that cannot be continued."""

from __future__ import annotations

from typing import Any

import pytest

from gpt.batches.many import Answer, Many, on_one, pages_of, warm
from gpt.batches.paged_cache import page_bytes
from gpt.config import LLAMAS, GPTConfig
from gpt.model import GPT
from gpt.sampling import Sampling
from gpt.text import Request, Writer
from gpt.tokens.tokenizer import ByteTokenizer
from toolchain.errors import UsageError

TOKENIZER = ByteTokenizer()


@pytest.fixture
def config() -> GPTConfig:
    return LLAMAS["nano"]


def many(prompts: list[str], count: int | None = 6, stop: tuple[str, ...] = ()) -> Many:
    return Many(TOKENIZER, prompts, count=count, sampling=Sampling(temperature=0), stop=stop)


def alone(model: GPT, prompt: str, stop: tuple[str, ...] = ()) -> str:
    asked = Request.of(
        model.config, TOKENIZER, [prompt], max_new_tokens=6, sampling=Sampling(temperature=0), stop=stop
    )  # fmt: skip
    return "".join(piece for (piece,) in Writer(model, TOKENIZER, asked))


def test_each_prompt_becomes_what_it_becomes_alone(model: GPT) -> None:
    """Those that are empty, too long or no text are named, and take nothing from the others."""
    prompts = ["Once", "", "In the beginning", "x" * 127, "\ud800", "x" * 200, "And"]
    found = {answer.index: answer for answer in many(prompts).answers(model)}
    assert sorted(found) == list(range(7))
    for index in (0, 2, 6):
        assert found[index] == Answer(index, alone(model, prompts[index]), tokens=6)
    for index, said in ((1, "empty"), (3, "127 tokens and 6 new ones"), (4, "UTF-8"), (5, "200 tokens")):
        assert said in str(found[index].error)


def test_a_stop_string_ends_a_text(model: GPT) -> None:
    whole = alone(model, "Once")
    stop = (whole[2:4],)
    found = {answer.index: answer.text for answer in many(["Once", "And"], stop=stop).answers(model)}
    assert found == {0: alone(model, "Once", stop), 1: alone(model, "And", stop)}
    assert found[0] == whole[: whole.find(stop[0])]


def test_what_is_wrong_with_all_prompts_is_refused() -> None:
    for prompts, count, stop, said in (
        ([], 6, (), "no prompt"), (["a"], 0, (), "at least 1"), (["a"], 6, ("",), "stop string is empty")
    ):  # fmt: skip
        with pytest.raises(UsageError, match=said):
            many(list(prompts), count, stop)
    shared: Any = object()
    with pytest.raises(UsageError, match="on one device"):
        on_one(shared)


def test_memory_is_that_of_the_texts(model: GPT, monkeypatch: pytest.MonkeyPatch) -> None:
    assert pages_of(model, [60, 65, 128], 2) == 2 + 2
    monkeypatch.setattr("gpt.batches.many.MOST_BYTES", 3 * page_bytes(model))
    assert pages_of(model, [60, 65, 128], 2) == 3
    assert pages_of(model, [64 * 5, 3], 2) == 5  # one text must fit


def test_warming_launches_what_the_texts_launch(model: GPT, launcher: Any) -> None:
    warm(model, 3)
    before = set(launcher.launches)
    launcher.launches.clear()
    list(many(["Once", "In the beginning was", "x" * 90]).answers(model))
    assert set(launcher.launches) == before
