"""The modules of Tile IR in a file that the user named."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from toolchain.errors import UsageError

from .options import STREAM, read, source_name

if TYPE_CHECKING:
    from toolchain.tileir.dialect.control import ModuleOp


def load(path: Path) -> ModuleOp:
    """The module of a file, or of standard input, verified. Raises UsageError if it has several."""
    from toolchain.tileir.loading import modules_of

    modules = modules_of(read(path), source_name(path), None if path == STREAM else path)
    if len(modules) > 1:
        raise UsageError(f"{path} has {len(modules)} modules", hint="keep each module in a file of its own")
    return modules[0]
