"""Run one tool of a native toolchain as a user runs any program: with the caller's folder, files, standard streams and
exit code. The programs in a prefix's `bin` (wrappers.py) call this.

What was built in a container runs in one of the same image. It sees the top-level folders of this machine that hold the
current folder or anything that an argument names, at the same places; those in SYSTEM are the image's own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from .. import command
from ..errors import UsageError
from ..pinned.manifest import REPAIR
from .engine import Container, Engine
from .tools import HERE, NativeToolchain

SYSTEM = frozenset(
    {"bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "run", "sbin", "sys", "usr"}
)


def main() -> int:
    prefix, name, *arguments = sys.argv[1:]
    return command.run(lambda: run(Path(prefix), name, arguments), set_up=REPAIR)


def run(prefix: Path, name: str, arguments: Sequence[str]) -> int:
    """Run a tool to its end on this process's standard streams; returns its exit code. Raises ToolchainError if it
    cannot be started, UsageError for a current folder that a container cannot have."""
    toolchain = NativeToolchain.load(prefix)
    path = toolchain.checked(name)
    if toolchain.image == HERE:
        os.execv(path, [name, *arguments])
    folder = Path.cwd()
    mounts = {top: (str(top), "rw") for top in folders(folder, arguments)} | {prefix: (str(prefix), "ro")}
    container = Container(toolchain.image, mounts=mounts, folder=str(folder), stdin=True)
    engine = Engine.find()
    toolchain.check_image(engine)
    return engine.attach(container, [str(path), *arguments])


def folders(folder: Path, arguments: Sequence[str], root: Path = Path("/")) -> list[Path]:
    """The top-level folders that a command in `folder` needs. Raises UsageError."""
    tops = {path.name: path for path in root.iterdir() if path.name not in SYSTEM and path.is_dir()}
    if folder != root and folder.relative_to(root).parts[0] not in tops:
        raise UsageError(
            f"{folder} is not visible in the container, which has its own {folder.relative_to(root).parts[0]}",
            hint="run the tool in another folder, and copy its input there",
        )
    below = (path.relative_to(root).parts for path in _paths(folder, arguments) if path.is_relative_to(root))
    named = {parts[0] for parts in below if parts}
    return sorted(tops[name] for name in named if name in tops)


def _paths(folder: Path, arguments: Sequence[str]) -> Iterator[Path]:
    """What arguments may name: as they are, after `=`, or after an option's letter; and where links lead."""
    for word in (".", *arguments):
        for part in {word, word.partition("=")[2], word[word.find("/") :]}:
            if part and "\0" not in part:
                path = folder / part
                yield Path(os.path.normpath(path))
                yield Path(os.path.realpath(path))
