"""Numbers, dense constants and hints, as a cursor reads them."""

from __future__ import annotations

from xdsl.ir import Attribute

from ..dialect import attrs
from ..dialect import types as t
from ..numbers import dense_bytes, parse_number, splat_bytes
from .cursor import Cursor
from .lexer import Token

MAX_DEPTH = 64  # of nested brackets
DEFAULT_TYPES = {"word": t.i1, "float": t.f64, "int": t.i64, "hex": t.i64}  # of a literal that says none, as in MLIR


class Literals(Cursor):
    """A cursor that also reads the values of constants and hints. `overflows`: whether a float that is too large for
    its type is read as an infinity, as MLIR does; otherwise it is an error."""

    overflows = False

    def number(self, kind: Attribute) -> int:
        """The bits of a literal of a scalar type."""
        token = self.take()
        text, spelled = token.text, token.kind
        if spelled == "word" and text.isupper():
            text, spelled = str(self.constant(text, token)), "int"
        try:
            return parse_number(text, spelled, kind, overflows=self.overflows)
        except ValueError as error:
            self.fail(str(error), token)

    def dense(self) -> attrs.DenseAttr:
        """`<f32: 0.0> : tile<4xf32>`: the value of a constant, with its type."""
        self.expect("<")
        token = self.token
        element = self.type()
        if element not in t.SCALARS:
            self.fail(f"a constant cannot have type {t.spell(element)}", token)
        self.expect(":")
        start = self.token
        shape: list[int] = []
        elements = self._nested(element, shape, 0)
        self.expect(">")
        self.expect(":")
        token = self.token
        kind = self.tile_type()
        if kind.element_type != element:
            self.fail(f"the value is {t.spell(element)}, but its type has {t.spell(kind.element_type)}", token)
        return self._dense(start, shape, elements, kind)

    def elements(self, kind: t.TileType) -> attrs.DenseAttr:
        """The value of a constant whose type is known already."""
        start = self.token
        shape: list[int] = []
        return self._dense(start, shape, self._nested(kind.element_type, shape, 0), kind)

    def _dense(self, start: Token, shape: list[int], elements: list[int], kind: t.TileType) -> attrs.DenseAttr:
        element = kind.element_type
        if start.text != "[":
            return attrs.DenseAttr(splat_bytes(elements[0], element), kind)
        if tuple(shape) != kind.shape:
            self.fail(f"the value has shape {shape}, but the type has {list(kind.shape)}", start)
        if len(elements) == 1:
            return attrs.DenseAttr(splat_bytes(elements[0], element), kind)
        return attrs.DenseAttr(dense_bytes(elements, element), kind)

    def _nested(self, element: Attribute, shape: list[int], depth: int) -> list[int]:
        if depth > MAX_DEPTH:
            self.fail(f"brackets nested deeper than {MAX_DEPTH}")
        token = self.token
        if not self.accept("["):
            if depth != len(shape):
                self.fail("the rows of the value differ in depth", token)
            return [self.number(element)]
        if depth == len(shape):
            shape.append(-1)
        rows = self.listed(lambda: self._nested(element, shape, depth + 1), "]")
        if shape[depth] not in (-1, len(rows)):
            self.fail("the rows of the value differ in length", token)
        shape[depth] = len(rows)
        return [bits for row in rows for bits in row]

    def hints(self) -> attrs.HintsAttr:
        """`<sm_90 = {occupancy = 2}, default = {}>`"""
        self.expect("<")
        return attrs.HintsAttr(tuple(self.listed(self._architecture, ">")))

    def _architecture(self) -> tuple[str, tuple[tuple[str, int | bool], ...]]:
        name = self._name("an architecture such as sm_90, or default")
        self.expect("=")
        self.expect("{")
        return name, tuple(self.listed(self._hint, "}"))

    def _name(self, wanted: str) -> str:
        """A name: a word, or any other text in quotes."""
        token = self.token
        if token.kind != "string":
            return self.kind("word", wanted).text
        return self.unquote(self.take().text, token)

    def _hint(self) -> tuple[str, int | bool]:
        name = self._name("a hint")
        self.expect("=")
        if self.token.kind == "word":
            return name, self.word_of(("true", "false"), "hint's value") == "true"
        value = self.integer()
        if self.accept(":"):  # MLIR may write its type; hints have none here
            self.type()
        return name, value
