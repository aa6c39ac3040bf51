"""Parsing a kernel with all of its parts, for one entry's sizes and storage type.

A kernel is read from several files: its skeleton, its own sections, which fill the skeleton's holes, and the fragments
that both call. Names do not leak from one part to another:

- a skeleton sees the entry's head (see `signature.py`) and the values that it defines itself;
- a section sees the head, the values that its hole passes, and the values of earlier sections of the same part;
- a fragment sees its parameters.

`%v = hole @name(%a, %b) -> (types)` is a hole. A kernel fills it in one of two ways:

- `@name(%x, %y) { ... yield %r : types }`, a section, for a hole that appears once;
- `@name = @fragment`, which calls the fragment with the hole's operands wherever the hole stands.

A hole without results may stay empty. A skeleton may fill holes of another one in the same ways: `skeleton @s, skeleton
= @base { ... }`. Its sections may have holes. The holes that it does not fill are left to the kernel.

Parts may name the same size differently: `kernel @name op = OP, BC = BN { ... }` makes BC stand for the entry's BN.

`%v = call @fragment(%a, %b)` calls a fragment; `call @fragment<BN = BR>(...)` calls it with the constant BR, or a
number, in the place of BN. A hole that a fragment fills takes sizes in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches

from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from toolchain.contract.op import OpSpec, ops
from toolchain.errors import SourceError

from .. import location
from ..dialect import attrs
from ..dialect import types as t
from ..dialect.control import ModuleOp, YieldOp
from ..dialect.fragments import CallOp, FragmentOp, HoleOp
from ..text.lexer import Token
from ..text.parser import Parser
from .library import Item, Library, PartFile
from .signature import STORAGE, derive

MAX_CALLS = 8  # the depth of nested calls


def compose(
    library: Library,
    kernel: str,
    *,
    symbol: str,
    dtype: str,
    constants: Mapping[str, int],
    op: str | None = None,
    all_used: bool = True,
) -> ModuleOp:
    """The module of a kernel: its entry, with filled holes and calls still in it, and the fragments that it calls.
    `passes/inline.py` puts these together. `op`: the op that the kernel must implement.

    Raises SourceError with file:line:col for anything that does not parse or fit. With `all_used` an unused constant is
    an error too.
    """
    item = library.find("kernel", kernel)
    if item is None:
        raise SourceError(f"{symbol}: there is no kernel @{kernel}", hint=library.near("kernel", kernel))
    used = set[str]() if all_used else set(constants)
    return KernelParser(library, item, Sizes(constants, dtype, used)).kernel(symbol, op)


@dataclass(frozen=True)
class Sizes:
    """The numbers that names in capitals stand for, and the type of `T`. `used`: the constants read so far."""

    constants: Mapping[str, int]
    dtype: str
    used: set[str] = field(default_factory=set[str])

    def changed(self, others: Mapping[str, int]) -> Sizes:
        """A copy with other numbers for some names."""
        return Sizes({**self.constants, **others}, self.dtype, self.used)


@dataclass(frozen=True)
class _Hole:
    """A hole as it stands in a skeleton: its operands, the types of its results, and the sizes for what fills it."""

    skeleton: KernelParser
    token: Token
    name: str
    sizes: Sizes
    arguments: list[SSAValue]
    results: list[Attribute]


class KernelParser(Parser):
    """Reads one item of a library, and the items that it names."""

    def __init__(self, library: Library, item: Item, sizes: Sizes) -> None:
        super().__init__(item.file.source, tokens=item.file.tokens)
        self.library, self.item, self.sizes = library, item, sizes
        self.position = item.start
        self.more_operations = {"call": self._call, "hole": self._hole}
        self.filler: KernelParser | None = None  # of a skeleton: what fills its holes
        self.fragments: dict[str, FragmentOp] = {}  # by name and sizes; the parsers of called fragments share it
        self.depth = 0
        # Of what fills holes: its sections and fragments by the hole's name, and the values that its sections see.
        self.sections: dict[str, int] = {}
        self.filling: dict[str, tuple[Item, Token]] = {}
        self.shared: dict[str, SSAValue] = {}
        self.filled: set[str] = set()

    # Sizes and types

    def constant(self, name: str, token: Token) -> int:
        if name not in self.sizes.constants:
            known = ", ".join(self.sizes.constants) or "none"
            self.fail(f"the entry has no constant {name}", token, hint=f"it has {known}")
        self.sizes.used.add(name)
        return self.sizes.constants[name]

    def storage(self, token: Token) -> Attribute:  # noqa: ARG002 (the dialect's parser fails here)
        return STORAGE[self.sizes.dtype]

    def alias(self, name: str, token: Token) -> Attribute:
        place = self.library.alias(self.item.file, name)
        if place is None:
            near = get_close_matches(name, self.library.known_aliases(self.item.file), 1)
            self.fail(f"no type alias !{name}", token, hint=f"did you mean !{near[0]}?" if near else None)
        with _Elsewhere(self, *place):
            return self.type()

    # Items

    def kernel(self, symbol: str, op: str | None) -> ModuleOp:
        start = self.tokens[self.position - 1]
        spec, skeleton = self._header(op, start)
        head = derive(spec, self.sizes.dtype, self.sizes.constants, symbol, self.source.location(start.at))
        self.sizes.used.update(dim for param in spec.params for dim in param.dims)
        block = head.entry.body.block
        self.shared = dict(head.names)
        if skeleton is None:
            self.scopes = [dict(head.names)]
            self._body(block, "return")
        else:
            self.onto(skeleton, block, head.names)
        unused = [name for name in self.sizes.constants if name not in self.sizes.used]
        if unused:
            self.fail(f"@{self.item.name} does not use the constant {unused[0]} of {symbol}", start)
        return ModuleOp.create(
            properties={"sym_name": attrs.StrAttr("kernels")},
            regions=[Region(Block([head.entry, *self.fragments.values()]))],
        )

    def _header(self, wanted: str | None, start: Token) -> tuple[OpSpec, Item | None]:
        """`op = NAME, BC = BN, skeleton = @NAME`; sizes and skeleton may be left out."""
        self.expect("op")
        self.expect("=")
        token = self.kind("word", "an op of ops.toml")
        if token.text not in ops():
            self.fail(f"ops.toml has no op {token.text!r}", token)
        if wanted not in (None, token.text):
            self.fail(f"@{self.item.name} implements {token.text}, but the entry is for {wanted}", start)
        return ops()[token.text], self.base()

    def base(self) -> Item | None:
        """`, BC = BN`, a size by another name, and `, skeleton = @NAME`; both may be left out."""
        while self.accept(",") and not self.accept("skeleton"):
            self.sizes = self.sizes.changed(dict([self._other_size()]))
        if self.tokens[self.position - 1].text != "skeleton":
            return None
        self.expect("=")
        return self._named("skeleton")

    def _named(self, kind: str) -> Item:
        """A part of this kind, whose name comes next."""
        place = self.token
        name = self.symbol()
        found = self.library.find(kind, name)
        if found is None:
            self.fail(f"there is no {kind} @{name}", place, hint=self.library.near(kind, name))
        return found

    def _index_sections(self) -> None:
        """The position of each section, after its name, and the fragments that fill holes."""
        self.expect("{")
        while not self.accept("}"):
            token = self.token
            name = self.symbol()
            if name in self.sections or name in self.filling:
                self.fail(f"section @{name} is defined twice", token)
            if self.accept("="):
                self.filling[name] = (self._named("fragment"), token)
                continue
            self.sections[name] = self.position
            depth = 0
            while depth or self.token.text != "{":
                if self.token.text == "}" or self.token.kind == "end":
                    self.fail(f"section @{name} has no body", token)
                self.take()
            while True:
                text = self.take().text
                depth += (text == "{") - (text == "}")
                if not depth:
                    break

    def onto(self, skeleton: Item, block: Block, names: Mapping[str, SSAValue]) -> None:
        """This part's sections, which come next, put into the skeleton's holes, and the whole into `block`."""
        self._index_sections()
        inner = KernelParser(self.library, skeleton, self.sizes)
        inner.fragments, inner.filler = self.fragments, self
        if base := inner.base():
            inner.shared = dict(names)
            inner.onto(base, block, names)
        else:
            inner.scopes = [dict(names)]
            inner._body(block, "return")
        places = {name: self.tokens[at - 1] for name, at in self.sections.items()}
        places |= {name: token for name, (_, token) in self.filling.items()}
        if unfilled := [name for name in places if name not in self.filled]:
            self.fail(f"skeleton @{skeleton.name} has no hole @{unfilled[0]}", places[unfilled[0]])

    def _hole(self) -> Operation:
        if self.filler is None:
            self.fail("only a skeleton may have holes", self.tokens[self.position - 1])
        token = self.token
        name = self.symbol()
        sizes = self._other_sizes()
        arguments = self.listed(self.value, ")") if self.accept("(") else []
        results: list[Attribute] = []
        if self.accept("->"):
            results = self.listed(self.type, ")") if self.accept("(") else [self.type()]
        return self.filler.fill(_Hole(self, token, name, sizes, arguments, results))

    def fill(self, hole: _Hole) -> Operation:
        """What stands in the place of a hole: a call of the fragment that fills it, or the section."""
        name, skeleton = hole.name, hole.skeleton
        if name in self.filling:
            self.filled.add(name)
            return self._filled_by(self.filling[name][0], hole)
        if name not in self.sections and self.filler is not None:
            return self.filler.fill(hole)
        if name in self.filled:
            skeleton.fail(f"hole @{name} appears twice: a fragment can fill both, a section cannot", hole.token)
        if hole.sizes is not skeleton.sizes:
            skeleton.fail(f"hole @{name} has other sizes: a fragment can fill it, a section cannot", hole.token)
        self.filled.add(name)
        block = Block(arg_types=[value.type for value in hole.arguments])
        if name in self.sections:
            self._section(name, block, hole.results)
        elif hole.results:
            skeleton.fail(f"kernel @{self.item.name} does not fill @{name}", hole.token)
        else:
            block.add_op(_yield(self, []))
        return HoleOp.create(
            operands=hole.arguments, result_types=hole.results, properties={"sym_name": attrs.StrAttr(name)},
            regions=[Region(block)],
        )  # fmt: skip

    def _filled_by(self, fragment: Item, hole: _Hole) -> Operation:
        skeleton = hole.skeleton
        call = skeleton.call_of(fragment, hole.sizes, hole.arguments, hole.token)
        found = [value.type for value in call.outputs]
        if found != hole.results:
            given, wanted = (", ".join(map(t.spell, kinds)) or "nothing" for kinds in (found, hole.results))
            skeleton.fail(f"hole @{hole.name} wants {wanted}, @{fragment.name} gives {given}", hole.token)
        return call

    def _section(self, name: str, block: Block, results: list[Attribute]) -> None:
        with _Elsewhere(self, self.item.file, self.sections[name]):
            place = self.token
            names = self.listed(lambda: self.kind("value", "a value name"), ")") if self.accept("(") else []
            if len(names) != len(block.args):
                self.fail(f"hole @{name} passes {len(block.args)} values, but the section takes {len(names)}", place)
            given = {token.text[1:] for token in names}
            self.scopes = [{known: v for known, v in self.shared.items() if known not in given}, {}]
            for token, value in zip(names, block.args, strict=True):
                self.define(token, value)
            self._returning(block, results, name)
            self.shared |= self.scopes[1]

    def _returning(self, block: Block, results: list[Attribute], name: str) -> None:
        """A body that ends with a `yield` of these types. A `yield` without values may be left out."""
        self._body(block, "yield")
        last = block.last_op
        assert last is not None
        found = [value.type for value in last.operands]
        if last.name != "cuda_tile.yield" or found != results:
            wanted = ", ".join(map(t.spell, results)) or "nothing"
            self.fail(f"@{name} has to end with a yield of {wanted}", self.tokens[self.position - 1])

    # Calls

    def _call(self) -> Operation:
        token = self.token
        fragment = self._named("fragment")
        sizes = self._other_sizes()
        self.expect("(")
        return self.call_of(fragment, sizes, self.listed(self.value, ")"), token)

    def call_of(self, fragment: Item, sizes: Sizes, arguments: list[SSAValue], token: Token) -> CallOp:
        name = fragment.name
        made = self._fragment(fragment, sizes, token)
        body = made.body.block
        if len(arguments) != len(body.args):
            self.fail(f"@{name} takes {len(body.args)} values, not {len(arguments)}", token)
        for value, parameter in zip(arguments, body.args, strict=True):
            if value.type != parameter.type:
                self.fail(
                    f"%{parameter.name_hint} of @{name} is {t.spell(parameter.type)}, "
                    f"%{value.name_hint} is {t.spell(value.type)}", token
                )  # fmt: skip
        last = body.last_op
        assert last is not None
        results = [value.type for value in last.operands]
        return CallOp.create(
            operands=arguments, result_types=results, properties={"callee": attrs.StrAttr(made.sym_name.data)}
        )

    def _other_sizes(self) -> Sizes:
        """`<BN = BR, R = 1>`, which may be left out"""
        return self.sizes.changed(dict(self.listed(self._other_size, ">"))) if self.accept("<") else self.sizes

    def _other_size(self) -> tuple[str, int]:
        """`BN = BR`, or `R = 1`"""
        name = self.kind("word", "a constant's name")
        self.expect("=")
        return name.text, self.integer("a constant or a number")

    def _fragment(self, item: Item, sizes: Sizes, call: Token) -> FragmentOp:
        """The fragment for these sizes. It is read only once."""
        key = " ".join([item.name, *(f"{name}={size}" for name, size in sizes.constants.items())])
        if key not in self.fragments:
            if self.depth == MAX_CALLS:
                self.fail(f"fragments call one another more than {MAX_CALLS} deep", call)
            inner = KernelParser(self.library, item, sizes)
            inner.fragments, inner.depth = self.fragments, self.depth + 1
            self.fragments[key] = inner.fragment(key)
        return self.fragments[key]

    def fragment(self, symbol: str) -> FragmentOp:
        """Reads a fragment: `(%a: type, ...) -> (types) { ... }`."""
        start = self.tokens[self.position - 1]
        self.expect("(")
        parameters = self.listed(self.typed_name, ")")
        results: list[Attribute] = []
        if self.accept("->"):
            results = self.listed(self.type, ")") if self.accept("(") else [self.type()]
        block = Block(arg_types=[kind for _, kind in parameters])
        self.scopes = [{}]
        for (name, _), value in zip(parameters, block.args, strict=True):
            self.define(name, value)
        self._returning(block, results, self.item.name)
        made = FragmentOp.create(properties={"sym_name": attrs.StrAttr(symbol)}, regions=[Region(block)])
        location.set(made, self.source.location(start.at))
        return made


def _yield(parser: Parser, values: list[SSAValue]) -> Operation:
    return parser.create(YieldOp, {"values": values}, [], {})


class _Elsewhere:
    """Reads at another position, in this file or another one, and then returns to the current one."""

    def __init__(self, parser: KernelParser, file: PartFile, position: int) -> None:
        self.parser, self.file, self.position = parser, file, position

    def __enter__(self) -> None:
        parser = self.parser
        self.before = (parser.source, parser.tokens, parser.position, parser.item, parser.scopes)
        if self.file is not parser.item.file:
            parser.item = Item(parser.item.kind, parser.item.name, self.file, self.position, self.position)
        parser.source, parser.tokens, parser.position = self.file.source, self.file.tokens, self.position

    def __exit__(self, *_: object) -> None:
        parser = self.parser
        parser.source, parser.tokens, parser.position, parser.item, parser.scopes = self.before
