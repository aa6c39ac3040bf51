"""The tokenizer in a GGUF file: a byte pair encoding, put together from its keys with Hugging Face's `tokenizers`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from toolchain.errors import UsageError

from ..files.gguf import GGUFFile
from ..files.keys import shown

_LIST = "tokenizer.ggml.tokens"
_CONTROL, _OWN = 3, 4  # types of tokens: those that no text holds, and words that were added
_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}NUMBERS| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
# How a text is cut before pairs are merged, by `tokenizer.ggml.pre`: as these models' tokenizer.json say.
_DIGITS_APART, _GPT2 = "digits", "gpt2"
_PRE: Mapping[str, str] = {
    "smollm": _DIGITS_APART, "gpt-2": _GPT2, "default": _GPT2,
    "llama-bpe": _WORDS.replace("NUMBERS", "{1,3}"), "qwen2": _WORDS.replace("NUMBERS", ""),
}  # fmt: skip
_WHOLE_WORDS = ("llama-bpe",)  # a word that is a token needs no merges
_COMPOSED = ("qwen2",)  # texts are put in Unicode's form NFC first
_BEGIN = ("llama-bpe",)  # a text begins with a token of its own, if the file does not say


def encoding(file: GGUFFile) -> Any:
    """The `tokenizers.Tokenizer` of a file. Raises UsageError for one that is missing, damaged or of another kind."""
    tokenizers = library(str(file.path))
    keys, where = file.keys, str(file.path)
    if (kind := keys.get("tokenizer.ggml.model")) != "gpt2":
        raise UsageError(f"{where}: tokenizer.ggml.model is {shown(kind)}; read here is 'gpt2', a byte pair encoding")
    pre = keys.get("tokenizer.ggml.pre")
    if not isinstance(pre, str) or pre not in _PRE:
        raise UsageError(f"{where}: tokenizer.ggml.pre is {shown(pre)}; read here are {', '.join(_PRE)}")
    tokens, merges = texts(file, _LIST), texts(file, "tokenizer.ggml.merges")
    given = keys.get("tokenizer.ggml.token_type")
    types: list[int] = given.tolist() if isinstance(given, np.ndarray) else []
    if len(types) != len(tokens) or len(set(tokens)) != len(tokens):
        different = len(set(tokens))
        raise UsageError(f"{where}: {_LIST} has {len(tokens)} tokens, {different} different, {len(types)} with a type")
    if _flag(file, "add_eos_token", False):
        raise UsageError(f"{where}: tokenizer.ggml.add_eos_token is True; here a prompt has no end")
    try:
        return _made(tokenizers, file, pre, tokens, merges, types)
    except UsageError:
        raise
    except Exception as error:  # what the package raises itself, of damaged merges
        raise UsageError(f"{where}: its tokenizer is damaged: {' '.join(str(error).split())}") from error


def _made(
    tokenizers: Any, file: GGUFFile, pre: str, tokens: Sequence[str], merges: Sequence[str], types: Sequence[int]
) -> Any:
    numbers = {token: number for number, token in enumerate(tokens)}
    pairs = [tuple(merge.split(" ")) for merge in merges]
    if odd := next((merge for merge, pair in zip(merges, pairs, strict=True) if len(pair) != 2), None):
        raise UsageError(f"{file.path}: its tokenizer is damaged: {odd!r} is not a pair of tokens")
    made = tokenizers.Tokenizer(tokenizers.models.BPE(numbers, pairs, ignore_merges=pre in _WHOLE_WORDS))
    if pre in _COMPOSED:
        made.normalizer = tokenizers.normalizers.NFC()
    made.pre_tokenizer = _cut(_PRE[pre], tokenizers.pre_tokenizers, tokenizers.Regex)
    made.decoder = tokenizers.decoders.ByteLevel()
    for wanted, add in ((_CONTROL, made.add_special_tokens), (_OWN, made.add_tokens)):
        of_type = [token for token, kind in zip(tokens, types, strict=True) if kind == wanted]
        add([tokenizers.AddedToken(token, normalized=False) for token in of_type])
    begin = special(file, "bos")
    if begin is not None and _flag(file, "add_bos_token", pre in _BEGIN):
        made.post_processor = tokenizers.processors.TemplateProcessing(
            single=[begin, "$A"], special_tokens=[(begin, numbers[begin])]
        )
    return made


def _flag(file: GGUFFile, name: str, usual: bool) -> bool:
    key = f"tokenizer.ggml.{name}"
    value = file.keys.get(key, usual)
    if not isinstance(value, bool):
        raise UsageError(f"{file.path}: {key} is {shown(value)}, which is neither true nor false")
    return value


def _cut(how: str, pre: Any, regex: Any) -> Any:
    """The parts of `tokenizers` that cut a text in one of the ways of _PRE."""
    if how == _GPT2:
        return pre.ByteLevel(add_prefix_space=False)
    if how == _DIGITS_APART:
        return pre.Sequence([pre.Digits(individual_digits=True), pre.ByteLevel(add_prefix_space=False)])
    words = pre.Split(regex(how), "isolated")
    return pre.Sequence([words, pre.ByteLevel(add_prefix_space=False, use_regex=False)])


def library(where: str) -> Any:
    """The package `tokenizers`. Raises UsageError where it is not installed."""
    try:
        import tokenizers
    except ImportError as error:
        raise UsageError(
            f"{where} needs the `tokenizers` package", hint="pip install tokenizers, or give tokens"
        ) from error
    return tokenizers


def texts(file: GGUFFile, key: str) -> tuple[str, ...]:
    """A key's texts. Raises UsageError if it is not there, or something else."""
    found = file.keys.get(key)
    if not isinstance(found, tuple):
        raise UsageError(f"{file.path}: {key} is {shown(found)}, not a list of texts")
    return cast("tuple[str, ...]", found)


def special(file: GGUFFile, name: str) -> str | None:
    """The token that the file calls `name`, such as `bos`. Raises UsageError for one that is not in the vocabulary."""
    key = f"tokenizer.ggml.{name}_token_id"
    number, tokens = file.keys.get(key), texts(file, _LIST)
    if number is None:
        return None
    if not isinstance(number, int) or not 0 <= number < len(tokens):
        raise UsageError(f"{file.path}: {key} is {shown(number)}, which is none of {len(tokens)} tokens")
    return tokens[number]
