"""Atomic writing of files: a reader sees either the old content or the new, never a part of it. And a folder's lock."""

from __future__ import annotations

import fcntl
import os
import secrets
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from .errors import UsageError


def read_named(path: Path) -> bytes:
    """What is in a file that the user named. Raises UsageError if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from error


def check_makable(folder: Path) -> None:
    """Raises UsageError if `folder` cannot be created or written to. Called before the work whose results go there."""
    nearest = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not nearest.is_dir():
        raise UsageError(f"{folder} cannot be created: {nearest} is not a folder")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise UsageError(f"{folder} cannot be written: no permission to write to {nearest}")


def everything(folder: Path) -> list[Path]:
    """Everything in a folder at any depth except folders (files, links, sockets), by name. Raises OSError for a folder
    that cannot be read, which Path.rglob would skip."""

    def refuse(error: OSError) -> None:
        raise error

    found: list[Path] = []
    for root, folders, others in os.walk(folder, onerror=refuse):
        paths = [Path(root, name) for name in folders]
        found += [Path(root, name) for name in others] + [path for path in paths if path.is_symlink()]
    return sorted(found)


@contextmanager
def replacing(path: Path) -> Generator[Path]:
    """A temporary file beside `path`. If the block ends without an exception, the file replaces `path` in one step.
    Otherwise, also when interrupted, it is deleted and `path` stays unchanged.

    The folder must exist. If `path` is a link, its target is replaced. If it is not a plain file, such as /dev/stdout,
    it cannot be replaced, and the block writes to it directly. Raises OSError, which names `path` if it names no file.
    """
    if path.exists() and not path.is_file():
        yield path
        return
    path = Path(os.path.realpath(path))
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        beside.touch(exist_ok=False)  # the permissions of an ordinary new file, which mkstemp does not give
        yield beside
        beside.replace(path)
    except OSError as error:
        if error.filename is None and error.errno is not None:  # writing to an open file says no name
            error.filename = str(path)
        raise
    finally:
        beside.unlink(missing_ok=True)


@contextmanager
def folder_beside(folder: Path) -> Generator[Path]:
    """A scratch folder beside `folder`, to be renamed into its place; it is removed at the end. The folder above is
    made if need be. Raises UsageError, which names `folder`, for what cannot be written there."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as scratch:
            yield Path(scratch)
    except OSError as error:
        raise UsageError(f"{folder} cannot be written: {error.strerror or error}") from error


@contextmanager
def filling(folder: Path) -> Generator[Path]:
    """A scratch folder whose content goes to `folder` once the block has ended without an exception. What has the same
    name there is replaced, and the rest stays. Raises UsageError, which names `folder`, for what cannot be written."""
    with folder_beside(folder) as scratch:
        made = scratch / "made"
        made.mkdir()
        yield made
        if not folder.exists():
            made.rename(folder)
            return
        for each in sorted(made.iterdir()):
            each.replace(folder / each.name)


def write_whole(path: Path, content: str | bytes, *, parents: bool = False) -> None:
    """Writes a file as `replacing` does, text as UTF-8. With `parents` missing folders are created. Raises OSError."""
    if parents:
        path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as beside:
        beside.write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def only_one(folder: Path, what: str) -> Generator[int]:
    """Hold the folder's lock, waiting for it if need be; gives its file descriptor. `what` is made there.

    The lock goes when the last process that has the descriptor open ends, however it ends.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"another build of {what} is running: waiting for it", file=sys.stderr, flush=True)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield file.fileno()
