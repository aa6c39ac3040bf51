"""Text to tokens and back: bytes for the shipped model, byte pair encoding for GPT-2's."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

from toolchain.errors import UsageError

from .config import GPTConfig


class Decoder(Protocol):
    """Turns tokens into text one by one. A character that spans several tokens is held back until it is complete."""

    def push(self, token: int) -> str:
        """The text that a token completes, which may be empty."""
        ...

    def end(self) -> str:
        """What is left, if nothing follows."""
        ...


class Tokenizer(Protocol):
    """`end_of_text`: the token that ends a document."""

    vocab_size: int
    end_of_text: int

    def encode(self, text: str) -> list[int]:
        """The tokens of a text. Raises UsageError if it is not valid UTF-8."""
        ...

    def decoder(self) -> Decoder:
        """A decoder for one text."""
        ...

    def stream(self, tokens: Iterable[int]) -> Iterator[str]:
        """Yield text as the tokens arrive."""
        decoder = self.decoder()
        yield from filter(None, map(decoder.push, tokens))
        yield from filter(None, [decoder.end()])


def decode(tokenizer: Tokenizer, tokens: Iterable[int]) -> str:
    return "".join(tokenizer.stream(tokens))


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:  # Python turns invalid UTF-8 on a command line into lone surrogates
        raise UsageError(f"the text is not valid UTF-8: {text!r}") from error


class ByteTokenizer(Tokenizer):
    """Token n is byte n of the UTF-8 text; 256 ends a document."""

    vocab_size = 257
    end_of_text = 256

    def encode(self, text: str) -> list[int]:
        return list(_utf8(text))

    def decoder(self) -> Decoder:
        return _Bytes()


class _Bytes:
    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def push(self, token: int) -> str:
        return self._decoder.decode(bytes([token])) if token < ByteTokenizer.end_of_text else ""

    def end(self) -> str:
        return self._decoder.decode(b"", final=True)


class BytePairTokenizer(Tokenizer):
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

    def decoder(self) -> Decoder:
        return _BytePairs(self._encoding)


class _BytePairs:
    def __init__(self, encoding: Any) -> None:
        self._encoding = encoding
        self._pending: list[int] = []

    def push(self, token: int) -> str:
        self._pending.append(token)
        text: str = self._encoding.decode(self._pending, skip_special_tokens=True)
        if text.endswith("\ufffd"):  # the next token may complete the last character
            return ""
        self._pending = []
        return text

    def end(self) -> str:
        return self._encoding.decode(self._pending, skip_special_tokens=True) if self._pending else ""


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
