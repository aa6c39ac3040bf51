"""Tile IR text to tokens."""

from __future__ import annotations

import re
from typing import NamedTuple

from ..source import Source


class Token(NamedTuple):
    """`kind`: value, symbol, type_alias, attr_alias, block, string, hex, float, int, shape, word, punct or end."""

    kind: str
    text: str
    at: int


# A `shape` is the leading sizes of `128x64xbf16` or, in a kernel source, of `BMxBKxT`. The element type after them is a
# separate token. Names of sizes are in capitals.
_TOKEN = re.compile(
    r"""(?P<space>(?:\s+|//[^\n]*)+)
    |(?P<value>%[A-Za-z0-9_$.-]+(?:\#\d+)?)
    |(?P<symbol>@[A-Za-z0-9_$.-]+|@"(?:[^"\\\n]|\\.)*")
    |(?P<type_alias>![A-Za-z_][A-Za-z0-9_$]*(?:\.[A-Za-z0-9_$]+)*)
    |(?P<attr_alias>\#(?:\d+|[A-Za-z_][A-Za-z0-9_$]*(?:\.[A-Za-z0-9_$]+)*))
    |(?P<block>\^[A-Za-z0-9_$.-]+)
    |(?P<string>"(?:[^"\\\n]|\\.)*")
    |(?P<hex>0x[0-9A-Fa-f]+\b)
    |(?P<shape>(?:(?:\d+|\?|[A-Z][A-Z0-9]*)x)+(?=[A-Za-z0-9?!]))
    |(?P<float>-?\d+\.\d*(?:[eE][-+]?\d+)?)
    |(?P<int>-?\d+)
    |(?P<word>[A-Za-z_][A-Za-z0-9_$]*(?:\.[A-Za-z_][A-Za-z0-9_$]*)*)
    |(?P<punct>->|[(){}\[\]<>,:=?])""",
    re.VERBOSE | re.ASCII,
)


def tokenize(source: Source) -> list[Token]:
    """All tokens, the last of kind `end`. Raises SourceError at a character with which no token begins."""
    tokens: list[Token] = []
    at, text = 0, source.text
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise source.error(at, f"unexpected character {text[at]!r}")
        kind = match.lastgroup
        if kind is not None and kind != "space":
            tokens.append(Token(kind, match.group(), at))
        at = match.end()
    tokens.append(Token("end", "end of file", len(text)))
    return tokens
