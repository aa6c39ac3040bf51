"""`repeat I = 0 to 6 { ... }`: the operations between the braces, once for each number, written out as tokens.

Within them `I` is the number and `%tile.I` the value `%tile.0`, `%tile.1`, ...; `%tile.I-1` is the value of the number
before. Tiles that stay in registers need this: a `for` cannot carry a list of values. A repeat has none inside it.
"""

from __future__ import annotations

import re

from ..source import Source
from ..text.cursor import Cursor
from ..text.lexer import Token

MAX_REPEATS = 256


def write_out(source: Source, tokens: list[Token]) -> list[Token]:
    """The tokens of a file with every `repeat` written out. Raises SourceError with file:line:col."""
    if not any(token.text == "repeat" for token in tokens):
        return tokens
    cursor = Cursor(source, tokens)
    found: list[Token] = []
    while cursor.token.kind != "end":
        if cursor.token.text == "repeat":
            found += _repeated(cursor)
        else:
            found.append(cursor.take())
    return [*found, cursor.token]


def _repeated(cursor: Cursor) -> list[Token]:
    start = cursor.take()
    name = cursor.kind("word", "a name in capitals").text
    cursor.expect("=")
    first = cursor.integer()
    cursor.expect("to")
    last = cursor.integer()
    if not 0 <= first <= last < MAX_REPEATS:
        cursor.fail(f"a repeat counts up, from 0 at the least to {MAX_REPEATS - 1} at the most", start)
    opening, depth, body = cursor.expect("{"), 1, list[Token]()
    while depth:
        if cursor.token.kind == "end":
            cursor.fail("'{' is never closed", opening)
        if cursor.token.text == "repeat":
            cursor.fail("a repeat stands in no other")
        body.append(cursor.take())
        if body[-1].kind == "punct":
            depth += (body[-1].text == "{") - (body[-1].text == "}")
    return [_numbered(token, name, number) for number in range(first, last + 1) for token in body[:-1]]


def _numbered(token: Token, name: str, number: int) -> Token:
    if token.kind == "word" and token.text == name:
        return token._replace(kind="int", text=str(number))
    if token.kind == "value":
        text = re.sub(rf"\.{name}-1$", f".{number - 1}", token.text)
        return token._replace(text=re.sub(rf"\.{name}$", f".{number}", text))
    return token
