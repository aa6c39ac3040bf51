"""Colours for MLIR in the site's code blocks. Pygments has none for it."""

from __future__ import annotations

from typing import Any, ClassVar

from pygments.lexer import RegexLexer, words
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Text, Token
from sphinx.application import Sphinx

from toolchain.tileir.dialect.ops import OPS

_OURS = ("module", "entry", "global", "kernel", "skeleton", "fragment", "hole", "call", "sizes", "include", "repeat")


class MlirLexer(RegexLexer):
    """MLIR's text: the operations of Tile IR are keywords, `%x` a variable, `@f` a symbol, `!t` a type, `#a` a name."""

    name = "MLIR"
    aliases = ("mlir",)
    tokens: ClassVar[dict[str, list[Any]]] = {
        "root": [
            (r"//.*?$", Comment.Single),
            (r"\s+", Text.Whitespace),
            (r'"(?:[^"\\]|\\.)*"', String),
            (r"%[\w.]+(?:#\d+)?", Name.Variable),
            (r"@[\w.]+", Name.Function),
            (r"[!#^][\w.]+", Name.Decorator),
            (words(sorted((*OPS, *_OURS), key=len, reverse=True), prefix=r"\b(?:cuda_tile\.)?", suffix=r"\b"), Keyword),
            (r"\b(?:tile|ptr|token|\w+_view)\b", Keyword.Type),
            (r"-?0x[0-9a-fA-F]+|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?=x|\b)", Number),
            (r"->|[=*?+-]", Operator),
            (r"[\[\](){}<>:,.|]", Punctuation),
            (r"[^\W\d]\w*", Name),
            (r".", Token.Text),
        ]
    }


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_lexer("mlir", MlirLexer)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
