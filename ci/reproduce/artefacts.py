"""The artefacts of `ci/reproduce.toml`, and what they need."""

from __future__ import annotations

import functools
import shutil
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from toolchain.errors import ToolchainError, UsageError
from toolchain.knobs import ROOT
from toolchain.pinned.tools import tool
from toolchain.setup.uv import LINE

TABLE = ROOT / "ci" / "reproduce.toml"
SELECTION = "{selection}"
MAY_KEEP = frozenset({"hostname", "user", "time"})


@dataclass(frozen=True)
class Artefact:
    """Something to make twice. The fields are explained at the head of reproduce.toml."""

    name: str
    command: tuple[str, ...]
    output: str = "{out}"
    form: Literal["files", "bundle"] = "files"
    needs: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    network: bool = False
    keep: Mapping[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        if not self.name or not set(self.name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-"):
            raise UsageError(f"artefact {self.name!r}: a name has a-z, 0-9 and -")
        if not self.command:
            raise UsageError(f"artefact {self.name}: it has no command")
        if unknown := set(self.needs) - set(NEEDS):
            raise UsageError(f"artefact {self.name} needs {', '.join(sorted(unknown))}: one of {', '.join(NEEDS)}")
        if unknown := set(self.keep) - MAY_KEEP:
            raise UsageError(
                f"artefact {self.name} keeps {', '.join(sorted(unknown))}: one of {', '.join(sorted(MAY_KEEP))}"
            )
        if self.form not in ("files", "bundle"):
            raise UsageError(f"artefact {self.name}: form {self.form!r} is neither files nor bundle")

    def words(self, selection: Sequence[str], places: Mapping[str, str]) -> list[str]:
        """The command with its placeholders filled in."""
        words: list[str] = []
        for word in self.command:
            words += selection if word == SELECTION else [self.filled(word, places)]
        return words

    def filled(self, text: str, places: Mapping[str, str]) -> str:
        for name, value in places.items():
            text = text.replace(f"{{{name}}}", value)
        return text


def load(path: Path = TABLE) -> list[Artefact]:
    """The artefacts of a table, in order. Raises UsageError for a table that is not as its head says."""
    try:
        rows: list[dict[str, Any]] = tomllib.loads(path.read_text())["artefact"]
        found = [Artefact(**{name: _frozen(value) for name, value in row.items()}) for row in rows]
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise UsageError(f"{path}: {error}", hint="ci/reproduce.toml explains the fields") from error
    names = [artefact.name for artefact in found]
    for number, artefact in enumerate(found):
        if artefact.name in names[:number]:
            raise UsageError(f"{path}: two artefacts are named {artefact.name}")
        if unknown := set(artefact.after) - set(names[:number]):
            raise UsageError(f"{path}: {artefact.name} comes after {', '.join(sorted(unknown))}: none above it")
    return found


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def choose(artefacts: Sequence[Artefact], only: Sequence[str]) -> list[Artefact]:
    """The artefacts named in `only` and those they are made from; all if `only` is empty. Raises UsageError."""
    known = {artefact.name: artefact for artefact in artefacts}
    if unknown := [name for name in only if name not in known]:
        raise UsageError(f"no artefact {', '.join(unknown)}", hint=f"one of {', '.join(known)}")
    wanted = list(only or known)
    for name in wanted:  # the list grows while it is walked
        wanted += [other for other in known[name].after if other not in wanted]
    return [artefact for artefact in artefacts if artefact.name in wanted]


@functools.cache
def _toolchain() -> str | None:
    try:
        tool("tileiras")
    except ToolchainError as error:
        return str(error)
    return None


def _engine() -> str | None:
    try:
        from toolchain.native.engine import Engine
    except ModuleNotFoundError as error:
        return f"no package {error.name}"
    try:
        Engine.find()
    except ToolchainError as error:
        return str(error)
    return None


# Each capability that an artefact may need, with a function of uv's path that says what is missing, or returns None.
NEEDS: dict[str, Callable[[Path], str | None]] = {
    "toolchain": lambda _: _toolchain(),
    "uv": lambda uv: None if uv.is_file() else f"no {uv}\n  next: run: {LINE}",
    "engine": lambda _: _engine(),
    "mmdebstrap": lambda _: None if shutil.which("mmdebstrap") else "mmdebstrap is not installed",
}


def missing(artefact: Artefact, uv: Path) -> str | None:
    """Why the artefact cannot be made here, or None if it can."""
    return next((f"{name}: {reason}" for name in artefact.needs if (reason := NEEDS[name](uv))), None)
