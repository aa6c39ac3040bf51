"""Tile IR text to a module of the dialect."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

from xdsl.dialects.builtin import DenseArrayBase, UnitAttr
from xdsl.dialects.builtin import i32 as builtin_i32
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import OptionalDef, OptPropertyDef, VarOperandDef, VarResultDef

from .. import location
from ..dialect import attrs, debug
from ..dialect import types as t
from ..dialect.base import TileOp
from ..dialect.ops import ALIASES, OPS
from ..source import Source
from .attributes import Attributes
from .formats import ENUMS, FORMATS, KEYWORDS, default
from .lexer import Token

MAX_DEPTH = 64  # of nested regions
MAX_RESULTS = 2**16  # of an operation: some have as many results as the text names


SPELLINGS: dict[str, Callable[[Parser], Operation]] = {}  # other forms of any operation; generic.py fills it
Build = Callable[["Parser", type[TileOp]], TileOp]
# Parsers for the operations that the table of formats cannot describe; irregular.py and structured.py fill it.
IRREGULAR: dict[str, Build] = {}


def spelled(*names: str) -> Callable[[Build], Build]:
    """Registers the decorated function as the parser of these operations."""

    def register(build: Build) -> Build:
        IRREGULAR.update(dict.fromkeys(names, build))
        return build

    return register


class Parser(Attributes):
    """A cursor that also knows the values in scope and builds operations."""

    def __init__(self, source: Source, tokens: list[Token] | None = None) -> None:
        super().__init__(source, tokens)
        self.scopes: list[dict[str, SSAValue]] = []
        self.more_operations: Mapping[str, Callable[[], Operation]] = {}  # of a language on top of Tile IR

    def place_of(self, op: Operation, start: Token) -> None:
        """Where an operation stands, which `loc(...)` behind it may say otherwise."""
        location.set(op, self.source.location(start.at))
        if (place := self.trailing_location()) is not None:
            debug.attach(op, place)

    def typed_name(self) -> tuple[Token, Attribute]:
        """`%name: type`, perhaps with a location, which nothing can use"""
        name = self.kind("value", "a value name such as %x")
        self.expect(":")
        kind = self.type()
        self.trailing_location()
        return name, kind

    def parameter(self) -> tuple[Token, Attribute, attrs.DictAttr]:
        """`%name: type {what is said of it}`, perhaps with a location"""
        name = self.kind("value", "a value name such as %x")
        self.expect(":")
        kind, token = self.type(), self.token
        said = self.dictionary_of(self.dictionary() if token.text == "{" else {}, token)
        self.trailing_location()
        return name, kind, said

    def block_arguments(self) -> list[tuple[Token, Attribute]]:
        """`^name(%a: type):` at the head of a block, or nothing."""
        if self.token.kind != "block":
            return []
        self.take()
        arguments = self.listed(self.typed_name, ")") if self.accept("(") else []
        self.expect(":")
        return arguments

    # Values

    @contextmanager
    def scope(self, values: Iterable[tuple[Token, SSAValue]] = ()) -> Generator[None]:
        """Values that are known inside a region, and those that it defines."""
        self.scopes.append({})
        for name, value in values:
            self.define(name, value)
        yield
        self.scopes.pop()

    def define(self, name: Token, value: SSAValue) -> None:
        text = name.text[1:]
        if any(text in scope for scope in self.scopes):
            self.fail(f"%{text} is already defined", name)
        self.scopes[-1][text] = value
        if not text.isdecimal():
            value.name_hint = text if SSAValue.is_valid_name(text) else None

    def value(self) -> SSAValue:
        token = self.kind("value", "a value such as %x")
        name = token.text[1:].removesuffix("#0")  # the first of several results has both names
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        known = [known for scope in self.scopes for known in scope]
        near = get_close_matches(name, known, 1)
        hint = f"did you mean %{near[0]}?" if near else None
        raise self.source.error(token.at, f"%{name} is not defined here", hint=hint)

    # Operations

    def _body(self, block: Block, implied: str | None, start: Token | None = None) -> None:
        """`{ operations }`. `implied`: the terminator that may be left out if it has no operands."""
        opening = self.expect("{")
        last: Operation | None = None
        while not self.accept("}"):
            if self.token.kind == "end":
                self.fail("'{' is never closed", opening)
            if last is not None and last.name in _TERMINATORS:
                self.fail(f"nothing may follow {last.name.removeprefix('cuda_tile.')}")
            last = self.operation()
            block.add_op(last)
        if not self.ends(last):
            close = self.tokens[self.position - 1]
            if implied is None:
                self.fail("a body must end with a terminator", close)
            end = OPS[implied].create()
            location.set(end, self.source.location((start or close).at))
            block.add_op(end)

    def ends(self, last: Operation | None) -> bool:
        """Whether a body may end with this operation."""
        return last is not None and last.name in _TERMINATORS

    def region(
        self, names: Sequence[Token] = (), types: Sequence[Attribute] = (), *, implied: str | None = None
    ) -> Region:
        """A region of one block with these arguments."""
        if len(self.scopes) > MAX_DEPTH:
            self.fail(f"regions nested deeper than {MAX_DEPTH}")
        block = Block(arg_types=types)
        with self.scope(zip(names, block.args, strict=True)):
            self._body(block, implied)
        return Region(block)

    def operation(self) -> Operation:
        results: list[tuple[Token, int | None]] = []
        if self.token.kind == "value":
            while True:
                name = self.take()
                count = self.integer("how many results") if self.accept(":") else None
                if count is not None and not 1 <= count <= MAX_RESULTS - len(results):
                    self.fail(f"%{name.text[1:]} cannot name {count} results", name)
                results.append((name, count))
                if not self.accept(","):
                    break
                if self.token.kind != "value":
                    self.unexpected("a value name")
            self.expect("=")
        token = self.token
        op = SPELLINGS["generic"](self) if token.kind == "string" else self._named_operation(results)
        self.place_of(op, token)
        self._name_results(op, results)
        return op

    def _named_operation(self, results: Sequence[tuple[Token, int | None]]) -> Operation:
        token = self.kind("word", "an operation")
        name = token.text.removeprefix("cuda_tile.")
        name = ALIASES.get(name, name)
        if name not in OPS and name not in self.more_operations:
            near = get_close_matches(name, OPS, 1)
            self.fail(f"there is no operation {name!r}", token, hint=f"did you mean {near[0]!r}?" if near else None)
        build = IRREGULAR.get(name)
        named = sum(1 if count is None else count for _, count in results)
        if name in self.more_operations:
            return self.more_operations[name]()
        return build(self, OPS[name]) if build else self._regular(name, named)

    def _name_results(self, op: Operation, names: Sequence[tuple[Token, int | None]]) -> None:
        wanted = sum(count or 1 for _, count in names)
        if names and wanted != len(op.results):
            self.fail(f"{op.name} has {len(op.results)} results, {wanted} are named", names[0][0])
        at = 0
        for name, count in names:
            if count is None:
                self.define(name, op.results[at])
                at += 1
                continue
            for i in range(count):
                value = op.results[at + i]
                self.define(name._replace(text=f"{name.text}#{i}" if i else name.text), value)
                value.name_hint = None
            at += count

    def create(
        self,
        op: type[TileOp],
        operands: Mapping[str, Sequence[SSAValue]],
        results: Iterable[Attribute],
        properties: Mapping[str, Attribute],
        regions: Sequence[Region] = (),
    ) -> TileOp:
        """Builds an operation; `operands` holds its operand groups by name."""
        definition = op.get_irdl_definition()
        groups = [list(operands.get(name, ())) for name, _ in definition.operands]
        found = dict(properties)
        if "operandSegmentSizes" in definition.properties:
            found["operandSegmentSizes"] = DenseArrayBase.from_list(builtin_i32, [len(g) for g in groups])
        flat = [value for group in groups for value in group]
        return op.create(operands=flat, result_types=list(results), properties=found, regions=list(regions))

    def _regular(self, name: str, named: int) -> TileOp:
        op = OPS[name]
        definition = op.get_irdl_definition()
        groups = dict(definition.operands)
        result_names = [n for n, _ in definition.results]
        operands: dict[str, list[SSAValue]] = {}
        types: dict[str, Attribute] = {}
        properties: dict[str, Attribute] = {}
        for word in FORMATS[name].split():
            if word == "flags":
                self._flags(op, properties)
            elif word[0] == "=":
                properties[word[1:]] = self.enum(word[1:])
            elif word[0] == "~":
                properties[word[1:]] = self.bracketed_enum(word[1:], name)
            elif word[0] == ".":
                self.expect(word[1:])
                self.expect("=")
                properties[word[1:]] = attrs.IntAttr(self.integer())
            elif word[0] == "<":
                token = self.token
                kind = self.type()
                for role in word[1:-1].split(","):
                    types[role] = kind
                    self.check_types(operands.get(role, ()), kind, token)
            elif word in groups:
                variadic = isinstance(groups[word], VarOperandDef) and not isinstance(groups[word], OptionalDef)
                operands[word] = self.values() if variadic else [self.value()]
            else:
                self.expect(word)
        # A variadic group has as many results as the text names; every other group has one.
        variadic = isinstance(definition.results[0][1], VarResultDef) if definition.results else False
        count = (named or _rank(types.get("src"))) if variadic else 1
        results = [types[n] for n in result_names for _ in range(count)]
        return self.create(op, operands, results, properties)

    def values(self) -> list[SSAValue]:
        """Values with commas between them; the list may be empty."""
        found: list[SSAValue] = []
        if self.token.kind != "value":
            return found
        found.append(self.value())
        while self.accept(","):
            found.append(self.value())
        return found

    def check_types(self, values: Sequence[SSAValue], kind: Attribute, token: Token) -> None:
        for value in values:
            if value.type != kind:
                name = f"%{value.name_hint}" if value.name_hint else "the operand"
                self.fail(f"{name} is of type {t.spell(value.type)}, not {t.spell(kind)}", token)

    # Properties

    def _flags(self, op: type[TileOp], properties: dict[str, Attribute]) -> None:
        units = {n for n, d in op.get_irdl_definition().properties.items() if isinstance(d, OptPropertyDef)}
        while self.token.kind == "word" and self.token.text in {u.rstrip("_") for u in units}:
            token = self.take()
            name = token.text if token.text in units else f"{token.text}_"
            if name in properties:
                self.fail(f"{token.text} appears twice", token)
            properties[name] = UnitAttr()

    def enum(self, name: str) -> Attribute:
        kind: Any = ENUMS[name]
        return kind(kind.enum_type(self.word_of([str(v) for v in kind.enum_type], name.replace("_", " "))))

    def bracketed_enum(self, name: str, op: str) -> Attribute:
        if not self.accept(KEYWORDS[name]):
            value = default(op, name)
            assert isinstance(value, Attribute)
            return value
        self.expect("<")
        value = self.enum(name)
        self.expect(">")
        return value


def _rank(view: Attribute | None) -> int:
    """How many sizes a tensor view or a view of tiles has."""
    if isinstance(view, t.TileViewType):
        return view.index_rank
    return len(view.shape) if isinstance(view, t.TensorViewType) else 1


_TERMINATORS = frozenset(f"cuda_tile.{name}" for name in ("break", "continue", "return", "yield"))
