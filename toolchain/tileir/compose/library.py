"""The parts of a kernel source by name: fragments, skeletons and kernels in a folder of `.mlir` files.

A file holds type aliases and items:

- `include "types.mlir"` makes the aliases of another file visible in this one;
- `!x_tile = !cuda_tile.tile<BMxBKxT>` is an alias; names in capitals are the entry's constants, `T` its storage type;
- `sizes BM = 128, BN = 128` gives sample sizes, with which the file is verified if no entry is named;
- `fragment @name(%a: type, ...) -> (types) { ... yield ... }` is a function that is inlined into its callers;
- `skeleton @name { ... }` is the body of an entry with holes;
- `kernel @name op = OP, skeleton = @name { ... }` fills the holes; a kernel without a skeleton is a whole body;
- `repeat I = 0 to 6 { ... }` in a body repeats operations; see `repeat.py`.

Names of fragments, skeletons and kernels are unique in the folder. Aliases belong to their file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

from toolchain.errors import SourceError

from ..source import Source
from ..text.cursor import Cursor
from ..text.lexer import Token, tokenize
from .repeat import write_out

KINDS = ("fragment", "skeleton", "kernel")


@dataclass(frozen=True)
class Item:
    """A fragment, skeleton or kernel: the positions of its first token after the name, and of its end."""

    kind: str
    name: str
    file: PartFile
    start: int
    end: int

    @property
    def tokens(self) -> list[Token]:
        return self.file.tokens[self.start : self.end]

    @property
    def place(self) -> str:
        """`file:line:col` of its name."""
        return str(self.file.source.location(self.file.tokens[self.start - 1].at))

    @property
    def text(self) -> str:
        """Its text without comments: tokens with a space between them."""
        return " ".join(token.text for token in self.tokens)


@dataclass(frozen=True)
class PartFile:
    """One file, indexed. `aliases`: the positions of the first token of each type and of its end."""

    source: Source
    tokens: list[Token]
    includes: list[str] = field(default_factory=list[str])
    aliases: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    items: list[Item] = field(default_factory=list[Item])
    sizes: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def name(self) -> str:
        return self.source.filename

    def alias_text(self, name: str) -> str:
        """The text of the type that an alias stands for."""
        start, end = self.aliases[name]
        return " ".join(token.text for token in self.tokens[start:end])


class Library:
    """All parts of a folder. Raises SourceError with file:line:col if a file cannot be split into items. A name that is
    defined twice is an error only when that part is asked for."""

    def __init__(self, texts: Mapping[str, str], known: Mapping[str, PartFile] | None = None) -> None:
        """`known`: files that are indexed already, by name."""
        self.files = {**(known or {}), **{name: _indexed(Source(text, name)) for name, text in texts.items()}}
        self.items: dict[tuple[str, str], Item] = {}
        self.twice: dict[tuple[str, str], SourceError] = {}
        for file in self.files.values():
            for item in file.items:
                first = self.items.setdefault((item.kind, item.name), item)
                if first is not item:
                    message = f"{item.kind} @{item.name} is defined twice, also at {first.place}"
                    at = file.tokens[item.start - 1].at
                    self.twice[item.kind, item.name] = file.source.error(at, message, hint="rename one of the two")

    @property
    def texts(self) -> dict[str, str]:
        """The text of each file by name, so that errors can show a line."""
        return {name: file.source.text for name, file in self.files.items()}

    def with_file(self, name: str, text: str) -> Library:
        """This library with another text of one file. Raises SourceError."""
        return Library({name: text}, self.files)

    @classmethod
    def load(cls, folder: Path) -> Library:
        """All `.mlir` files of a folder; errors call them `<folder>/<file>`. Raises SourceError for one that is not
        UTF-8 text."""
        return cls(
            {(name := f"{folder.name}/{path.name}"): _read(path, name) for path in sorted(folder.glob("*.mlir"))}
        )

    def find(self, kind: str, name: str) -> Item | None:
        """The part of this name. Raises SourceError, which names both places, if there are two."""
        if twice := self.twice.get((kind, name)):
            raise twice
        return self.items.get((kind, name))

    def near(self, kind: str, name: str) -> str | None:
        """A hint that names a part of a similar name."""
        found = get_close_matches(name, [known for known_kind, known in self.items if known_kind == kind], 1)
        return f"did you mean @{found[0]}?" if found else None

    def alias(self, file: PartFile, name: str) -> tuple[PartFile, int] | None:
        """The file that defines an alias visible in a file: that file itself, or one that it includes."""
        if name in file.aliases:
            return file, file.aliases[name][0]
        for included in file.includes:
            other = self.files[self._beside(file, included)]
            if found := self.alias(other, name):
                return found
        return None

    def known_aliases(self, file: PartFile) -> list[str]:
        included = [
            name for other in file.includes for name in self.known_aliases(self.files[self._beside(file, other)])
        ]
        return [*file.aliases, *included]

    def sizes(self, file: PartFile) -> dict[str, int]:
        """A file's sample sizes, with those of the files that it includes."""
        found: dict[str, int] = {}
        for other in file.includes:
            found |= self.sizes(self.files[self._beside(file, other)])
        return found | file.sizes

    def written(self, kernel: str) -> dict[str, str]:
        """The text of a kernel and of every part and alias that it may use, by name, without comments. Raises
        SourceError if there is no such kernel."""
        item = self.find("kernel", kernel)
        if item is None:
            raise SourceError(f"there is no kernel @{kernel}", hint=self.near("kernel", kernel))
        found: dict[str, str] = {}
        self._collect(item, found)
        return found

    def _collect(self, item: Item, found: dict[str, str]) -> None:
        found[f"{item.kind} @{item.name}"] = item.text
        for token in item.tokens:
            if token.kind == "type_alias":
                self._collect_alias(item.file, token.text[1:], found)
            if token.kind != "symbol":
                continue
            for kind in ("fragment", "skeleton"):
                part = self.find(kind, token.text[1:])
                if part is not None and f"{kind} @{part.name}" not in found:
                    self._collect(part, found)

    def _collect_alias(self, file: PartFile, name: str, found: dict[str, str]) -> None:
        place = self.alias(file, name)
        if place is None or f"{place[0].name} !{name}" in found:
            return
        text = place[0].alias_text(name)
        found[f"{place[0].name} !{name}"] = text
        for word in text.split(" "):
            if word.startswith("!"):
                self._collect_alias(place[0], word[1:], found)

    def _beside(self, file: PartFile, included: str) -> str:
        """The key of a file that another one includes. Raises SourceError."""
        folder, slash, _ = file.name.rpartition("/")
        key = f"{folder}{slash}{included}"
        if key not in self.files:
            raise SourceError(f"{file.name}:1:1: error: it includes {included!r}, which is not in its folder")
        return key


