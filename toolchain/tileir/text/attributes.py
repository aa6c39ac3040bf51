"""MLIR's own spelling of attributes. The generic form of operations, `attributes {...}` and `#name = ...` use it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from xdsl.dialects.builtin import FunctionType, UnitAttr
from xdsl.ir import Attribute, TypeAttribute

from ..dialect import attrs, debug
from ..dialect import types as t
from ..numbers import parse_number
from .formats import ENUMS
from .lexer import Token
from .literals import DEFAULT_TYPES, MAX_DEPTH
from .locations import NODES, Locations, Number

DIALECT = "#cuda_tile."
ENUM_NAMES = {kind.name.removeprefix("cuda_tile."): kind for kind in ENUMS.values()}
MAX_PARTS = 10_000  # that an alias may stand for: aliases of aliases can double with every line
PREDICATES = ("div_by", "bounded", "same_elements")


@dataclass(frozen=True)
class Symbol:
    """`@name`"""

    name: str


Dictionary: TypeAlias = "Mapping[str, Value]"
Value: TypeAlias = (
    "Attribute | debug.Place | debug.Node | Number | Symbol | str | bool | list[Value] | Mapping[str, Value]"
)


class Attributes(Locations):
    """A cursor that also reads attributes as MLIR spells them. `#name` may stand before or after its definition."""

    depth = 0
    parts = 0  # attributes read so far, those inside of aliases each time
    resolving: tuple[str, ...] = ()

    @cached_property
    def _known(self) -> dict[str, tuple[Value, int]]:
        """What aliases that were read stand for, and how many attributes that is."""
        return {}

    @cached_property
    def attribute_aliases(self) -> dict[str, int]:
        """Where the attribute that each `#name` stands for begins."""
        found: dict[str, int] = {}
        for at, token in enumerate(self.tokens[:-1]):
            if token.kind == "attr_alias" and self.tokens[at + 1].text == "=":
                found.setdefault(token.text, at + 2)
        return found

    def skip_attribute_alias(self) -> None:
        """The definition `#name = ...`, which was found before: its value is read here, so that it is right even if it
        is used nowhere."""
        token = self.take()
        self.expect("=")
        if self.attribute_aliases[token.text] != self.position:
            self.fail(f"alias {token.text} is defined twice", token)
        if "." in token.text:
            self.fail("the name of an alias cannot contain '.'", token)
        self.attribute()

    def attribute(self) -> Value:
        self.depth += 1
        self.parts += 1
        if self.depth > MAX_DEPTH:
            self.fail(f"attributes nested deeper than {MAX_DEPTH}")
        found = self._attribute()
        self.depth -= 1
        return found

    def _attribute(self) -> Value:
        token = self.token
        match token.kind, token.text:
            case "attr_alias", text:
                return self._dialect_attribute() if text.startswith(DIALECT) else self._aliased()
            case (("int" | "float" | "hex"), text):
                self.take()
                return Number(text, token.kind, self.type() if self.accept(":") else None)
            case "string", text:
                self.take()
                if self.accept(":"):
                    self.type()
                return self.unquote(text, token)
            case "symbol", _:
                return Symbol(self.symbol())
            case _, "[":
                self.take()
                return self.listed(self.attribute, "]")
            case _, "{":
                return self.dictionary()
            case _, "true" | "false":
                self.take()
                if self.accept(":"):
                    self.type()
                return token.text == "true"
            case _, "unit":
                self.take()
                return UnitAttr()
            case _, "array":
                self.take()
                return self._array()
            case _, "dense":
                self.take()
                return self._dense_elements()
            case _, "loc":
                return self.located()
            case _, "(":
                return self.function_type()
            case _:
                return self.type()

    def dictionary(self) -> Mapping[str, Value]:
        """`{name = value, "another name" = value, flag}`"""
        self.expect("{")
        found: dict[str, Value] = {}

        def pair() -> None:
            token = self.token
            name = self._name("the name of an attribute")
            if name in found:
                self.fail(f"attribute {name} is given twice", token)
            found[name] = self.attribute() if self.accept("=") else UnitAttr()

        self.listed(pair, "}")
        return found

    def function_type(self) -> FunctionType:
        """`(types) -> (types)`, or one type after the arrow."""
        self.expect("(")
        inputs = self.listed(self.type, ")")
        self.expect("->")
        return FunctionType.from_lists(inputs, self.listed(self.type, ")") if self.accept("(") else [self.type()])

    def _array(self) -> list[Value]:
        self.expect("<")
        self.type()
        if self.accept(":"):
            return self.listed(self.attribute, ">")
        self.expect(">")
        return []

    def _dense_elements(self) -> attrs.DenseAttr:
        """`dense<[1, 2]> : tile<2xi32>`: the type stands behind the elements, so they are read when it is known."""
        self.expect("<")
        start, depth = self.position, 1
        while depth:
            token = self.take()
            if token.kind == "end":
                self.unexpected("'>'", token)
            depth += (token.text == "<") - (token.text == ">")
        self.expect(":")
        kind = self.tile_type()
        end, self.position = self.position, start
        found = self.elements(kind)
        self.expect(">")
        self.position = end
        return found

    # Aliases

    def _aliased(self) -> Value:
        token = self.take()
        if token.text not in self.attribute_aliases:
            self.fail(f"no attribute alias {token.text}", token)
        if token.text in self.resolving:
            self.fail(f"attribute alias {token.text} stands for itself", token)
        if token.text not in self._known:
            here, outer, parts = self.position, self.resolving, self.parts
            self.position, self.resolving = self.attribute_aliases[token.text], (*outer, token.text)
            found = self.attribute()
            self.position, self.resolving = here, outer
            self._known[token.text] = found, self.parts - parts
            self.parts = parts
        found, parts = self._known[token.text]
        self.parts += parts
        if parts > MAX_PARTS:
            self.fail(f"{token.text} stands for more than {MAX_PARTS} attributes", token)
        return found

    # Attributes of the dialect

    def _dialect_attribute(self) -> Value:
        token = self.take()
        name = token.text.removeprefix(DIALECT)
        if name in ENUM_NAMES:
            return self._enumeration(name)
        if name in PREDICATES:
            return self.predicate(name)
        if name == "ptr_attr":
            return attrs.StrAttr(self.ptr_attr())
        match name:
            case "optimization_hints":
                return self.hints()
            case "di_loc":
                return self.scoped()
            case _ if name in NODES:
                return self.node(name, token)
            case _:
                raise self.source.error(token.at, f"no attribute {token.text}")

    def _enumeration(self, name: str) -> Attribute:
        kind: Any = ENUM_NAMES[name]
        self.expect("<")
        words = [str(value) for value in kind.enum_type]
        found = kind(kind.enum_type(self.word_of(words, name.replace("_", " "))))
        self.expect(">")
        return found

    def predicate(self, name: str) -> Attribute:
        """What an `assume` promises, after its name."""
        self.expect("<")
        match name:
            case "div_by":
                divisor = self.integer()
                every = along = None
                if self.accept(","):
                    self.expect("every")
                    every = self.integer()
                    self.expect("along")
                    along = self.integer()
                found: Attribute = attrs.DivByAttr(divisor, every, along)
            case "bounded":
                low = self.optional_integer()
                self.expect(",")
                found = attrs.BoundedAttr(low, self.optional_integer())
            case _:
                found = attrs.SameElementsAttr(self.bracketed())
        self.expect(">")
        return found

    def dictionary_of(self, value: Value, token: Token) -> attrs.DictAttr:
        """What is said of a parameter, as the dialect keeps it, by name. `token`: where it stands."""
        if not isinstance(value, Mapping):
            self.fail("expected a dictionary", token)
        return attrs.DictAttr(tuple((name, self._kept(name, item, token)) for name, item in sorted(value.items())))

    def _kept(self, name: str, value: Value, token: Token) -> Attribute:
        match value:
            case bool():
                return attrs.BoolAttr(value)
            case str():
                return attrs.StrAttr(value)
            case Number():
                return self.number_of(value)
            case list():
                return attrs.AttrsAttr(tuple(self._kept(name, item, token) for item in value))
            case Mapping():
                return self.dictionary_of(value, token)
            case TypeAttribute() | attrs.HintsAttr():
                return value
            case attrs.DivByAttr() | attrs.BoundedAttr() | attrs.SameElementsAttr():
                return value
            case _:
                raise self.source.error(token.at, f"{name} has a value that bytecode cannot hold")

    def number_of(self, value: Value) -> attrs.NumberAttr:
        """A literal with its type, such as an identity of a reduction. Without one it is of MLIR's default type."""
        if isinstance(value, bool):
            value = Number(str(value).lower(), "word", None)
        kind = (value.type or DEFAULT_TYPES[value.kind]) if isinstance(value, Number) else None
        if not isinstance(value, Number) or kind is None or kind not in t.SCALARS:
            self.fail("expected a number and its type", self.tokens[self.position - 1])
        try:
            return attrs.NumberAttr(parse_number(value.text, value.kind, kind), kind)
        except ValueError as error:
            self.fail(str(error), self.tokens[self.position - 1])
