"""A parser that goes on after an error, so that one run shows several: at the next operation, or at the next entry.

What a wrong operation would have defined is not known from then on. An operation that uses it is left out without an
error of its own, and so are its results; and so is an operation whose body has an error.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition

from toolchain.errors import SourceError

from ..dialect.control import EntryOp, GlobalOp, ModuleOp
from ..dialect.ops import ALIASES, OPS
from ..source import Source
from .lexer import Token
from .toplevel import FileParser


@irdl_op_definition
class LeftOutOp(IRDLOperation):
    """Stands in the place of an operation that has an error."""

    name = "tilestack.left_out"


class _Consequence(SourceError):
    """An error that would not be there without an earlier one."""


class RecoveringParser(FileParser):
    """Parses a whole file. `errors`: what was found, in the order of the text. An entry or global that has an error is
    left out of its module; `lacks_globals` is True if a global is."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.errors: list[SourceError] = []
        self.lacks_globals = False
        self._unknown: set[str] = set()  # values that a wrong operation would have defined
        self._left_out = 0

    def all_modules(self) -> list[ModuleOp]:
        """What is right in the file. `errors` has the rest."""
        try:
            return self.modules()
        except SourceError as error:  # outside of entries there is nothing to go on with
            if not (self.errors and isinstance(error, _Consequence)):
                self.errors.append(error)
            return []

    def item(self) -> EntryOp | GlobalOp | None:
        start, before = self.position, self._left_out
        self._unknown.clear()
        try:
            found = super().item()
        except SourceError as error:
            self._note(error)
            self.scopes.clear()
            self.type_depth = 0
            self._skip_item(start)
            self.lacks_globals |= self.tokens[start].text.removeprefix("cuda_tile.") != "entry"
            return None
        return found if self._left_out == before else None

    def empty(self, start: Token) -> None:
        if not self.errors:
            super().empty(start)

    def operation(self) -> Operation:
        start, scopes, types = self.position, len(self.scopes), self.type_depth
        try:
            return super().operation()
        except SourceError as error:
            self._note(error)
            del self.scopes[scopes:]
            self.type_depth = types
            self._unknown.update(self._results(start))
            self._skip_operation(start)
            return LeftOutOp.create()

    def value(self) -> SSAValue:
        if self.token.kind == "value" and self.token.text.partition("#")[0] in self._unknown:
            raise _Consequence(f"{self.token.text} is not known after an earlier error")
        return super().value()

    def region(
        self, names: Sequence[Token] = (), types: Sequence[Attribute] = (), *, implied: str | None = None,
    ) -> Region:  # fmt: skip
        before = self._left_out
        found = super().region(names, types, implied=implied)
        if self._left_out != before:
            raise _Consequence("this body has an error")
        return found

    def ends(self, last: Operation | None) -> bool:
        return isinstance(last, LeftOutOp) or super().ends(last)

    def _note(self, error: SourceError) -> None:
        self._left_out += 1
        if not isinstance(error, _Consequence):
            self.errors.append(error)

    def _results(self, start: int) -> set[str]:
        """The names before the `=` of the operation that begins at this token."""
        found: set[str] = set()
        for token in self.tokens[start:]:
            if token.kind == "value":
                found.add(token.text)
            elif token.text not in (",", ":") and token.kind != "int":
                return found if token.text == "=" else set()
        return set()

    def _skip_operation(self, start: int) -> None:
        """Goes to the next operation of the body, or to the body's end."""
        self.position, depth = start, 0
        while True:
            token = self.take()
            depth += _depth(token)
            following = self.token
            if following.kind == "end" or (depth <= 0 and following.text == "}" and following.kind == "punct"):
                return
            if depth <= 0 and self._begins_line() and self._begins_operation():
                return

    def _begins_line(self) -> bool:
        before = self.tokens[self.position - 1]
        return "\n" in self.source.text[before.at + len(before.text) : self.token.at]

    def _begins_operation(self) -> bool:
        if self.token.kind == "value":
            return bool(self._results(self.position))
        return self.token.kind == "string" or self.token.text.removeprefix("cuda_tile.") in (*OPS, *ALIASES)

    def _skip_item(self, start: int) -> None:
        """Goes behind the item that begins at this token: behind its braces, or to what begins the next one."""
        self.position, depth = start, 0
        while self.take().kind != "end":
            last = self.tokens[self.position - 1]
            depth += _depth(last)
            if depth < 0:  # the module ends
                self.position -= 1
                return
            if depth == 0 and last.text == "}" and last.kind == "punct" and not self._in_attributes():
                return
            if depth == 0 and self.token.text.removeprefix("cuda_tile.") in ("entry", "global"):
                return
            if self.token.kind == "end":
                return

    def _in_attributes(self) -> bool:
        """True behind the braces of attributes, such as hints, with the body still to come."""
        return self.token.text in (">", "{", ",", ")")


def _depth(token: Token) -> int:
    return {"{": 1, "}": -1}.get(token.text, 0) if token.kind == "punct" else 0
