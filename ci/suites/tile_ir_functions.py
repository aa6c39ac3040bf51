"""Reads what only the tests of NVIDIA's dialect have: functions of any types, and operations of no dialect.

`testing$func` takes and returns values of any type, as no entry may. It is read as an entry which makes such values
itself, so that what is in it can be verified, printed and written as any other. So is an operation of no dialect,
which stands for "some value of this type". What they say to a pass of theirs is left out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import FunctionType
from xdsl.ir import Attribute, Block, Operation, Region

from toolchain.tileir import location
from toolchain.tileir.dialect import types as t
from toolchain.tileir.dialect.attrs import StrAttr
from toolchain.tileir.dialect.control import EntryOp, GlobalOp, ReturnOp
from toolchain.tileir.dialect.ops import ALIASES, OPS
from toolchain.tileir.source import Source
from toolchain.tileir.text.lexer import Token, tokenize
from toolchain.tileir.text.toplevel import MODULES, FileParser

_FUNCTION = "testing$func"
_HINT = "cuda_tile.loop_split"
_OURS = frozenset((*OPS, *ALIASES, *MODULES, "entry", "global", "module"))
_MAKERS = {"partition_view": "make_partition_view", "strided_view": "make_strided_view",
           "gather_scatter_view": "make_gather_scatter_view"}  # fmt: skip


class TestParser(FileParser):
    """Parses a chunk of their tests."""

    __test__ = False  # for pytest

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self._entry_block = Block()
        self._made = 0

    def item(self) -> EntryOp | GlobalOp | None:
        start = self.token
        name = self.unquote(start.text, start) if start.kind == "string" else start.text
        if name.removeprefix("cuda_tile.") == _FUNCTION:
            self.take()
            return self._generic_function(start) if start.kind == "string" else self._function(start)
        if start.kind == "value" or name.removeprefix("cuda_tile.") in OPS:
            return self._loose(start)
        made = super().item()
        self._hint_of_a_pass()
        return made

    def _function(self, start: Token) -> EntryOp:
        symbol = self.symbol()
        self.expect("(")
        parameters = [(name, kind) for name, kind, _ in self.listed(self.parameter, ")")]
        return self._entry_of(symbol, parameters, self._results(), start)

    def _generic_function(self, start: Token) -> EntryOp:
        for mark in "()<":
            self.expect(mark)
        symbol = self.dictionary()["sym_name"]
        for mark in ">({":
            self.expect(mark)
        parameters = self.block_arguments()
        self._put(["{"], start, at=self.position)
        found = self._entry_of(str(symbol), parameters, [], start)
        self.expect(")")
        self.expect(":")
        self.function_type()
        return found

    def _loose(self, start: Token) -> EntryOp:
        """Operations that stand outside of a function, up to the end of the file."""
        self.tokens.insert(-1, start._replace(kind="punct", text="}", at=self.tokens[-1].at))
        self._put(["{"], start, at=self.position)
        return self._entry_of("loose", [], [], start)

    def _entry_of(
        self, symbol: str, parameters: Sequence[tuple[Token, Attribute]], results: list[Attribute], start: Token
    ) -> EntryOp:
        """An entry of the body that follows, which uses these values."""
        values = [(name, _as_tile(kind)) for name, kind in parameters]
        taken = [(name, kind) for name, kind in values if isinstance(kind, t.TileType) and not kind.shape]
        made = [pair for pair in values if pair not in taken]
        block = self._entry_block = Block(arg_types=[kind for _, kind in taken])
        with self.scope(zip((name for name, _ in taken), block.args, strict=True)):
            statements = [each for name, kind in made for each in self._statements(name.text, kind, start)]
            self._put(statements, start, at=self.position + 1)
            self._body(block, "return", start)
        for op in block.walk():
            if isinstance(op, ReturnOp):
                self._leave(op, results)
        kinds = FunctionType.from_lists([value.type for value in block.args], [])
        properties: dict[str, Attribute] = {"sym_name": StrAttr(symbol), "function_type": kinds}
        found = EntryOp.create(properties=properties, regions=[Region(block)])
        self.place_of(found, start)
        return found

    def _results(self) -> list[Attribute]:
        if not self.accept("->"):
            return []
        if self.accept("("):
            return self.listed(self.type, ")")
        return [self.type()]

    def _leave(self, op: ReturnOp, results: list[Attribute]) -> None:
        """Makes a function's return one of an entry."""
        place = location.get(op)
        if [value.type for value in op.values] != results and place is not None:
            raise self.source.error_at(place, "return: it does not return what the function's type says")
        op.operands = []

    def operation(self) -> Operation:
        start = self.position
        results: list[str] = []
        while self.token.kind == "value" or self.token.text in (",", ":", "="):
            results += [self.token.text] * (self.token.kind == "value")
            self.take()
            if self.token.kind == "int":
                self.take()
        token = self.token
        if token.kind != "string" or self.unquote(token.text, token).removeprefix("cuda_tile.") in _OURS:
            self.position = start
            made = super().operation()
            self._hint_of_a_pass()
            return made
        self.take()
        self.expect("(")
        self.listed(self.value, ")")
        if self.token.text == "{":
            self.dictionary()
        self.expect(":")
        kinds = self.function_type().outputs.data
        statements = [each for name, kind in zip(results, kinds, strict=True)
                      for each in self._statements(name, kind, token)]  # fmt: skip
        for statement in statements[:-1]:
            self._put([statement], token, at=self.position)
            self._entry_block.add_op(super().operation())
        self._put(statements[-1:] or [f"%tests.{self._next()} = make_token : token"], token, at=self.position)
        return super().operation()

    def _hint_of_a_pass(self) -> None:
        """Leaves out what a test says behind an operation to a pass of theirs, which bytecode does not hold."""
        if [token.text for token in self.tokens[self.position : self.position + 2]] == ["{", _HINT]:
            self.dictionary()

    def _next(self) -> int:
        self._made += 1
        return self._made

    def _put(self, statements: list[str], token: Token, *, at: int) -> None:
        """Puts text into the stream of tokens, before position `at`. It stands where `token` stands."""
        words = tokenize(Source("\n".join(statements), ""))[:-1]
        self.tokens[at:at] = [word._replace(at=token.at) for word in words]

    def _statements(self, name: str, kind: Attribute, token: Token) -> list[str]:
        """Operations that make a value of this type, called `name`."""
        own = f"%tests.{self._next()}"
        spelled = t.spell(kind)
        match kind:
            case t.TokenType():
                return [f"{name} = make_token : token"]
            case t.TileType() if isinstance(kind.element_type, t.PtrType):
                ones = "1x" * len(kind.shape)
                scalar, reshaped = self._pointer(own, kind.element_type), f"tile<{ones}{t.spell(kind.element_type)}>"
                return [
                    f"{own}.r = reshape {own} : {t.spell(scalar)} -> {reshaped}",
                    f"{name} = broadcast {own}.r : {reshaped} -> {spelled}",
                ]
            case t.TileType() if kind.element_type == t.i4:
                count = math.prod(kind.shape)
                return [
                    f"{own} = constant <i8: 1> : tile<{count // 2}xi8>",
                    f"{own}.u = unpack {own} : tile<{count // 2}xi8> -> tile<{count}xi4>",
                    f"{name} = reshape {own}.u : tile<{count}xi4> -> {spelled}",
                ]
            case t.TileType():
                return [f"{name} = constant <{t.spell(kind.element_type)}: {_number(kind.element_type)}> : {spelled}"]
            case t.TensorViewType():
                self._pointer(own, t.PtrType(kind.element_type, kind.ptr_attr))
                return _view_of_array(name, own, kind)
            case t.TileViewType():
                view = f"{own}.v"
                return [
                    *self._statements(view, kind.tensor_view, token),
                    f"{name} = {_MAKERS[kind.name.removeprefix('cuda_tile.')]} {view} : {spelled}",
                ]
            case _:
                return self.fail(f"a test has a value of type {spelled}, which no operation makes", token)

    def _pointer(self, name: str, kind: Attribute) -> t.TileType:
        """Adds a parameter, from which other values are made."""
        tile = t.TileType((), cast("t.PtrType", kind))
        value = self._entry_block.insert_arg(tile, len(self._entry_block.args))
        self.scopes[0][name[1:]] = value
        return tile


def _view_of_array(name: str, pointer: str, kind: t.TensorViewType) -> list[str]:
    """Operations that make a view of an array; sizes that are not in its type are 16."""

    def listed(sizes: Sequence[int]) -> str:
        return "[" + ", ".join(f"{pointer}.n" if size == t.DYNAMIC else str(size) for size in sizes) + "]"

    dynamic = t.DYNAMIC in (*kind.shape, *kind.strides)
    sizes = f"shape = {listed(kind.shape)}, strides = {listed(kind.strides)}"
    made = f"{name} = make_tensor_view {pointer}, {sizes} : {'tile<i64> -> ' * dynamic}{t.spell(kind)}"
    return [*[f"{pointer}.n = constant <i64: 16> : tile<i64>"] * dynamic, made]


def _as_tile(kind: Attribute) -> Attribute:
    """A tile of a bare element type, which no value of an entry has; any other type as it is."""
    return t.TileType((), kind) if isinstance(kind, t.PtrType) or kind in t.SCALARS else kind


def _number(kind: Attribute) -> str:
    name = t.spell(kind)
    return "1.0" if re.match(r"b?f|tf", name) else "true" if name == "i1" else "1"
