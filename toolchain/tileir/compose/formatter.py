"""One layout for Tile IR text and kernel sources: what is between the tokens changes, tokens and comments never.

Lines stay where their writer broke them. Each is indented by two spaces for every open `{`, by four more if it goes on
with the operation above. At most one blank line separates others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ..dialect.ops import ALIASES, OPS
from ..source import Source
from ..text.lexer import Token, tokenize
from .library import KINDS

INDENT, CONTINUED = 2, 4
# Words that begin what is not an operation's name.
_OTHERS = ("entry", "global", "module", "builtin.module", "include", "sizes", "repeat", "call", "hole", *KINDS)
_BEGINS = frozenset([*OPS, *ALIASES, *_OTHERS])
_CLOSES = {")": "(", "]": "[", "}": "{"}
_PIECE = re.compile(r"//[^\n]*|\n")


@dataclass
class _Line:
    """`spaced`: for each token whether the source has a space before it. `comment`: behind the tokens, or alone."""

    tokens: list[Token] = field(default_factory=list[Token])
    spaced: list[bool] = field(default_factory=list[bool])
    comment: str = ""

    @property
    def blank(self) -> bool:
        return not (self.tokens or self.comment)


def format_text(text: str, *, filename: str) -> str:
    """The text in its layout; the layout of a result is itself. Raises SourceError at a character that Tile IR does not
    have."""
    source = Source(text, filename)
    tokens = tokenize(source)
    lines = list(_lines(text, tokens))
    made = "".join(f"{line}\n" for line in _laid_out(lines))
    if _content(made, filename) != _content(text, filename):
        raise AssertionError(f"{filename}: the layout would change what the text says")
    return made


def _content(text: str, filename: str) -> list[tuple[str, str]]:
    """Kinds and texts of the tokens, with the comments among them."""
    found: list[tuple[str, str]] = []
    for line in _lines(text, tokenize(Source(text, filename))):
        found += [(token.kind, token.text) for token in line.tokens]
        found += [("comment", line.comment)] * bool(line.comment)
    return found


def _lines(text: str, tokens: Sequence[Token]) -> Iterator[_Line]:
    line, at = _Line(), 0
    for token in tokens:
        between = text[at : token.at]
        for piece in _PIECE.findall(between):
            if piece == "\n":
                yield line
                line = _Line()
            else:
                line.comment = piece.rstrip()
        if token.kind != "end":
            line.tokens.append(token)
            line.spaced.append(bool(between))
        at = token.at + len(token.text)
    yield line


def _laid_out(lines: Sequence[_Line]) -> Iterator[str]:
    layout, blank, first = _Layout(), False, True
    for line in lines:
        if line.blank:
            blank = not first
            continue
        if blank:
            yield ""
        blank = first = False
        yield layout.place(line)


class _Layout:
    """Places lines one after another. It knows which brackets are open."""

    def __init__(self) -> None:
        self._open: list[tuple[str, int]] = []  # each with the indentation of what is inside
        self._statement = 0  # the indentation of the operation that the line above belongs to
        self._last: Token | None = None
        self._labelled = False  # the line above is a block's label

    def place(self, line: _Line) -> str:
        """The line with its indentation, without its end."""
        if not line.tokens:
            return " " * self._inside() + line.comment
        indent = self._indent(line.tokens)
        outside = self._open[-1][0] if self._open else ""
        for token in line.tokens:
            if token.text in _CLOSES and token.kind == "punct":
                self._close(_CLOSES[token.text])
            elif token.text in _CLOSES.values() and token.kind == "punct":
                inner = self._statement + INDENT if token.text == "{" else indent + CONTINUED
                self._open.append((token.text, inner))
        self._last, self._labelled = line.tokens[-1], line.tokens[0].kind == "block"
        comment = f"  {line.comment}" if line.comment else ""
        return " " * indent + _spelled(line, outside) + comment

    def _inside(self) -> int:
        return self._open[-1][1] if self._open else 0

    def _close(self, bracket: str) -> None:
        if self._open and self._open[-1][0] == bracket:  # a text that does not parse is formatted too
            self._open.pop()

    def _indent(self, tokens: Sequence[Token]) -> int:
        first = tokens[0]
        if first.kind == "block":
            self._statement = max(0, self._inside() - INDENT)
            return self._statement
        if first.kind == "punct" and first.text in _CLOSES:
            indent = max(0, self._inside() - (INDENT if first.text == "}" else CONTINUED))
            if first.text == "}":
                self._statement = indent
            return indent
        if self._open and self._open[-1][0] != "{":
            return self._inside()
        if self._goes_on(tokens):
            # A body, the arguments of a region and the end of a long attribute stand where the operation does.
            return self._statement + CONTINUED * (first.text not in ("(", "{", ">"))
        self._statement = self._inside()
        return self._statement

    def _goes_on(self, tokens: Sequence[Token]) -> bool:
        """True if a line that begins so belongs to the operation above."""
        if self._last is None or self._labelled or (self._last.kind == "punct" and self._last.text in "{}"):
            return False
        if self._last.kind == "punct" and self._last.text in (",", ":", "=", "->", "<", "("):
            return True
        first = tokens[0]
        match first.kind:
            case "punct":
                return True
            case "value" | "type_alias" | "attr_alias":
                return not any(token.kind == "punct" and token.text == "=" for token in tokens)
            case "word":
                return "." not in first.text and first.text not in _BEGINS
            case _:
                return False


def _spelled(line: _Line, outside: str) -> str:
    """The tokens of a line with what is between them. `outside`: the bracket that is open where the line begins."""
    tokens, written = line.tokens, [line.tokens[0].text]
    assigned = tokens[0].kind in ("value", "type_alias", "attr_alias")  # the first `=` is behind results or a name
    before_equals = 0
    open_ = [outside]
    for before, token, spaced in zip(tokens, tokens[1:], line.spaced[1:], strict=False):
        if before.kind == "punct" and before.text in _CLOSES.values():
            open_.append(before.text)
        elif before.kind == "punct" and before.text in _CLOSES and len(open_) > 1:
            open_.pop()
        gap = _gap(before, token, spaced, open_[-1])
        if token.kind == "punct" and token.text == "=":
            before_equals = gap = max(gap, int(assigned))
            assigned = False
        elif before.kind == "punct" and before.text == "=":
            gap = before_equals  # the same on both sides
        written.append(" " * gap + token.text)
    return "".join(written)


def _gap(before: Token, token: Token, spaced: bool, bracket: str) -> int:
    """How many spaces stand between two tokens of a line. `spaced`: whether there is one now. `bracket`: which is
    open around them."""
    last = before.text if before.kind == "punct" else ""
    following = token.text if token.kind == "punct" else ""
    if before.kind == token.kind == "symbol":  # `@hole = @fragment  @hole = @fragment`
        return 2
    if "->" in (last, following):
        return 1
    if following in (",", ")", "]", ">") or last in ("(", "[", "<"):
        return 0
    if last == ",":  # types have none: `strides=[?,1]`
        return int(spaced or bracket != "[")
    if following == ":" and before.kind == "value" and bracket == "(":  # a parameter
        return 0
    if following == ":" and last in (">", "]") and bracket in ("", "{"):  # `)` may be the end of a block's label
        return 1
    if following == "{":
        return int(last != "{")
    if last == "}" and token.kind == "word":  # `} else`
        return 1
    if last == ":" and token.kind != "int":  # before a number it may be `%both:2`, or a line of a location
        return 1
    return int(spaced)
