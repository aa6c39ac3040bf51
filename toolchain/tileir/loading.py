"""The modules in a file of Tile IR, in any of its forms."""

from __future__ import annotations

from pathlib import Path

from . import bytecode, text
from .check import source_path, text_of
from .compose.sample import sample
from .dialect.control import ModuleOp
from .dialect.verify import verify


def modules_of(raw: bytes, name: str, path: Path | None) -> list[ModuleOp]:
    """The modules of text, or the one of a file of a kernel source or of bytecode, told apart by content; verified.

    `name`: what errors call it. `path`: the file, beside which a kernel source has its parts; None if it is no file.
    Raises SourceError or BytecodeError with the place.
    """
    content = text_of(raw, name)
    if content is None:
        modules = [bytecode.read(raw, name=name)]
    elif (source := source_path(content, name, path)) is not None:
        return [sample(source)]
    else:
        modules = text.parse_all(content, filename=name)
    for module in modules:
        verify(module, text=content, filename=name)
    return modules