def _read(path: Path, name: str) -> str:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SourceError(f"{name}:1:1: error: it cannot be read: {error.strerror}") from error
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line, column = data.count(b"\n", 0, error.start) + 1, error.start - data.rfind(b"\n", 0, error.start)
        raise SourceError(
            f"{name}:{line}:{column}: error: it is not UTF-8 text: {error.reason}",
            hint="mend it or move it away: a kernel may use parts of every .mlir file in its folder",
        ) from error


def _indexed(source: Source) -> PartFile:
    """Finds the aliases and items of a file without parsing them."""
    cursor = Cursor(source, write_out(source, tokenize(source)))
    file = PartFile(source, cursor.tokens)
    while cursor.token.kind != "end":
        if cursor.token.kind == "type_alias":
            _index_alias(cursor, file)
        elif cursor.accept("include"):
            token = cursor.kind("string", "a file's name in quotes")
            file.includes.append(cursor.unquote(token.text, token))
        elif cursor.accept("sizes"):
            file.sizes.update(_sample_sizes(cursor))
        elif cursor.token.text in KINDS:
            kind = cursor.take().text
            name = cursor.symbol()
            start = cursor.position
            _skip_to_braces(cursor)
            _skip_braces(cursor)
            file.items.append(Item(kind, name, file, start, cursor.position))
        else:
            cursor.unexpected(f"an alias, include, sizes, {', '.join(KINDS)}")
    return file


def _index_alias(cursor: Cursor, file: PartFile) -> None:
    token = cursor.take()
    name = token.text[1:]
    if name in file.aliases:
        cursor.fail(f"alias !{name} is defined twice", token)
    cursor.expect("=")
    start = cursor.position
    cursor.take()
    depth = 0
    while (cursor.token.text in "<>([)]," and cursor.token.kind == "punct") or depth:
        if cursor.token.kind == "end":
            cursor.fail("this type never ends", token)
        text = cursor.take().text
        depth += (text == "<") - (text == ">")
    file.aliases[name] = (start, cursor.position)


def _sample_sizes(cursor: Cursor) -> Iterator[tuple[str, int]]:
    while True:
        name = cursor.kind("word", "a name in capitals").text
        cursor.expect("=")
        yield name, cursor.integer()
        if not cursor.accept(","):
            return


def _skip_to_braces(cursor: Cursor) -> None:
    opening = cursor.token
    while cursor.token.text != "{":
        if cursor.token.kind == "end":
            cursor.fail("expected '{' after this", opening)
        cursor.take()


def _skip_braces(cursor: Cursor) -> None:
    opening, depth = cursor.token, 0
    while True:
        token = cursor.take()
        if token.kind == "end":
            cursor.fail("'{' is never closed", opening)
        if token.kind == "punct":
            depth += (token.text == "{") - (token.text == "}")
        if not depth:
            return
