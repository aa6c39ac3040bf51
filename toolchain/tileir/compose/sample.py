"""The kernels of a file at its sample sizes, which `verify`, `assemble` and `interpret` use if no entry is named."""

from __future__ import annotations

from pathlib import Path

from xdsl.ir import Block, Region

from toolchain.errors import SourceError

from ..dialect import attrs
from ..dialect.control import EntryOp, ModuleOp
from ..dialect.verify import verify, verify_function
from ..passes.cleanup import drop_unused, drop_unused_carry
from ..passes.inline import inline, inline_into
from ..source import Source
from ..text.lexer import tokenize
from .library import KINDS, Item, Library, PartFile
from .parser import KernelParser, Sizes, compose

DTYPE = "bf16"


def is_kernel_source(text: str, *, filename: str = "<text>") -> bool:
    """True for a file of a kernel source, which has items that plain Tile IR does not have. Raises SourceError, which
    names the file, at a character that neither of them can contain."""
    words = {token.text for token in tokenize(Source(text, filename)) if token.kind == "word"}
    return bool(words & {*KINDS, "sizes", "include"}) and "entry" not in words


def sample(path: Path) -> ModuleOp:
    """The kernels of a file as entries of one module, for bf16 and the file's sample sizes. The module is verified, and
    each fragment of the file by itself. A file of fragments alone gives an empty module. Raises SourceError."""
    parts = _Parts(path)
    entries: list[EntryOp] = []
    for item in parts.file.items:
        if (entry := parts.checked(item)) is not None:
            entry.detach()
            entries.append(entry)
    return ModuleOp.create(properties={"sym_name": attrs.StrAttr(path.stem)}, regions=[Region(Block(entries))])


def check_parts(path: Path) -> tuple[list[str], list[SourceError]]:
    """The kernels of a file that are right, and what is wrong with its kernels and fragments: at most one error for
    each, and once if several use the same wrong part. Raises SourceError for a file that cannot be split into them."""
    parts = _Parts(path)
    right: list[str] = []
    errors: dict[str, SourceError] = {}
    for item in parts.file.items:
        try:
            if parts.checked(item) is not None:
                right.append(item.name)
        except SourceError as error:
            errors.setdefault(str(error), error)
    return right, list(errors.values())


class _Parts:
    """A file of a kernel source, with its folder and its sample sizes."""

    def __init__(self, path: Path) -> None:
        self.library = Library.load(path.parent)
        self.file = self.library.files[f"{path.parent.name}/{path.name}"]
        self.constants = self.library.sizes(self.file)

    def checked(self, item: Item) -> EntryOp | None:
        """The verified entry of a kernel; None for another part, of which a fragment is verified too. Raises
        SourceError."""
        if item.kind == "fragment":
            _check_fragment(self.library, self.file, item.name)
        if item.kind != "kernel":
            return None
        # A kernel need not use all sizes of its file.
        module = compose(
            self.library, item.name, symbol=item.name, dtype=DTYPE, constants=self.constants, all_used=False
        )
        inline(module)
        (entry,) = module.entries.values()
        drop_unused_carry(entry)
        drop_unused(entry)
        verify(module, texts=self.library.texts)
        return entry


def _check_fragment(library: Library, file: PartFile, name: str) -> None:
    item = library.find("fragment", name)
    if item is None:
        raise SourceError(f"{file.name}: there is no fragment @{name}")
    parser = KernelParser(library, item, Sizes(library.sizes(file), DTYPE))
    fragment = parser.fragment(name)
    fragments = {made.sym_name.data: made for made in parser.fragments.values()}
    inline_into(fragment, fragments)
    verify_function(fragment, texts=library.texts)
