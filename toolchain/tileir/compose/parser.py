"""Parsing a kernel with all of its parts, for one entry's sizes and storage type.

A kernel is read from several files: its skeleton, its own sections, which fill the skeleton's holes, and the fragments
that both call. Names do not leak from one part to another:

- a skeleton sees the entry's head (see `signature.py`) and the values that it defines itself;
- a section sees the head, the values that its hole passes, and the values of earlier sections of the same kernel;
- a fragment sees its parameters.

`%v = hole @name(%a, %b) -> (types)` is a hole; the kernel's `@name(%x, %y) { ... yield %r : types }` fills it. A hole
without results may stay empty. `%v = call @fragment(%a, %b)` calls a fragment. `call @fragment<BN = BR>(...)` calls it
with BN replaced by the constant BR or by a number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches

from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from toolchain.entry import OpSpec, ops
from toolchain.errors import SourceError

from ..dialect import attrs, location
from ..dialect import types as t
from ..dialect.control import ModuleOp, YieldOp
from ..text.lexer import Token
from ..text.parser import Parser
from .dialect import CallOp, FragmentOp, HoleOp
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


class KernelParser(Parser):
    """Reads one item of a library, and the items that it names."""

    def __init__(self, library: Library, item: Item, sizes: Sizes) -> None:
        super().__init__(item.file.source, tokens=item.file.tokens)
        self.library, self.item, self.sizes = library, item, sizes
        self.position = item.start
        self.more_operations = {"call": self._call, "hole": self._hole}
        self.fragments: dict[str, FragmentOp] = {}  # by name and sizes; the parsers of called fragments share it
        self.depth = 0
        # Used for a kernel: its sections by name, and the values that its sections see.
        self.sections: dict[str, int] = {}
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
            self._index_sections()
            self._skeleton(skeleton, block, head.names)
        unused = [name for name in self.sizes.constants if name not in self.sizes.used]
        if unused:
            self.fail(f"@{self.item.name} does not use the constant {unused[0]} of {symbol}", start)
        return ModuleOp.create(
            properties={"sym_name": attrs.StrAttr("kernels")},
            regions=[Region(Block([head.entry, *self.fragments.values()]))],
        )

    def _header(self, wanted: str | None, start: Token) -> tuple[OpSpec, Item | None]:
        """`op = NAME, skeleton = @NAME`; the skeleton may be left out."""
        self.expect("op")
        self.expect("=")
        token = self.kind("word", "an op of ops.toml")
        if token.text not in ops():
            self.fail(f"ops.toml has no op {token.text!r}", token)
        if wanted not in (None, token.text):
            self.fail(f"@{self.item.name} implements {token.text}, but the entry is for {wanted}", start)
        if not self.accept(","):
            return ops()[token.text], None
        self.expect("skeleton")
        self.expect("=")
        place = self.token
        name = self.symbol()
        found = self.library.find("skeleton", name)
        if found is None:
            self.fail(f"there is no skeleton @{name}", place, hint=self.library.near("skeleton", name))
        return ops()[token.text], found

    def _index_sections(self) -> None:
        """The position of each section of a kernel's body, after the section's name."""
        self.expect("{")
        while not self.accept("}"):
            token = self.token
            name = self.symbol()
            if name in self.sections:
                self.fail(f"section @{name} is defined twice", token)
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

    def _skeleton(self, skeleton: Item, block: Block, names: Mapping[str, SSAValue]) -> None:
        inner = KernelParser(self.library, skeleton, self.sizes)
        inner.fragments = self.fragments
        inner.more_operations = {"call": inner._call, "hole": lambda: self._fill(inner)}
        inner.scopes = [dict(names)]
        inner._body(block, "return")
        if unfilled := [name for name in self.sections if name not in self.filled]:
            at = self.tokens[self.sections[unfilled[0]] - 1]
            self.fail(f"skeleton @{skeleton.name} has no hole @{unfilled[0]}", at)

    def _hole(self) -> Operation:
        self.fail("only a skeleton may have holes", self.tokens[self.position - 1])

    def _fill(self, skeleton: KernelParser) -> Operation:
        """Reads a hole of the skeleton, from its name on, and fills it with this kernel's section."""
        token = skeleton.token
        name = skeleton.symbol()
        arguments = skeleton.listed(skeleton.value, ")") if skeleton.accept("(") else []
        results: list[Attribute] = []
        if skeleton.accept("->"):
            results = skeleton.listed(skeleton.type, ")") if skeleton.accept("(") else [skeleton.type()]
        if name in self.filled:
            skeleton.fail(f"hole @{name} appears twice", token)
        self.filled.add(name)
        block = Block(arg_types=[value.type for value in arguments])
        if name in self.sections:
            self._section(name, block, results)
        elif results:
            skeleton.fail(f"kernel @{self.item.name} does not fill @{name}", token)
        else:
            block.add_op(_yield(self, []))
        return HoleOp.create(
            operands=arguments, result_types=results, properties={"sym_name": attrs.StrAttr(name)},
            regions=[Region(block)],
        )  # fmt: skip

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
        name = self.symbol()
        fragment = self.library.find("fragment", name)
        if fragment is None:
            self.fail(f"there is no fragment @{name}", token, hint=self.library.near("fragment", name))
        sizes = self.sizes
        if self.accept("<"):
            sizes = sizes.changed(dict(self.listed(self._other_size, ">")))
        self.expect("(")
        arguments = self.listed(self.value, ")")
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
