"""Stop strings in texts that come in pieces, and texts of a model."""

from __future__ import annotations

from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpt.config import GPTConfig
from gpt.generate import generate
from gpt.model import GPT
from gpt.sampling import Sampling
from gpt.text import Request, Until, Writer
from gpt.tokens.tokenizer import ByteTokenizer, decode
from toolchain.errors import UsageError

BYTES = ByteTokenizer()
GREEDY = Sampling(temperature=0)


@given(st.lists(st.text("abx", max_size=4)), st.lists(st.text("abx", min_size=1, max_size=4), max_size=3))
def test_a_text_ends_at_the_stop_string_that_is_complete_first_however_it_is_cut(
    pieces: list[str], stops: list[str]
) -> None:
    until = Until(stops)
    shown = "".join(map(until.push, pieces))
    text = "".join(pieces)
    ends = [(text.find(stop) + len(stop), text.find(stop)) for stop in stops if stop in text]
    assert until.found == bool(ends)
    assert shown + until.end() == (text[: min(ends)[1]] if ends else text)


def test_only_what_may_begin_a_stop_string_is_held_back() -> None:
    until = Until(["\n\n"])
    assert [until.push(piece) for piece in ("a", "\n", "b\n", "\nc", "d")] == ["a", "", "\nb", "", ""]
    assert until.found and until.end() == ""


def request(config: GPTConfig, *prompts: str, stop: tuple[str, ...] = ()) -> Request:
    return Request.of(config, BYTES, prompts, max_new_tokens=12, sampling=GREEDY, stop=stop)


def test_what_a_writer_writes_are_the_tokens_as_text(config: GPTConfig, model: GPT) -> None:
    prompts = ("Once", "In the")
    wanted = [decode(BYTES, generate(model, BYTES.encode(p), max_new_tokens=12, temperature=0)) for p in prompts]
    writer = Writer(model, BYTES, request(config, *prompts))
    assert ["".join(pieces) for pieces in zip(*writer, strict=True)] == wanted
    assert writer.tokens == 24


@pytest.mark.parametrize(
    ("drawn", "pieces", "tokens"),
    [
        # The first text ends with what may be the beginning of a stop string, while the second goes on.
        ([[97, 120], [None, 120], [None, 121]], [["", "x"], ["a", "x"], ["", "y"], ["", ""]], 4),
        # What is drawn behind a stop string is no text.
        ([[97, 120], [98, 120], [97, 97]], [["", "x"], ["", "x"], ["", ""], ["", "a"]], 5),
        # Both end before there are as many tokens as there may be.
        ([[97, 97], [98, 120], [120, 97], [120, 98], [120, 120]], [["", ""], ["", "ax"], ["", ""], ["", ""]], 6),
    ],
)
def test_a_text_that_ends_is_complete_then(
    config: GPTConfig,
    monkeypatch: pytest.MonkeyPatch,
    drawn: list[list[int | None]],
    pieces: list[list[str]],
    tokens: int,
) -> None:
    monkeypatch.setattr("gpt.text.generate_batch", lambda *_, **__: iter(drawn))
    writer = Writer(cast("GPT", None), BYTES, request(config, "a", "b", stop=("ab",)))
    steps = [(step, [*writer.ended]) for step in writer]
    assert [step for step, _ in steps] == pieces
    assert (writer.tokens, steps[1][1], steps[-1][1]) == (tokens, [True, False], [True, True])


def test_a_stop_string_of_several_tokens(config: GPTConfig, model: GPT) -> None:
    (whole,) = ("".join(pieces) for pieces in zip(*Writer(model, BYTES, request(config, "Once")), strict=True))
    stop = whole[3:6]
    at = whole.index(stop)
    writer = Writer(model, BYTES, request(config, "Once", stop=("never", stop)))
    (text,) = ("".join(pieces) for pieces in zip(*writer, strict=True))
    assert text == whole[:at]
    assert writer.tokens < 12  # it did not write on for nothing


def test_a_request_that_is_refused(config: GPTConfig) -> None:
    for prompts, stop, said in (((), (), "no prompt"), (("a", ""), (), "is empty"), (("a",), ("",), "stop string")):
        with pytest.raises(UsageError, match=said):
            request(config, *prompts, stop=stop)
    with pytest.raises(UsageError, match="130 tokens and 12 new ones"):
        request(config, "x" * 130)
    assert Request.of(config, BYTES, ["x" * 68]).count == 60  # as many as the context has room for
