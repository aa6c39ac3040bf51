"""Locations and debug scopes as MLIR and the public `cuda_tile` dialect spell them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from xdsl.ir import Attribute

from ..dialect import debug
from .lexer import Token
from .literals import Literals

T = TypeVar("T")
NODES = ("di_file", "di_compile_unit", "di_subprogram", "di_lexical_block")
_FIELDS = {"linkageName": "linkage_name", "compileUnit": "compile_unit", "scopeLine": "scope_line"}


@dataclass(frozen=True)
class Number:
    """A literal with the type that follows it, if one does."""

    text: str
    kind: str
    type: Attribute | None


class Locations(Literals):
    """A cursor that also reads locations. `attribute` is `Attributes.attribute`, which these may contain."""

    def attribute(self) -> object:
        raise NotImplementedError

    def trailing_location(self) -> debug.Place | None:
        """`loc(...)` behind an operation, or nothing."""
        following = self.tokens[self.position + 1] if self.token.kind != "end" else self.token
        return self.located() if self.token.text == "loc" and following.text == "(" else None

    def located(self) -> debug.Place:
        self.expect("loc")
        self.expect("(")
        found = self.place()
        self.expect(")")
        return found

    def place(self) -> debug.Place:
        """What stands inside `loc(...)`."""
        token = self.token
        if token.kind == "attr_alias":
            return self._of(debug.PLACES, "a location", self.attribute())
        if token.kind == "string":
            return self._named_place()
        self.take()
        match token.text:
            case "unknown":
                return debug.UNKNOWN
            case "loc":
                self.position -= 1
                return self.located()
            case "fused":
                metadata = None
                if self.accept("<"):
                    start = self.position
                    self.attribute()
                    metadata = "".join(part.text for part in self.tokens[start : self.position])
                    self.expect(">")
                self.expect("[")
                return debug.Fused(tuple(self.listed(self.place, "]")), metadata)
            case "callsite":
                self.expect("(")
                callee = self.place()
                self.expect("at")
                caller = self.place()
                self.expect(")")
                return debug.CallSite(callee, caller)
            case _:
                raise self.source.error(
                    token.at,
                    f"{token.text!r} does not begin a location",
                    hint='a location is unknown, "file":1:2, "name"(...), fused[...] or callsite(... at ...)',
                )

    def _named_place(self) -> debug.Place:
        token = self.take()
        text = self.unquote(token.text, token)
        if not self.accept(":"):
            if not self.accept("("):
                return debug.Named(text, None)
            inner = self.place()
            self.expect(")")
            return debug.Named(text, inner)
        line = self.integer("a line")
        self.expect(":")
        start = debug.Location(text, line, self.integer("a column"))
        if not self.accept("to"):
            return start
        end_line = line if self.token.text == ":" else self.integer("a line")
        self.expect(":")
        return debug.Range(start, end_line, self.integer("a column"))

    def scoped(self) -> debug.Scoped:
        """`<loc("file":1:2) in #scope>`"""
        self.expect("<")
        at = self.token
        place = self.place()
        if not isinstance(place, debug.Location):
            self.fail("the location inside a scope is a file, a line and a column", at)
        self.expect("in")
        scope = self._of((debug.Subprogram, debug.LexicalBlock), "a subprogram or lexical block", self.attribute())
        self.expect(">")
        return debug.Scoped(place, scope)

    def node(self, name: str, token: Token) -> debug.Node:
        self.expect("<")
        if name == "di_file":
            file = self._string()
            self.expect("in")
            directory = self._string()
            self.expect(">")
            return debug.File(file, directory)
        given: dict[str, object] = {}

        def field() -> None:
            key = self.kind("word", "a field").text
            self.expect("=")
            given[key] = self.attribute()

        self.listed(field, ">")
        fields: dict[str, Callable[[object], object]] = {
            "file": lambda value: self._of((debug.File,), "a di_file", value),
            "scope": lambda value: self._of((debug.Subprogram, debug.LexicalBlock), "a scope", value),
            "compileUnit": lambda value: self._of((debug.CompileUnit,), "a di_compile_unit", value),
            "name": lambda value: self._of((str,), "a string", value),
            "linkageName": lambda value: self._of((str,), "a string", value),
            **dict.fromkeys(("line", "column", "scopeLine"), self._small),
        }
        kinds = {"di_compile_unit": debug.CompileUnit, "di_subprogram": debug.Subprogram}
        if unknown := given.keys() - fields.keys():
            self.fail(f"{name} has no field {min(unknown)}", token)
        values = {_FIELDS.get(key, key): fields[key](value) for key, value in given.items()}
        try:
            return kinds.get(name, debug.LexicalBlock)(**values)  # pyright: ignore[reportArgumentType]
        except TypeError:
            self.fail(f"{name} does not have the fields {', '.join(given) or 'that it needs'}", token)

    def _string(self) -> str:
        token = self.kind("string", "a string")
        return self.unquote(token.text, token)

    def _small(self, value: object) -> int:
        number = self._of((Number,), "a number", value)
        found = int(number.text, 0) if number.kind in ("int", "hex") else -1
        if not 0 <= found < 1 << 32:
            self.fail(f"{number.text} is not from 0 to 2^32 - 1", self.tokens[self.position - 1])
        return found

    def _of(self, kinds: tuple[type[T], ...], what: str, value: object) -> T:
        if not isinstance(value, kinds):
            self.fail(f"expected {what}", self.tokens[self.position - 1])
        return value
