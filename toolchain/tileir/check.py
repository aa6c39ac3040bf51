"""All that is wrong with a file of Tile IR, text or bytecode, or of a kernel source."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolchain.errors import BytecodeError, SourceError, TilestackError, UsageError
from toolchain.pinned.compatibility import MAGIC

from . import bytecode
from .compose.sample import check_parts, is_kernel_source
from .dialect.control import ModuleOp
from .dialect.verify import errors_of
from .source import Source
from .text.recovery import RecoveringParser

_PLACE = re.compile(r"(?P<file>.+?):(?P<line>\d+):(?P<column>\d+): error: (?P<message>[^\n]*)")


@dataclass(frozen=True)
class Checked:
    """`entries`: those that were read. `errors`: in the order of the file; several where one does not hide the rest."""

    entries: Sequence[str]
    errors: Sequence[TilestackError]


def check_file(raw: bytes, name: str, path: Path | None = None) -> Checked:
    """Checks the content of a file that errors call `name`. `path`: where it is; a kernel source needs the other files
    of its folder."""
    try:
        return _checked(raw, name, path)
    except (BytecodeError, SourceError, UsageError) as error:  # with nothing to go on with
        return Checked([], [error])


def text_of(raw: bytes, name: str) -> str | None:
    """The text in a file's content, or None if it is bytecode. Raises BytecodeError for bytecode that ends inside its
    header, UsageError for what is neither."""
    if raw and MAGIC.startswith(raw):
        raise BytecodeError(f"{name}: Tile IR bytecode that ends inside its header, after {len(raw)} bytes")
    if raw.startswith(MAGIC[:-1]):
        return None
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{name} is neither Tile IR text nor bytecode: {error}") from error


def source_path(text: str, name: str, path: Path | None) -> Path | None:
    """Where a kernel source is, or None if the text is none. Raises UsageError for one without a path: it uses other
    files of its folder."""
    if not is_kernel_source(text, filename=name):
        return None
    if path is None:
        raise UsageError(f"{name} is a kernel source, which uses other files of its folder", hint="name the file")
    return path.absolute()


def _checked(raw: bytes, name: str, path: Path | None) -> Checked:
    text = text_of(raw, name)
    if text is None:
        module = bytecode.read(raw, name=name)
        return Checked(list(module.entries), errors_of(module, filename=name))
    if (source := source_path(text, name, path)) is not None:
        return Checked(*check_parts(source))
    return _text(text, name)


def _text(text: str, name: str) -> Checked:
    parser = RecoveringParser(Source(text, name))
    modules: list[ModuleOp] = parser.all_modules()
    errors = list(parser.errors)
    if not parser.lacks_globals:  # without them, what uses one would seem wrong
        errors += [error for module in modules for error in errors_of(module, text=text, filename=name)]
    return Checked([symbol for module in modules for symbol in module.entries], sorted(errors, key=_line))


def _line(error: TilestackError) -> tuple[int, int]:
    found = _PLACE.match(str(error))
    return (int(found["line"]), int(found["column"])) if found else (0, 0)


def as_json(error: TilestackError) -> dict[str, Any]:
    """Kind, message and hint of an error, and its file, line and column where it has them."""
    text = str(error.args[0])
    place = _PLACE.match(text)
    row: dict[str, Any] = {"kind": type(error).__name__, "file": None, "line": None, "column": None}
    if place:
        row |= {"file": place["file"], "line": int(place["line"]), "column": int(place["column"])}
    return {**row, "message": place["message"] if place else text, "hint": error.hint}
