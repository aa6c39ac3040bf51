"""Other releases of the compiler beside the pinned one: tileiras with its ptxas and libnvvm, and mixtures of them.

`toolkits.toml` lists the wheels of each release with their hashes. `nox -s toolkit -- VERSION` installs one into a
folder of its own, beside the compile cache. Nothing compiles with one unless it is asked to.
"""

from __future__ import annotations

import functools
import hashlib
import json
import shutil
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..errors import ToolchainError, UsageError
from ..files import folder_beside
from ..knobs import cache_dir
from .pins import file_sha256, pins
from .tools import Tool, tool

TABLE = Path(__file__).parent / "toolkits.toml"
PARTS = ("tileiras", "ptxas", "libnvvm")  # what decides a cubin: tileiras runs the second and loads the third


@dataclass(frozen=True)
class Wheel:
    """A wheel of a release, and the sha256 of each of its files on the package index (one for each kind of machine)."""

    name: str
    version: str
    sha256: tuple[str, ...]


@functools.cache
def releases() -> Mapping[str, tuple[Wheel, ...]]:
    """The releases of `toolkits.toml` by their tileiras' version."""
    table = tomllib.loads(TABLE.read_text())
    return {
        version: tuple(Wheel(name, row["version"], tuple(row["sha256"])) for name, row in wheels.items())
        for version, wheels in table.items()
    }


@dataclass(frozen=True)
class Toolkit:
    """`parts`: tileiras, ptxas and libnvvm, which lie in one folder as tileiras expects them."""

    parts: Mapping[str, Tool]

    @property
    def name(self) -> str:
        """The version, or that of each part if they differ."""
        versions = {name: part.version for name, part in self.parts.items()}
        first = versions["tileiras"]
        if set(versions.values()) == {first}:
            return first
        return " + ".join(f"{name} {version}" for name, version in versions.items())

    def tool(self, name: str) -> Tool:
        """As `toolchain.pinned.tools.tool`, of this toolkit."""
        return self.parts[name]


def pinned() -> Toolkit:
    """The toolchain's own. Raises ToolchainError if it is not whole."""
    return Toolkit({name: tool(name) for name in PARTS})


@functools.cache
def toolkit(version: str) -> Toolkit:
    """The release of that version. Raises UsageError for one that `toolkits.toml` does not list, ToolchainError if it
    is not installed or was changed since."""
    if version == pins().wheels["nvidia-cuda-tileiras"]:
        return pinned()
    folder = place(version)
    try:
        expected: dict[str, str] = json.loads((folder / "sha256.json").read_text())
    except FileNotFoundError as error:
        raise ToolchainError(f"tileiras {version} is not installed", hint=f"nox -s toolkit -- {version}") from error
    for name in PARTS:
        if (found := file_sha256(folder / pins().tools[name].path)) != expected[name]:
            raise ToolchainError(
                f"{folder}: {name} is damaged: sha256 {found}, installed was {expected[name]}",
                hint=f"rm -r {folder}, then nox -s toolkit -- {version}",
            )
    wheels = {wheel.name: wheel.version for wheel in releases()[version]}
    return _in_folder(folder, {name: (wheels[pins().tools[name].wheel], expected[name]) for name in PARTS})


def place(version: str) -> Path:
    """The folder of a release; its name has a hash of what must be in there. Raises UsageError for an unknown one."""
    if version not in releases():
        known = ", ".join(releases())
        raise UsageError(f"no tileiras {version} in toolchain/pinned/toolkits.toml", hint=f"one of {known}")
    digest = hashlib.sha256(repr(releases()[version]).encode()).hexdigest()
    return cache_dir().parent / f"{cache_dir().name}-toolkits" / f"{version}-{digest[:16]}"


def mixed(parts: Mapping[str, Toolkit]) -> Toolkit:
    """Each part from another toolkit, in one folder, because tileiras runs the ptxas and the libnvvm beside it."""
    if len({id(made) for made in parts.values()}) == 1:
        return parts["tileiras"]
    chosen = {name: parts[name].parts[name] for name in PARTS}
    digest = hashlib.sha256("".join(part.sha256 for part in chosen.values()).encode()).hexdigest()
    folder = cache_dir().parent / f"{cache_dir().name}-toolkits" / f"mixed-{digest[:16]}"
    if not folder.exists():
        with folder_beside(folder) as scratch:
            for name, part in chosen.items():
                path = scratch / "new" / pins().tools[name].path
                path.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(part.path, path)  # no link: tileiras would find what is beside its target
            (scratch / "new").rename(folder)
    for name, part in chosen.items():
        if file_sha256(folder / pins().tools[name].path) != part.sha256:
            raise ToolchainError(f"{folder}: {name} is damaged", hint=f"rm -r {folder}, then run this again")
    return _in_folder(folder, {name: (part.version, part.sha256) for name, part in chosen.items()})


def _in_folder(folder: Path, files: Mapping[str, tuple[str, str]]) -> Toolkit:
    """The toolkit in a folder, from the version and sha256 of each part."""
    made: dict[str, Tool] = {}
    for name, (version, sha256) in files.items():
        used = (name, *pins().tools[name].uses)
        digest = hashlib.sha256("".join(files[part][1] for part in used).encode()).hexdigest()
        made[name] = Tool(name, folder / pins().tools[name].path, version, sha256, digest)
    return Toolkit(made)
