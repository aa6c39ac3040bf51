"""The colours of MLIR."""

from __future__ import annotations

from pygments.token import Comment, Error, Keyword, Name, Number

from ci.site.lexer import MlirLexer
from toolchain.knobs import ROOT


def test_words_get_their_colours() -> None:
    text = "entry @f(%a: tile<4x8xf32>) {  // a comment\n  %c:2 = addf %a, %b#1 rounding<zero> : tile<4xf32>\n}"
    found = {value: kind for kind, value in MlirLexer().get_tokens(text)}
    assert found["addf"] == found["entry"] == Keyword and found["tile"] == Keyword.Type
    assert found["@f"] == Name.Function and found["%a"] == found["%b#1"] == Name.Variable
    assert found["// a comment"] == Comment.Single and found["4"] == Number


def test_every_kernel_is_read_whole() -> None:
    for path in (ROOT / "kernels_mlir").glob("*.mlir"):
        text = path.read_text()
        tokens = list(MlirLexer(stripnl=False).get_tokens(text))
        assert "".join(value for _, value in tokens) == text
        assert all(kind is not Error for kind, _ in tokens)
