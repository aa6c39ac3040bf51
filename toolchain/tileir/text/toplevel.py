"""What stands outside of entries: modules, aliases, entries themselves and globals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from xdsl.dialects.builtin import FunctionType, UnitAttr
from xdsl.ir import Attribute, Block, Region

from toolchain.errors import SourceError

from .. import location
from ..dialect import attrs
from ..dialect.control import EntryOp, GlobalOp, ModuleOp
from ..source import Source
from .attributes import Value
from .lexer import Token
from .parser import SPELLINGS, Parser

MODULES = ("cuda_tile.module", "module", "builtin.module")


class DefineAlias(Protocol):
    """Called for each alias at a file's head with the type that it names; returns the type to use for it."""

    def __call__(self, name: str, value: Attribute, fail: Callable[[str], SourceError]) -> Attribute: ...


def parse(text: str, *, filename: str, define_alias: DefineAlias | None = None) -> ModuleOp:
    """The module in `text`: `cuda_tile.module @m { entry @k(...) { ... } }`, or entries without a module around them,
    as the disassembler prints them. Operations get their source locations. The module is not verified.

    Raises SourceError, `file:line:col: error: ...` with the line and a caret, if the text does not parse.
    """
    modules = parse_all(text, filename=filename, define_alias=define_alias)
    if len(modules) > 1:
        raise Source(text, filename).error_at(
            location.get(modules[1]) or location.Location(filename, 1, 1),
            f"the file has {len(modules)} modules; here one is expected",
            hint="keep each module in a file of its own",
        )
    return modules[0]


def parse_all(text: str, *, filename: str, define_alias: DefineAlias | None = None) -> list[ModuleOp]:
    """All modules that `text` spells, at least one: MLIR's own `module` may stand around several. Raises SourceError as
    `parse` does."""
    return FileParser(Source(text, filename), define_alias).modules()


