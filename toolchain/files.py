"""Files that are written whole or not at all: whoever reads one sees the old content or the new, never a part."""

from __future__ import annotations

import os
import secrets
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from .errors import UsageError


def check_makable(folder: Path) -> None:
    """Raises UsageError where `folder` is not there and cannot be made, or may not be written to: to be asked before
    the work whose results shall go there."""
    nearest = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not nearest.is_dir():
        raise UsageError(f"{folder} cannot be created: {nearest} is not a folder")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise UsageError(f"{folder} cannot be written: no permission to write to {nearest}")


def everything(folder: Path) -> list[Path]:
    """All that stands in a folder at any depth but the folders: files, links, sockets; by name. Raises OSError for a
    folder in it that cannot be read, which Path.rglob would pass over."""

    def refuse(error: OSError) -> None:
        raise error

    found: list[Path] = []
    for root, folders, others in os.walk(folder, onerror=refuse):
        paths = [Path(root, name) for name in folders]
        found += [Path(root, name) for name in others] + [path for path in paths if path.is_symlink()]
    return sorted(found)


@contextmanager
def replacing(path: Path) -> Generator[Path]:
    """A file beside `path` to write to. It takes the place of `path` at once where the block ends well; where it ends
    otherwise, interrupted too, it is gone and `path` is as it was.

    The folder must be there. A link stays, and what it leads to is replaced; what is no plain file, such as
    /dev/stdout, has no place to take and is given itself. Raises OSError.
    """
    if path.exists() and not path.is_file():
        yield path
        return
    path = Path(os.path.realpath(path))
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        beside.touch(exist_ok=False)  # with the permissions of any new file, as mkstemp's are not
        yield beside
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def write_whole(path: Path, content: str | bytes, *, parents: bool = False) -> None:
    """Writes a file as `replacing` does; text as UTF-8. `parents`: its folder is made if need be. Raises OSError."""
    if parents:
        path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as beside:
        beside.write_bytes(content.encode() if isinstance(content, str) else content)
