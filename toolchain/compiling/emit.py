"""Compiles one kernel from its artifact to a cubin or to machine code as text, for `assemble --emit`. The caller may
keep the files in between, and is told each command."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..contract.artifact import SUFFIXES, Artifact
from ..errors import UsageError
from ..files import write_whole
from ..pinned.pins import pins
from ..pinned.tools import tool
from .stages import command, compile_file

Form = Literal["mlir", "bytecode", "ptx", "cubin", "sass"]
FORMS: Sequence[Form] = ("mlir", "bytecode", "ptx", "cubin", "sass")
COMPILED: Sequence[Form] = ("cubin", "sass")  # what is for one target
DISASSEMBLER = "nvdisasm"


def check_form(form: Form, target: str | None, artifact: Artifact, name: str) -> None:
    """Raises UsageError for a form that an artifact does not take."""
    if form in COMPILED and target is None:
        raise UsageError(f"--emit {form} is machine code of one GPU", hint="name it with --target, such as sm_90")
    if form not in COMPILED and target is not None:
        raise UsageError(f"--emit {form} is the same for every target", hint="leave out --target")
    if form == "ptx" and artifact.form.kind == "tile-ir":
        version = pins().wheels[pins().tools["tileiras"].wheel]
        raise UsageError(
            f"--emit ptx: {name} is Tile IR; tileiras {version} makes a cubin of it in one step and hands out no PTX",
            hint="--emit sass shows the machine code",
        )
    if form in ("mlir", "bytecode") and artifact.form.kind != "tile-ir":
        raise UsageError(f"{name} is {artifact.form.kind}, which has no Tile IR", hint=f"--emit {artifact.form.kind}")


@dataclass(frozen=True)
class Compilation:
    """An artifact on its way to the machine code of a target. `stem`: what its files are called. `say`: told each
    command before it runs."""

    artifact: Artifact
    target: str
    stem: str
    say: Callable[[str], object]

    def commands(self, form: Form, folder: Path = Path()) -> list[str]:
        """What `run` runs, with files in `folder`, as one types it. Nothing is run."""
        source, cubin = self._source(folder), folder / f"{self.stem}.cubin"
        name, arguments = command(self.artifact.form.kind, self.artifact.payload, self.target, source, cubin)
        found = [shlex.join([str(tool(name).path), *arguments])]
        if form == "sass":
            found.append(shlex.join([str(tool(DISASSEMBLER).path), *_disassembling(cubin)]))
        return found

    def run(self, form: Form, kept: Path | None = None) -> bytes:
        """The cubin, or its machine code as text. `kept`: a folder that keeps the files. Raises ToolFailed, and OSError
        for a folder that cannot be written."""
        with _folder(kept) as folder:
            source, cubin = self._source(folder), folder / f"{self.stem}.cubin"
            write_whole(source, self.artifact.payload)
            told = iter(self.commands(form, folder))
            self.say(next(told))
            compile_file(self.artifact.form.kind, self.artifact.payload, self.target, source, cubin)
            if form == "cubin":
                return cubin.read_bytes()
            self.say(next(told))
            text = tool(DISASSEMBLER).run(_disassembling(cubin)).stdout.encode()
            if kept is not None:
                write_whole(folder / f"{self.stem}.sass", text)
            return text

    def _source(self, folder: Path) -> Path:
        return folder / f"{self.stem}.{SUFFIXES[self.artifact.form.kind]}"


def _disassembling(cubin: Path) -> list[str]:
    return ["--print-code", str(cubin)]


@contextmanager
def _folder(kept: Path | None) -> Generator[Path]:
    if kept is not None:
        kept.mkdir(parents=True, exist_ok=True)
        yield kept
        return
    with tempfile.TemporaryDirectory(prefix="tilestack-") as folder:
        yield Path(folder)
