"""The GPT of `import tilestack`: what it continues a text to is what `tilestack generate` prints."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tilestack as ts
from gpt.config import PRESETS, llama
from gpt.parameters import weights
from gpt.parameters.weights import random_weights, save
from gpt.reference import forward as reference
from gpt.tokens.chat import Message

from ...conftest import Run


@pytest.fixture(autouse=True)
def no_bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def nano(tmp_path: Path) -> Path:
    """A folder with a small checkpoint of random weights."""
    folder = tmp_path / "nano"
    save(folder, PRESETS["nano"], random_weights(PRESETS["nano"], 3))
    return folder


def test_it_says_what_the_command_says(run: Run) -> None:
    words = ["generate", "Once", "--executor", "cpu", "--max-new-tokens", "6", "--temperature", "0"]
    said = run(*words).out
    with ts.GPT.from_pretrained(on="cpu") as model:
        options: dict[str, float] = {"max_new_tokens": 6, "temperature": 0}
        pieces = list(model.stream("Once", **options))
        assert f"Once{''.join(pieces)}\n" == said
        assert len(pieces) > 1  # text comes in pieces
        assert model.generate("Once", **options) == "".join(pieces)
        steps = list(model.stream_batch(["Once", "In"], **options))
        assert ["".join(step[index] for step in steps) for index in (0, 1)] == model.generate_batch(
            ["Once", "In"], **options
        )
        assert "".join(one for one, _ in steps) == "".join(pieces)
        assert all(len(step) == 2 for step in steps) and len(steps) == 7


def test_an_answer(nano: Path) -> None:
    (nano / "chat_template.jinja").write_text("{% for m in messages %}{{ m.content }}|{% endfor %}")
    with ts.GPT.from_pretrained(nano, on="cpu") as model:
        asked: list[Message] = [{"role": "user", "content": "Once"}]
        options: dict[str, float] = {"max_new_tokens": 4, "temperature": 0}
        wanted = model.generate("Once|", **options)
        assert model.chat(asked, **options) == wanted == "".join(model.stream_chat(asked, **options))
        for messages, said in (([], "a list of messages"), ([*asked, {"role": "x", "content": ""}], "nobody's role")):
            with pytest.raises(ts.UsageError, match=said):
                model.chat(messages)  # pyright: ignore[reportArgumentType]
        with pytest.raises(TypeError, match="top_q"):
            model.chat(asked, top_q=1)  # pyright: ignore[reportCallIssue]
    with pytest.raises(ts.UsageError, match="no chat template"), ts.GPT.from_pretrained(on="cpu") as model:
        model.chat(asked)


def test_logits_token_by_token_go_through_the_cache(nano: Path) -> None:
    tokens = np.random.default_rng(1).integers(0, 257, (2, 20))
    found = {}
    for cache in ("", "f8"):
        with ts.GPT.from_pretrained(nano, on="cpu", cache=cache) as model:
            found[cache] = model.logits(tokens, steps=True)
            whole = model.logits(tokens)
    usual, more = (np.linalg.norm(found[cache] - whole) / np.linalg.norm(whole) for cache in ("", "f8"))
    assert usual < 0.01 and usual < more < 0.02
    with (
        ts.GPT.from_pretrained(nano, on="cpu", devices=2) as model,
        pytest.raises(ts.UsageError, match="on one device"),
    ):
        model.logits(tokens, steps=True)
    with pytest.raises(ts.UsageError, match="a cache in f8 is of a model on one device"):
        ts.GPT.from_pretrained(nano, on="cpu", devices=2, cache="f8")


def test_logits_are_the_references(nano: Path) -> None:
    config, tensors, _ = weights.load(nano)
    tokens = np.array([[1, 2, 250], [7, 7, 7]])
    exact = reference.float64(config, tensors, tokens)
    with ts.GPT.from_pretrained(nano, dtype="f32", on="cpu") as model:
        assert repr(model) == "<GPT of 2 layers, 2 heads, width 64, context 128, vocabulary 257; f32, source fastest>"
        found = model.logits(tokens)
        assert (found.shape, found.dtype) == ((2, 3, 257), np.float32)
        assert np.abs(found - exact).max() < 1e-4
        assert np.abs(model.logits([1, 2, 250]) - exact[0]).max() < 1e-4


def test_two_devices_share_a_model(nano: Path) -> None:
    config, tensors, _ = weights.load(nano)
    tokens = np.array([[1, 2, 250], [7, 7, 7]])
    options: dict[str, float] = {"max_new_tokens": 3, "temperature": 0}
    with ts.GPT.from_pretrained(nano, dtype="f32", on="cpu", devices=2) as model:
        assert repr(model).endswith("on 2 devices>")
        found = model.logits(tokens)
        text = model.generate("Once", **options)
        drawn = model.generate("Once", max_new_tokens=3, temperature=1.0, top_k=1)
        assert model.device_names == "cpu interpreter, rank 0 of 2, cpu interpreter, rank 1 of 2"
    assert np.abs(found - reference.float64(config, tensors, tokens)).max() < 1e-4
    with ts.GPT.from_pretrained(nano, dtype="f32", on="cpu") as alone:
        assert alone.generate("Once", **options) == text == drawn


def test_devices_that_cannot_share_a_model(nano: Path) -> None:
    for devices, says in ((3, "2 heads cannot be shared by 3 GPUs"), (0, "a model on 0 devices")):
        with pytest.raises(ts.UsageError, match=says):
            ts.GPT.from_pretrained(nano, devices=devices)


def test_two_devices_share_a_llama(tmp_path: Path) -> None:
    config = llama(1, 3, 96, 64, 257, head_size=32, ffn=192)
    weights.save(tmp_path, config, weights.random_weights(config, 3))
    texts: list[str] = []
    for devices in (1, 2):
        with ts.GPT.from_pretrained(tmp_path, dtype="f32", on="cpu", devices=devices) as model:
            texts.append(model.generate("Once", max_new_tokens=4, temperature=0))
    assert texts[0] == texts[1]
    with pytest.raises(ts.UsageError, match="3 heads cannot be shared by 4 GPUs"):
        ts.GPT.from_pretrained(tmp_path, devices=4)


def test_text_and_tokens(nano: Path) -> None:
    model = ts.GPT.from_pretrained(nano)
    assert model.encode("né") == [110, 195, 169] and model.decode([110, 195, 169]) == "né"


def test_mistakes_are_errors_before_anything_is_compiled(nano: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = ts.GPT.from_pretrained(nano, on="cpu")
    monkeypatch.setattr("toolchain.compiling.pipeline.compile_entries", lambda *_, **__: pytest.fail("it compiles"))
    for options, message in (({"top_k": 0}, "top_k is 0"), ({"max_new_tokens": 500}, "context of 128")):
        with pytest.raises(ts.UsageError, match=message):
            model.stream("a", **options)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ts.UsageError, match="empty"):
        model.generate("")
    with pytest.raises(ts.UsageError, match="129 tokens are more than the context"):
        model.logits(np.zeros(129, np.int32))
    with pytest.raises(ts.UsageError, match=r"got float64\[2\]"):
        model.logits([0.5, 1])
    with pytest.raises(TypeError, match="top_q"):
        model.stream("a", top_q=1)  # pyright: ignore[reportCallIssue]
    for options, message in (({"dtype": "int8"}, "no dtype 'int8'"), ({"source": "cuda"}, "no source 'cuda'")):
        with pytest.raises(ts.UsageError, match=message):
            ts.GPT.from_pretrained(nano, **options)
    with pytest.raises(ts.UsageError, match="is not a folder"):
        ts.GPT.from_pretrained(nano / "missing")


def test_a_closed_model_is_an_error(nano: Path) -> None:
    model = ts.GPT.from_pretrained(nano, on="cpu")
    model.close()
    model.close()
    with pytest.raises(ts.UsageError, match="used after it was closed"):
        model.generate("a")