class FileParser(Parser):
    """Parses a whole file."""

    overflows = True

    def __init__(self, source: Source, define_alias: DefineAlias | None = None) -> None:
        super().__init__(source)
        self.define_alias = define_alias

    def modules(self) -> list[ModuleOp]:
        """The whole file: modules, or what stands in one."""
        start = self.token
        found: list[ModuleOp] = []
        body = self._items(found)
        if self.token.kind != "end":
            self.unexpected("the end of the file")
        if body.is_empty and not found:
            self.empty(start)
        if body.is_empty:
            return found
        if found:
            self.fail("entries stand beside a module: put them into it", start)
        return [self._made_module("kernels", {}, body, start)]

    def empty(self, start: Token) -> None:
        """What a file without entries is."""
        self.fail("no entry in this file", start)

    def _items(self, modules: list[ModuleOp]) -> Block:
        """Reads up to the end of a module or of the file: aliases, modules, which are added to the list, entries and
        globals, which are returned."""
        body = Block()
        symbols: set[str] = set()
        while self.token.kind != "end" and self.token.text != "}":
            token = self.token
            if token.kind == "type_alias":
                self._alias()
            elif token.kind == "attr_alias":
                self.skip_attribute_alias()
            elif self._module_name(token):
                modules.extend(self._module())
            else:
                op = self.item()
                if op is None:
                    continue
                if op.sym_name.data in symbols:
                    self.fail(f"@{op.sym_name.data} is defined twice", token)
                symbols.add(op.sym_name.data)
                body.add_op(op)
        return body

    def _module_name(self, token: Token) -> bool:
        name = self.unquote(token.text, token) if token.kind == "string" else token.text
        return token.kind in ("string", "word") and name in MODULES

    def _module(self) -> list[ModuleOp]:
        """One module, or MLIR's own `module` with others inside."""
        start = self.take()
        is_generic = start.kind == "string"
        name, given = "kernels", dict[str, Value]()
        written = self.position
        if is_generic:
            self.expect("(")
            self.expect(")")
            if self.accept("<"):
                written, given = self.position, dict(self.dictionary())
                self.expect(">")
            self.expect("(")
        elif self.token.kind == "symbol":
            name = self.symbol()
        if self.accept("attributes"):
            written, given = self.position, dict(self.dictionary())
        spelled = self._spelled_attributes(written) if given else {}
        self.expect("{")
        if is_generic and self.block_arguments():
            self.fail("a module takes no arguments", start)
        inside: list[ModuleOp] = []
        body = self._items(inside)
        self.expect("}")
        if is_generic:
            self.expect(")")
            if self.token.text == "{":
                written, more = self.position, self.dictionary()
                given |= more
                spelled |= self._spelled_attributes(written)
            self.expect(":")
            self.function_type()
        named = given.pop("sym_name", name)
        found = self._made_module(named if isinstance(named, str) else name, spelled, body, start)
        if not inside:
            return [found]
        if not body.is_empty:
            self.fail("entries stand beside a module: put them into it", start)
        return inside

    def _spelled_attributes(self, start: int) -> dict[str, str]:
        """The attributes of the dictionary that began at this token, each as it is written."""
        end, self.position = self.position, start
        found: dict[str, str] = {}

        def pair() -> None:
            name, at = self._name("a name"), self.position + 1
            if self.accept("="):
                self.attribute()
            tokens = self.tokens[at : self.position]
            found[name] = self.source.text[tokens[0].at : tokens[-1].at + len(tokens[-1].text)] if tokens else ""

        self.expect("{")
        self.listed(pair, "}")
        self.position = end
        return found

    def _made_module(self, name: str, given: Mapping[str, str], body: Block, start: Token) -> ModuleOp:
        """A module; `given`: its attributes as they are spelled."""
        properties: dict[str, Attribute] = {"sym_name": attrs.StrAttr(name)}
        others: dict[str, Attribute] = {}
        for key, value in given.items():
            if key == "producer":
                if value[:1] != '"':
                    self.fail("the producer must be a string", start)
                properties[key] = attrs.StrAttr(self.unquote(value, start))
            elif key not in ("sym_name", "sym_visibility"):
                others[key] = attrs.StrAttr(value)
        found = ModuleOp.create(properties=properties, attributes=others, regions=[Region(body)])
        self.place_of(found, start)
        return found

    def _alias(self) -> None:
        token = self.take()
        name = token.text[1:]
        if name in self.aliases:
            self.fail(f"alias {token.text} is defined twice", token)
        if "." in name:
            self.fail("the name of an alias cannot contain '.'", token)
        self.expect("=")
        value = self.type()
        if self.define_alias is not None:
            value = self.define_alias(name, value, lambda message: self.source.error(token.at, message))
        self.aliases[name] = value

    def item(self) -> EntryOp | GlobalOp | None:
        """An entry or a global; None for one that is to be left out, which is never so here."""
        token = self.token
        if token.kind == "string":
            op = SPELLINGS["generic"](self)
            if not isinstance(op, EntryOp | GlobalOp):
                self.unexpected("'entry' or 'global'", token)
        else:
            self.kind("word", "'entry' or 'global'")
            match token.text.removeprefix("cuda_tile."):
                case "entry":
                    op = self._entry(token)
                case "global":
                    op = self._global()
                case _:
                    self.unexpected("'entry' or 'global'", token)
        self.place_of(op, token)
        return op

    def _entry(self, start: Token) -> EntryOp:
        symbol = self.symbol()
        self.expect("(")
        arguments = self.listed(self.parameter, ")")
        block = Block(arg_types=[kind for _, kind, _ in arguments])
        properties: dict[str, Attribute] = {
            "sym_name": attrs.StrAttr(symbol),
            "function_type": FunctionType.from_lists([kind for _, kind, _ in arguments], []),
        }
        if any(said.data for _, _, said in arguments):
            properties["arg_attrs"] = attrs.AttrsAttr(tuple(said for _, _, said in arguments))
        if self.accept("optimization_hints"):
            self.expect("=")
            if (hints := self.hints()).data:  # `<>` says nothing
                properties["optimization_hints"] = hints
        with self.scope(zip((name for name, _, _ in arguments), block.args, strict=True)):
            self._body(block, "return", start)
        return EntryOp.create(properties=properties, regions=[Region(block)])

    def _global(self) -> GlobalOp:
        properties: dict[str, Attribute] = {}
        if self.accept("private"):
            properties["private"] = UnitAttr()
        else:
            self.accept("public")
        if self.accept("constant"):
            properties["constant"] = UnitAttr()
        properties["sym_name"] = attrs.StrAttr(self.symbol())
        properties["alignment"] = attrs.IntAttr(0)
        if self.accept("alignment"):
            self.expect("=")
            properties["alignment"] = attrs.IntAttr(self.integer())
        properties["value"] = self.dense()
        return GlobalOp.create(properties=properties)
