"""Text to tokens and back: bytes for the shipped model, byte pair encodings for others."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from toolchain.errors import UsageError

from ..config import GPTConfig
from ..files.gguf import read_header
from ..files.stored import is_gguf
from . import gguf_tokenizer
from .gguf_tokenizer import library

TOKENIZER = "tokenizer.json"  # in a folder of Hugging Face's


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

    def encode(self, text: str, *, begin: bool = True) -> list[int]:
        """The tokens of a text, after the token that all texts of the model begin with, if it has one. `begin`: False
        for a text that has it already. Raises UsageError if the text is not valid UTF-8."""
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

    def encode(self, text: str, *, begin: bool = True) -> list[int]:
        del begin  # no text has such a token
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
    """A byte pair encoding. Special tokens in a text are taken for what they are called."""

    def __init__(self, encoding: Any, where: str, ends: Sequence[int] = ()) -> None:
        """`encoding`: a `tokenizers.Tokenizer`. `ends`: the tokens at which the model's texts end. Raises UsageError if
        there is none, and the encoding has no `<|endoftext|>`."""
        encoding.no_truncation()  # a file's truncation and padding are for training; a prompt is not changed
        encoding.no_padding()
        self._encoding = encoding
        self.vocab_size: int = encoding.get_vocab_size()
        end: int | None = encoding.token_to_id("<|endoftext|>")
        if end is None and not ends:
            raise UsageError(f"{where} has no <|endoftext|>, and the model no other token at which a text ends")
        self.end_of_text = ends[0] if end is None else end

    @classmethod
    def read(cls, path: Path, ends: Sequence[int] = ()) -> BytePairTokenizer:
        """That of a `tokenizer.json`. Raises UsageError."""
        tokenizers = library(str(path))
        try:
            encoding: Any = tokenizers.Tokenizer.from_str(path.read_text(encoding="utf-8"))  # in any locale
        except (OSError, ValueError) as error:
            raise UsageError(f"{path} cannot be read: {error}") from error
        except Exception as error:  # its parser raises Exception itself
            raise UsageError(f"{path} is not a tokenizer: {error}") from error
        return cls(encoding, str(path), ends)

    def encode(self, text: str, *, begin: bool = True) -> list[int]:
        return list(self._encoding.encode(_utf8(text).decode(), add_special_tokens=begin).ids)

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


def load_tokenizer(place: Path, config: GPTConfig) -> Tokenizer:
    """The tokenizer of a checkpoint: that of a GGUF file, or of a folder its `tokenizer.json`, or the byte tokenizer if
    there is no such file and the vocabulary has its size. Raises UsageError if the tokenizer has tokens that the model
    lacks."""
    path = place if is_gguf(place) else place / TOKENIZER
    if not path.exists() and config.vocab_size != ByteTokenizer.vocab_size:
        raise UsageError(f"{place} has no {TOKENIZER}, and a vocabulary of {config.vocab_size} is not one of bytes")
    tokenizer = _found(path, config.end_tokens) if path.exists() else ByteTokenizer()
    if tokenizer.vocab_size > config.vocab_size:
        raise UsageError(
            f"{path} has {tokenizer.vocab_size} tokens, the model only {config.vocab_size}: they do not belong together"
        )
    return tokenizer


def _found(path: Path, ends: Sequence[int]) -> Tokenizer:
    if is_gguf(path):
        return BytePairTokenizer(gguf_tokenizer.encoding(read_header(path)), str(path), ends)
    return BytePairTokenizer.read(path, ends)
