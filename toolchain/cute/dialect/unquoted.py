"""The older text of values in types, without quotes: `!cute.layout<(64,128),(1,64)>`, `!cute.coord<(0,_)>`.

It begins with a parenthesis, a bracket, a swizzle's S, `?` or `_`: a number is quoted. Between shape and stride stands
a comma or a colon, between the parts of a tile a comma: `!cute.tile<[64,_]>`. Strides along modes (`1@0`) have no such
text: quote them.
"""

from __future__ import annotations

from xdsl.parser import AttrParser


def unquoted(parser: AttrParser) -> str:
    """The text of a value as it stands in quotes."""
    if parser.parse_optional_keyword("S") is not None:
        return _composed(parser, _swizzle(parser))
    if parser.parse_optional_punctuation("["):
        parts = [_part(parser)]
        while parser.parse_optional_punctuation(","):
            parts.append(_part(parser))
        parser.parse_punctuation("]")
        return f"[{';'.join(parts)}]"
    shape = _tuple(parser)
    if parser.parse_optional_punctuation(",") is None and parser.parse_optional_punctuation(":") is None:
        return shape
    return _composed(parser, f"{shape}:{_tuple(parser)}")


def literal(parser: AttrParser) -> str:
    """A value in quotes, or in the older text. Raises ParseError for a number without quotes."""
    place, text = parser.pos, parser.parse_optional_str_literal()
    if text is not None:
        return text
    if parser.parse_optional_integer(allow_boolean=False) is not None:
        parser.raise_error('expected a value in quotes, such as "32:1"', place, parser.pos)
    return unquoted(parser)


def tuple_literal(parser: AttrParser) -> str:
    """A tuple in quotes or not, with no stride behind it."""
    text = parser.parse_optional_str_literal()
    return _tuple(parser) if text is None else text


def _swizzle(parser: AttrParser) -> str:
    numbers = parser.parse_comma_separated_list(parser.Delimiter.ANGLE, parser.parse_integer)
    return f"S<{','.join(map(str, numbers))}>"


def _composed(parser: AttrParser, inner: str) -> str:
    """`inner o offset o outer`, if more follows."""
    if parser.parse_optional_keyword("o") is None:
        return inner
    offset = _tuple(parser)
    parser.parse_keyword("o")
    outer = _tuple(parser)
    parser.parse_punctuation(":")
    return f"{inner} o {offset} o {outer}:{_tuple(parser)}"


def _part(parser: AttrParser) -> str:
    """A part of a tile: a size, a layout, or `_`."""
    shape = _tuple(parser)
    return f"{shape}:{_tuple(parser)}" if parser.parse_optional_punctuation(":") else shape


def _tuple(parser: AttrParser) -> str:
    if parser.parse_optional_punctuation("("):
        parts = [_tuple(parser)]
        while parser.parse_optional_punctuation(","):
            parts.append(_tuple(parser))
        parser.parse_punctuation(")")
        return "(" + ",".join(parts) + ")"
    if parser.parse_optional_punctuation("?"):
        return "?" + _known_of(parser)
    if parser.parse_optional_keyword("_") is not None:
        return "_"
    return str(parser.parse_integer(allow_boolean=False))


def _known_of(parser: AttrParser) -> str:
    """The width and the divisibility of a number that is not known: `{i64 div=16}`."""
    if parser.parse_optional_punctuation("{") is None:
        return ""
    words: list[str] = []
    while parser.parse_optional_punctuation("}") is None:
        word = parser.parse_identifier()
        if parser.parse_optional_punctuation("="):
            word += f"={parser.parse_integer(allow_boolean=False)}"
        words.append(word)
    return "{" + " ".join(words) + "}"
