"""A cursor over tokens, with the small parts of the grammar: words, numbers, lists, types."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import NoReturn, TypeVar

from xdsl.ir import Attribute

from ..dialect import types as t
from ..source import Source
from .lexer import Token, tokenize

T = TypeVar("T")
_SCALARS = {name: kind for kind, (name, _) in t.SCALARS.items()}
_VIEWS = ("partition_view", "strided_view", "gather_scatter_view")
_TYPE_WORDS = (*_SCALARS, "token", "ptr", "tile", "tensor_view", *_VIEWS)
MAX_ELEMENTS = 2**24  # of a tile: the compiler's limit
MAX_TYPE_DEPTH = 8  # valid types need 3: a view of a tensor_view of a ptr
_ESCAPE = re.compile(r'\\(?:(?P<code>[0-9A-Fa-f]{2})|(?P<letter>[nt"\\])|(?P<other>.))')
_LETTERS = {"n": b"\n", "t": b"\t", '"': b'"', "\\": b"\\"}


class Cursor:
    """Reads tokens one after another. `tokens`: those of the source, where they are known. `aliases`: the types that
    `!name` stands for."""

    def __init__(self, source: Source, tokens: list[Token] | None = None) -> None:
        self.source = source
        self.tokens = tokenize(source) if tokens is None else tokens
        self.position = 0
        self.type_depth = 0
        self.aliases: dict[str, Attribute] = {}

    # Tokens

    @property
    def token(self) -> Token:
        return self.tokens[self.position]

    def fail(self, message: str, token: Token | None = None, *, hint: str | None = None) -> NoReturn:
        raise self.source.error((token or self.token).at, message, hint=hint)

    def unexpected(self, wanted: str, token: Token | None = None) -> NoReturn:
        found = token or self.token
        self.fail(f"expected {wanted}, found {found.text if found.kind == 'end' else repr(found.text)}", found)

    def take(self) -> Token:
        token = self.tokens[self.position]
        if token.kind != "end":
            self.position += 1
        return token

    def expect(self, text: str) -> Token:
        if self.token.text != text or self.token.kind not in ("punct", "word"):
            self.unexpected(repr(text))
        return self.take()

    def accept(self, text: str) -> bool:
        """Takes the token if it is this punctuation or word."""
        token = self.tokens[self.position]
        if token.text == text and token.kind in ("punct", "word"):
            self.position += 1
            return True
        return False

    def kind(self, kind: str, wanted: str) -> Token:
        if self.token.kind != kind:
            self.unexpected(wanted)
        return self.take()

    def word_of(self, choices: Iterable[str], what: str) -> str:
        """One of several words."""
        choices = list(choices)
        token = self.kind("word", what)
        if token.text not in choices:
            near = get_close_matches(token.text, choices, 1)
            self.fail(
                f"{token.text!r} is not a valid {what}",
                token,
                hint=f"did you mean {near[0]!r}?" if near else f"one of {', '.join(choices)}",
            )
        return token.text

    def integer(self, what: str = "an integer") -> int:
        if self.token.kind == "word" and self.token.text.isupper():
            token = self.take()
            return self.constant(token.text, token)
        token = self.take() if self.token.kind == "hex" else self.kind("int", what)
        return self._whole(token.text, token)

    def constant(self, name: str, token: Token) -> int:
        """The number that a name in capitals stands for. Kernel sources have such names, plain Tile IR does not."""
        self.fail(f"no constant {name}: only kernel sources have named sizes", token)

    def _whole(self, text: str, token: Token) -> int:
        """The number that digits spell. It must fit into 64 bits, as bytecode cannot store larger ones."""
        if len(text) > 20 or not -(1 << 63) <= (value := int(text, 16 if token.kind == "hex" else 10)) < 1 << 64:
            self.fail(f"{text if len(text) < 40 else f'a number of {len(text)} digits'} has more than 64 bits", token)
        return value

    def optional_integer(self) -> int | None:
        """An integer, or `?`."""
        return None if self.accept("?") else self.integer("an integer or '?'")

    def symbol(self) -> str:
        token = self.kind("symbol", "a symbol such as @kernel")
        name = token.text[1:]
        return self.unquote(name, token) if name[0] == '"' else name

    def unquote(self, literal: str, token: Token) -> str:
        r"""The text of a string literal with its escapes replaced; MLIR spells an unprintable byte as `\0A`."""
        out, at = bytearray(), 1
        for escape in _ESCAPE.finditer(literal):
            out += literal[at : escape.start()].encode()
            at = escape.end()
            if escape["other"]:
                self.fail(f"unknown escape {escape.group()}", token)
            out += bytes.fromhex(escape["code"]) if escape["code"] else _LETTERS[escape["letter"]]
        out += literal[at:-1].encode()
        try:
            return out.decode()
        except UnicodeDecodeError:
            self.fail("the string is not UTF-8", token)

    def listed(self, item: Callable[[], T], close: str) -> list[T]:
        """Items with commas between them, up to and including the closing token `close`."""
        items: list[T] = []
        if self.accept(close):
            return items
        while True:
            items.append(item())
            if self.accept(close):
                return items
            if not self.accept(","):
                self.unexpected(f"',' or {close!r}")

    def storage(self, token: Token) -> Attribute:
        """The type that `T` stands for. Only kernel sources have it, plain Tile IR does not."""
        self.fail("no type 'T': only kernel sources have it, for the storage type", token)

    # Types

    def type(self) -> Attribute:
        """A type: an alias, or a type of the dialect with or without `!cuda_tile.`."""
        self.type_depth += 1
        if self.type_depth > MAX_TYPE_DEPTH:
            self.fail(f"types nested deeper than {MAX_TYPE_DEPTH}")
        found = self._any_type()
        self.type_depth -= 1
        return found

    def _any_type(self) -> Attribute:
        token = self.token
        if token.kind == "type_alias":
            self.take()
            if token.text.startswith("!cuda_tile."):
                return self._named_type(token.text.removeprefix("!cuda_tile."), token)
            return self.alias(token.text[1:], token)
        if token.kind != "word":
            self.unexpected("a type")
        self.take()
        return self._named_type(token.text.removeprefix("cuda_tile."), token)

    def alias(self, name: str, token: Token) -> Attribute:
        """The type that `!name` stands for."""
        if name not in self.aliases:
            near = get_close_matches(name, self.aliases, 1)
            self.fail(f"no type alias !{name}", token, hint=f"did you mean !{near[0]}?" if near else None)
        return self.aliases[name]

    def tile_type(self) -> t.TileType:
        token = self.token
        found = self.type()
        if not isinstance(found, t.TileType):
            self.fail(f"expected a tile type, found {t.spell(found)}", token)
        return found

    def _named_type(self, name: str, token: Token) -> Attribute:
        if name in _SCALARS:
            return _SCALARS[name]
        if name == "T":
            return self.storage(token)
        match name:
            case "token":
                return t.token
            case "ptr":
                self.expect("<")
                inner = self.token
                pointee = self.type()
                classified = self.ptr_attr() if self.accept(",") else None
                self.expect(">")
                if pointee not in t.POINTEES:
                    self.fail(f"a pointer cannot point to {t.spell(pointee)}", inner)
                return t.PtrType(pointee, classified)
            case "tile":
                self.expect("<")
                shape = self._shape(dynamic=False)
                element = self._element()
                self.expect(">")
                self._check_tile(shape, token)
                return t.TileType(shape, element)
            case "tensor_view":
                return self._tensor_view(token)
            case _ if name in _VIEWS:
                return self._tile_view(name, token)
            case _:
                near = get_close_matches(name, _TYPE_WORDS, 1)
                hint = f"did you mean {near[0]!r}?" if near else None
                raise self.source.error(token.at, f"no type {name!r}", hint=hint)

    def _check_tile(self, shape: tuple[int, ...], token: Token) -> None:
        elements = 1
        for size in shape:
            elements *= size
            if size & (size - 1):
                self.fail(f"a tile's sizes are powers of two, not {size}", token)
        if elements > MAX_ELEMENTS:
            self.fail(f"a tile of {elements} elements is too large: at most {MAX_ELEMENTS}", token)

    def _element(self) -> Attribute:
        token = self.token
        found = self.type()
        if found not in t.SCALARS and not isinstance(found, t.PtrType):
            self.fail(f"{t.spell(found)} is not an element type", token)
        return found

    def _shape(self, *, dynamic: bool) -> tuple[int, ...]:
        token = self.token
        if token.kind != "shape":
            return ()
        self.take()
        return tuple(self._size(part, token, dynamic=dynamic) for part in token.text.split("x")[:-1])

    def _size(self, text: str, token: Token, *, dynamic: bool) -> int:
        if text == "?":
            if not dynamic:
                self.fail("a tile's sizes are static", token)
            return t.DYNAMIC
        size = self.constant(text, token) if text[0].isalpha() else self._whole(text, token)
        if size < 1:
            self.fail("sizes are positive", token)
        return size

    def _tensor_view(self, token: Token) -> t.TensorViewType:
        self.expect("<")
        shape = self._shape(dynamic=True)
        element = self._element()
        strides: list[int] = []
        if shape:
            self.expect(",")
            self.expect("strides")
            self.expect("=")
            self.expect("[")
            sizes = self.listed(self.optional_integer, "]")
            if any(size is not None and size < 1 for size in sizes):  # also the number that stands for a dynamic one
                self.fail("strides are positive", token)
            strides = [t.DYNAMIC if size is None else size for size in sizes]
        classified = self._named_ptr_attr() if self.accept(",") else None
        self.expect(">")
        if len(strides) != len(shape):
            self.fail(f"{len(shape)} sizes but {len(strides)} strides", token)
        return t.TensorViewType(shape, strides, element, classified)

    def ptr_attr(self) -> str:
        """`<multicast>`: what an address stands for."""
        self.expect("<")
        found = self.word_of(t.PTR_ATTRS, "ptr_attr")
        self.expect(">")
        return found

    def _named_ptr_attr(self) -> str:
        """`#cuda_tile.ptr_attr<multicast>`"""
        token = self.take()
        if token.text != "#cuda_tile.ptr_attr":
            self.unexpected("#cuda_tile.ptr_attr", token)
        return self.ptr_attr()

    def dimensions(self) -> tuple[int, ...]:
        """Sizes in parentheses: `(128x64)`."""
        self.expect("(")
        token = self.token
        lead = self.take().text.split("x")[:-1] if token.kind == "shape" else []
        last = self.integer("a size")
        self.expect(")")
        sizes = tuple(self._size(part, token, dynamic=False) for part in (*lead, str(last)))
        self._check_tile(sizes, token)
        return sizes

    def bracketed(self) -> tuple[int, ...]:
        self.expect("[")
        return tuple(self.listed(self.integer, "]"))

    def _tile_view(self, name: str, token: Token) -> t.TileViewType:
        self.expect("<")
        self.expect("tile")
        self.expect("=")
        tile = self.dimensions()
        self.expect(",")
        strides: tuple[int, ...] = ()
        if name == "strided_view":
            self.expect("traversal_strides")
            self.expect("=")
            strides = self.bracketed()
            self.expect(",")
        padding = None
        if self.accept("padding_value"):
            self.expect("=")
            padding = self.word_of(t.PADDINGS, "padding value")
            self.expect(",")
        inner = self.token
        tensor = self.type()
        if not isinstance(tensor, t.TensorViewType):
            self.fail(f"expected a tensor_view, found {t.spell(tensor)}", inner)
        if name == "gather_scatter_view":
            self.expect(",")
            self.expect("sparse_dim")
            self.expect("=")
            sparse = self.integer()
            self.expect(">")
            return t.GatherScatterViewType(tile, tensor, sparse, padding)
        dim_map: tuple[int, ...] = tuple(range(len(tile)))
        if self.accept(","):
            self.expect("dim_map")
            self.expect("=")
            dim_map = self.bracketed()
        self.expect(">")
        if sorted(dim_map) != list(range(len(tensor.shape))) or len(tile) != len(tensor.shape):
            self.fail(
                f"a tile of rank {len(tile)} with dimension map {list(dim_map)} does not fit {t.spell(tensor)}", token
            )
        if name == "strided_view":
            if len(strides) != len(tile):
                self.fail(f"{len(strides)} traversal strides do not fit a tile of rank {len(tile)}", token)
            return t.StridedViewType(tile, strides, tensor, dim_map, padding)
        return t.PartitionViewType(tile, tensor, dim_map, padding)
