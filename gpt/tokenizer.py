"""Text to tokens and back: bytes for the shipped model, byte pair encoding for GPT-2's."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

from toolchain.errors import UsageError

from .config import GPTConfig


class Tokenizer(Protocol):
    """`end_of_text`: the token that ends a document."""

    vocab_size: int
    end_of_text: int

    def encode(self, text: str) -> list[int]:
        """The tokens of a text. Raises UsageError if it is not valid UTF-8."""
        ...

    def stream(self, tokens: Iterable[int]) -> Iterator[str]:
        """Yield text as the tokens arrive. A character that spans several tokens is held back until it is complete."""
        ...


def decode(tokenizer: Tokenizer, tokens: Iterable[int]) -> str:
    return "".join(tokenizer.stream(tokens))


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:  # Python turns invalid UTF-8 on a command line into lone surrogates
        raise UsageError(f"the text is not valid UTF-8: {text!r}") from error


class ByteTokenizer:
    """Token n is byte n of the UTF-8 text; 256 ends a document."""

    vocab_size = 257
    end_of_text = 256

    def encode(self, text: str) -> list[int]:
        return list(_utf8(text))

    def stream(self, tokens: Iterable[int]) -> Iterator[str]:
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        for token in tokens:
            if piece := decoder.decode(bytes([token])) if token < self.end_of_text else "":
                yield piece
        if rest := decoder.decode(b"", final=True):
            yield rest


class BytePairTokenizer:
    """GPT-2's, from its `tokenizer.json`."""

    def __init__(self, path: Path) -> None:
        try:
            from tokenizers import Tokenizer as Encoding
        except ImportError as error:
            raise UsageError(
                f"{path} needs the `tokenizers` package", hint="pip install tokenizers, or give tokens"
            ) from error
        try:
            self._encoding: Any = Encoding.from_str(path.read_text(encoding="utf-8"))  # the locale does not matter
        except (OSError, ValueError) as error:
            raise UsageError(f"{path} cannot be read: {error}") from error
        except Exception as error:  # its parser raises Exception itself
            raise UsageError(f"{path} is not a tokenizer: {error}") from error
        self._encoding.no_truncation()  # a file's truncation and padding are for training; a prompt is not changed
        self._encoding.no_padding()
        self.vocab_size: int = self._encoding.get_vocab_size()
        end = self._encoding.token_to_id("<|endoftext|>")
        if end is None:
            raise UsageError(f"{path} has no <|endoftext|>: it is not GPT-2's tokenizer")
        self.end_of_text: int = end

    def encode(self, text: str) -> list[int]:
        return list(self._encoding.encode(_utf8(text).decode()).ids)

    def stream(self, tokens: Iterable[int]) -> Iterator[str]:
        pending: list[int] = []
        for token in tokens:
            pending.append(token)
            text: str = self._encoding.decode(pending, skip_special_tokens=True)
            if not text.endswith("\ufffd"):  # otherwise the next token may complete the last character
                yield text
                pending = []
        if pending:
            yield self._encoding.decode(pending, skip_special_tokens=True)


def load_tokenizer(folder: Path, config: GPTConfig) -> Tokenizer:
    """The tokenizer of a checkpoint's folder: its `tokenizer.json`, or the byte tokenizer if there is no such file and
    the vocabulary has its size. Raises UsageError if the tokenizer has tokens that the model lacks."""
    path = folder / "tokenizer.json"
    if not path.exists() and config.vocab_size != ByteTokenizer.vocab_size:
        raise UsageError(f"{folder} has no tokenizer.json, and a vocabulary of {config.vocab_size} is not one of bytes")
    tokenizer: Tokenizer = BytePairTokenizer(path) if path.exists() else ByteTokenizer()
    if tokenizer.vocab_size > config.vocab_size:
        raise UsageError(
            f"{path} has {tokenizer.vocab_size} tokens, the model only {config.vocab_size}: they do not belong together"
        )
    return tokenizer
