"""Run the tools of a native toolchain that `nox -s build_toolchain -- --native` built, where it built them.

Tools that were built in a container run in one of the same image: what they link is in it. One container serves all
calls; a call's files go through a folder that both see.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import ToolchainError, ToolFailed
from ..knobs import tool_environment
from ..pinned.issues import Issue, known
from ..pinned.pins import file_sha256
from .build import PREFIX, prefixes
from .engine import Container, Engine, execute

SCRATCH = "/scratch"
HERE = "here"  # as the image: built on this machine, without a container
MAKE = "nox -s build_toolchain -- --native"


class NativeToolsAbsent(ToolchainError):
    """There are no native tools: none were built here."""


@dataclass(frozen=True)
class Output:
    """What a tool printed on standard output, and the files that were asked for, by name."""

    stdout: str
    files: Mapping[str, bytes]


@dataclass(frozen=True)
class NativeToolchain:
    """A prefix and its tools.json. `paths`: each tool's, absolute in the image or relative to the prefix. `cuda_tile`:
    its version, None if the prefix has LLVM alone."""

    prefix: Path
    stack: str
    llvm: str
    image: str
    paths: Mapping[str, str]
    sha256: Mapping[str, str]
    cuda_tile: str | None = None

    @classmethod
    def find(cls) -> NativeToolchain:
        """The one that was built last. Raises NativeToolsAbsent where none was, ToolchainError where it is damaged."""
        try:
            return cls.load(prefixes() / (prefixes() / "current").readlink())
        except FileNotFoundError as error:
            raise NativeToolsAbsent(f"native tools absent: {error.filename}: no such file", hint=MAKE) from error
        except OSError as error:
            raise ToolchainError(f"{error.filename}: cannot be read: {error.strerror}", hint=MAKE) from error

    @classmethod
    def load(cls, prefix: Path) -> NativeToolchain:
        """The one in a prefix that `build.build` returned. Raises OSError, and ToolchainError where it is damaged."""
        path = prefix / "tools.json"
        try:
            facts: Any = json.loads(path.read_text())
            return cls(
                prefix=prefix,
                stack=facts["stack"],
                llvm=facts["llvm"]["version"],
                image=facts["image"],
                paths={name: row["path"] for name, row in facts["tools"].items()},
                sha256={name: row["sha256"] for name, row in facts["tools"].items()},
                cuda_tile=_version_of("cuda_tile", facts["packages"]),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ToolchainError(f"{path}: damaged: {error!r}", hint=f"rm -r {prefix}; {MAKE}") from error

    @property
    def issues(self) -> tuple[Issue, ...]:
        """Known defects of these tools."""
        return known(self.cuda_tile, self.llvm)

    def has(self, *names: str) -> bool:
        """Whether it has all these tools."""
        return all(name in self.paths for name in names)

    def checked(self, name: str) -> Path:
        """Where a tool is, here or in the image. Raises ToolchainError if there is none of that name, or if it is not
        the one that was built."""
        if not self.has(name):
            raise ToolchainError(f"this native toolchain (stack {self.stack}) has no {name}", hint=MAKE)
        file = self.prefix / self.paths[name]
        if self.paths[name].startswith("/") and self.image != HERE:
            return file  # of the image, whose id says what is in it
        if not file.is_file() or file_sha256(file) != self.sha256[name]:
            raise ToolchainError(f"{file} differs from the file that was built", hint=f"rm -r {self.prefix}; {MAKE}")
        return file

    def check_image(self, engine: Engine) -> None:
        """That the engine has the image that the tools were built in. Raises ToolchainError."""
        if not engine.has(self.image):
            raise ToolchainError(f"{engine.version} has no image {self.image}", hint=f"rm -r {self.prefix}; {MAKE}")

    @contextmanager
    def open(self) -> Generator[NativeTools]:
        """Its tools, ready to run. Raises ToolchainError if there is no engine, it lacks the image, or a tool is not
        the one that was built."""
        for name in self.paths:
            self.checked(name)
        with tempfile.TemporaryDirectory(prefix="tilestack-") as temporary:
            scratch = Path(temporary)
            if self.image == HERE:
                yield NativeTools(self, scratch, None)
                return
            engine = Engine.find()
            self.check_image(engine)
            mounts = {self.prefix: (PREFIX, "ro"), scratch: (SCRATCH, "rw")}
            container = engine.start(Container(self.image, mounts=mounts, folder=SCRATCH), ["sleep", "infinity"])
            try:
                yield NativeTools(self, scratch, container)
            finally:
                container.remove(force=True)


def _version_of(name: str, references: Sequence[str]) -> str | None:
    """The version of a package among references of the form name/version#revision:id."""
    found = (reference.partition("#")[0].split("/") for reference in references)
    return next((version for package, version in found if package == name), None)


class NativeTools:
    """The tools of an open native toolchain."""

    def __init__(self, toolchain: NativeToolchain, scratch: Path, container: Any) -> None:
        self.toolchain = toolchain
        self._scratch, self._container = scratch, container

    def run(
        self, name: str, arguments: Sequence[str], *, files: Mapping[str, str | bytes], outputs: Sequence[str] = ()
    ) -> Output:
        """Run a tool in a folder that holds `files`, by their names in `arguments`. Raises ToolFailed, and
        ToolchainError for a tool that this toolchain has not or an output that it did not write."""
        if not self.toolchain.has(name):
            raise ToolchainError(f"this native toolchain (stack {self.toolchain.stack}) has no {name}", hint=MAKE)
        with tempfile.TemporaryDirectory(dir=self._scratch) as temporary:
            folder = Path(temporary)
            for file, data in files.items():
                (folder / file).write_bytes(data.encode() if isinstance(data, str) else data)
            code, stdout, stderr = self._execute(self._command(name, arguments), folder)
            if code:
                version = f"stack {self.toolchain.stack}, LLVM {self.toolchain.llvm}"
                raise ToolFailed([name, *arguments], code, stderr, version=version)
            if missing := [output for output in outputs if not (folder / output).is_file()]:
                raise ToolchainError(f"{name} {' '.join(arguments)} wrote no {', '.join(missing)}")
            return Output(stdout, {output: (folder / output).read_bytes() for output in outputs})

    def _command(self, name: str, arguments: Sequence[str]) -> list[str]:
        path = self.toolchain.paths[name]
        if not path.startswith("/"):
            path = f"{self.toolchain.prefix if self._container is None else PREFIX}/{path}"
        return [path, *arguments]

    def _execute(self, command: list[str], folder: Path) -> tuple[int, str, str]:
        if self._container is None:
            done = subprocess.run(command, cwd=folder, capture_output=True, env=tool_environment(), check=False)
            return done.returncode, done.stdout.decode(), done.stderr.decode(errors="replace")
        inside = f"{SCRATCH}/{folder.relative_to(self._scratch)}"
        return execute(self._container, command, inside, folder)
