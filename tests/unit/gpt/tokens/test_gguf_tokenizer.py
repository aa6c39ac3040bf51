"""Tokenizers in GGUF files: each is made of a `tokenizers.Tokenizer`, and must do what that does."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from gpt.config import LLAMAS
from gpt.files.gguf import read_header
from gpt.tokens.gguf_tokenizer import special
from gpt.tokens.tokenizer import decode, load_tokenizer
from toolchain.errors import UsageError
from toolchain.pinned.models import find

from ..gguf_bytes import write

TEXTS = (
    "Once upon a time in 1984, a café: 日本 🙂\n\n  I'LL say: x=12345½; don't\t\tstop   ", "é e\u0301 ² ٣٤", "", " ",
    "\r\n a", "<|im_start|>user\nonce<|im_end|>\n", "a<tool>b",
)  # fmt: skip
CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def trained(pre: Any, normalizer: Any = None) -> Any:
    """A small encoding, with a word of its own and tokens that no text holds."""
    made: Any = Tokenizer(models.BPE())
    if normalizer is not None:
        made.normalizer = normalizer
    made.pre_tokenizer = pre
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer: Any = trainers.BpeTrainer(
        vocab_size=400, special_tokens=CONTROL, initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator(["once upon a time in 1984 there was a café, don't stop, 12345"] * 3, trainer)
    made.add_tokens([AddedToken("<tool>", normalized=False)])
    return made


def keys(encoding: Any, how: str, **change: Any) -> dict[str, Any]:
    row = json.loads(encoding.to_str())
    tokens = [
        token for token, _ in sorted(encoding.get_vocab(with_added_tokens=True).items(), key=lambda pair: pair[1])
    ]
    types = [3 if token in CONTROL else 4 if token == "<tool>" else 1 for token in tokens]
    found = {
        "model": "gpt2", "pre": how, "tokens": tokens, "token_type": np.array(types, np.int32),
        "merges": [" ".join(pair) for pair in row["model"]["merges"]], "bos_token_id": 1, "eos_token_id": 2, **change,
    }  # fmt: skip
    return {f"tokenizer.ggml.{name}": value for name, value in found.items() if value is not ...}


def level(**options: Any) -> Any:
    return pre_tokenizers.ByteLevel(add_prefix_space=False, **options)


def words(numbers: str) -> Any:
    cut = (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|" + numbers +
        r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    )  # fmt: skip
    split: Any = pre_tokenizers.Split(Regex(cut), "isolated")
    return pre_tokenizers.Sequence([split, level(use_regex=False)])


@pytest.fixture
def digits_apart() -> Any:
    digits: Any = pre_tokenizers.Digits(individual_digits=True)
    return trained(pre_tokenizers.Sequence([digits, level()]))


def read(path: Path, row: dict[str, Any], vocabulary: int = 500) -> Any:
    file = write(path / "a.gguf", row, {})
    return load_tokenizer(file, replace(LLAMAS["nano"], vocab_size=vocabulary, end_tokens=(2,)))


def test_digits_apart(tmp_path: Path, digits_apart: Any) -> None:
    found = read(tmp_path, keys(digits_apart, "smollm"))
    for text in TEXTS:
        assert found.encode(text) == digits_apart.encode(text).ids
    assert [found.encode(digit)[0] for digit in "1984"] == found.encode("1984")
    assert found.encode("<|im_end|>") == [2] and decode(found, found.encode(TEXTS[0])) == TEXTS[0]
    assert found.end_of_text == 0 and found.vocab_size == digits_apart.get_vocab_size()


@pytest.mark.parametrize("pre", ["gpt-2", "llama-bpe", "qwen2"])
def test_other_ways_to_cut_a_text(tmp_path: Path, pre: str) -> None:
    cut = {"gpt-2": level(), "llama-bpe": words(r"\p{N}{1,3}"), "qwen2": words(r"\p{N}")}[pre]
    encoding = trained(cut, normalizers.NFC() if pre == "qwen2" else None)
    found = read(tmp_path, keys(encoding, pre, add_bos_token=False))
    for text in TEXTS:
        assert found.encode(text) == encoding.encode(text).ids


def test_the_token_that_a_text_begins_with(tmp_path: Path, digits_apart: Any) -> None:
    plain = digits_apart.encode("once").ids
    for pre, change, begins in (
        ("smollm", {}, False), ("smollm", {"add_bos_token": True}, True), ("llama-bpe", {}, True),
        ("llama-bpe", {"add_bos_token": False}, False), ("llama-bpe", {"bos_token_id": ...}, False),
    ):  # fmt: skip
        found = read(tmp_path, keys(digits_apart, pre, **change))
        assert found.encode("once") == [1] * begins + plain
        assert found.encode("once", begin=False) == plain


def test_special_tokens_by_name(tmp_path: Path, digits_apart: Any) -> None:
    file = read_header(write(tmp_path / "a.gguf", keys(digits_apart, "smollm"), {}))
    assert (special(file, "bos"), special(file, "eos"), special(file, "unknown")) == (
        "<|im_start|>",
        "<|im_end|>",
        None,
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model": "llama"}, "tokenizer.ggml.model is 'llama'; read here is 'gpt2'"),
        ({"model": ...}, "tokenizer.ggml.model is None"),
        ({"pre": "tekken"}, "tokenizer.ggml.pre is 'tekken'; read here are smollm"),
        ({"tokens": ...}, "tokenizer.ggml.tokens is None, not a list of texts"),
        ({"tokens": ["a", "a"]}, "has 2 tokens, 1 different"),
        ({"token_type": 3}, "0 with a type"),
        ({"token_type": np.zeros(3, np.int32)}, "3 with a type"),
        ({"merges": np.zeros(3, np.int32)}, "tokenizer.ggml.merges is array"),
        ({"merges": ["nowhere tobefound"]}, "its tokenizer is damaged: .*"),
        ({"merges": ["ab"]}, "its tokenizer is damaged: .*"),
        ({"bos_token_id": 10**6}, "bos_token_id is 1000000, which is none of"),
        ({"add_bos_token": "yes"}, "add_bos_token is 'yes', which is neither true nor false"),
        ({"add_eos_token": True}, "add_eos_token is True"),
    ],
)
def test_a_tokenizer_that_is_not_read(tmp_path: Path, digits_apart: Any, change: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said) as raised:
        read(tmp_path, keys(digits_apart, "smollm", **change))
    assert "\n" not in raised.value.args[0]


def test_more_tokens_than_the_model(tmp_path: Path, digits_apart: Any) -> None:
    with pytest.raises(UsageError, match="they do not belong together"):
        read(tmp_path, keys(digits_apart, "smollm"), 100)


@pytest.mark.needs("network")
@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("What is a GPU?", [1780, 314, 253, 29593, 47]),
        ("In 2024", [788, 216, 34, 32, 34, 36]),
        ("I don't", [57, 1326, 982]),
        ("<|im_start|>user\nHi<|im_end|>\n", [1, 4093, 198, 26843, 2, 198]),
        ("½ ²", [216, 16738]),
    ],
)
def test_smollm2(text: str, tokens: list[int]) -> None:
    found = load_tokenizer(find("smollm2"), replace(LLAMAS["smollm2"], end_tokens=(2,)))
    assert found.encode(text) == tokens
