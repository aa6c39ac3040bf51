"""The pinned versions and hashes of the stack's tools, read from `pins.toml`."""

from __future__ import annotations

import functools
import hashlib
import platform
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..errors import ToolchainError

PINS = Path(__file__).parent / "pins.toml"


@dataclass(frozen=True)
class ToolPin:
    """A file of a wheel that we run or that a tool loads. `path` is relative to site-packages; `uses` names the other
    pinned files that this one runs or loads; `sha256` is by machine (`platform.machine()`)."""

    name: str
    wheel: str
    path: str
    uses: tuple[str, ...]
    sha256: Mapping[str, str]

    def expected(self) -> str:
        """The sha256 for this machine."""
        machine = platform.machine()
        if machine not in self.sha256:
            raise ToolchainError(
                f"{self.name}: there is no build for {machine}",
                hint=f"use a machine of {', '.join(sorted(self.sha256))}",
            )
        return self.sha256[machine]


@dataclass(frozen=True)
class Pins:
    """`wheels`: package to version; `tools`: name to pin."""

    wheels: Mapping[str, str]
    tools: Mapping[str, ToolPin]


@functools.cache
def pins() -> Pins:
    """The content of `pins.toml`."""
    table = tomllib.loads(PINS.read_text())
    wheels = {name: str(row["version"]) for name, row in table["wheels"].items()}
    tools = {
        name: ToolPin(name, row["wheel"], row["path"], tuple(row["uses"]), row["sha256"])
        for name, row in table["tools"].items()
    }
    return Pins(wheels, tools)


def file_sha256(path: Path) -> str:
    """sha256 of a file in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
