"""`.toolchain/manifest.json`: the contents of the toolchain folder, written as the last step of its build.

A folder without it is not a toolchain: a build that was killed does not write it.
"""

from __future__ import annotations

import hashlib
import json
import platform
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..errors import ToolchainError
from ..files import write_whole
from ..knobs import ROOT
from .pins import PINS, file_sha256, pins

FORMAT = 1
CHECKOUT = (ROOT / "requirements.lock").is_file()  # an installed wheel has none, and no nox
REPAIR = "run: .venv/bin/nox -s build_toolchain" if CHECKOUT else "run: pip install 'tilestack[compile]'"


@dataclass(frozen=True)
class InstalledFile:
    """A pinned file as installed. `path` is relative to the toolchain folder, `wheel` is `name==version`. While `size`
    and `mtime_ns` are unchanged, the file is assumed to have the `sha256` that it had when it was installed."""

    path: str
    wheel: str
    version: str
    sha256: str
    size: int
    mtime_ns: int


@dataclass(frozen=True)
class Manifest:
    """A loaded manifest.json. `identity`: see `identity()`. `python`: the version of the toolchain's Python."""

    identity: str
    python: str
    tools: Mapping[str, InstalledFile]

    @staticmethod
    def path(folder: Path) -> Path:
        return folder / "manifest.json"

    @classmethod
    def load(cls, folder: Path) -> Manifest:
        """Reads it. Raises ToolchainError if it is missing, damaged, unreadable or of another format."""
        path = cls.path(folder)
        try:
            table = json.loads(path.read_text())
            if table["format"] != FORMAT:
                raise ToolchainError(f"{path}: format {table['format']}, expected {FORMAT}", hint=REPAIR)
            tools = {name: InstalledFile(**row) for name, row in table["tools"].items()}
            return cls(table["identity"], table["python"], tools)
        except FileNotFoundError as error:
            raise ToolchainError(f"{path}: missing: not built, or the build did not finish", hint=REPAIR) from error
        except OSError as error:
            raise ToolchainError(f"{path}: cannot be read: {error.strerror}", hint=REPAIR) from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ToolchainError(f"{path}: damaged: {error!r}", hint=REPAIR) from error

    def save(self, folder: Path) -> None:
        """Writes it in one step."""
        write_whole(self.path(folder), json.dumps({"format": FORMAT, **asdict(self)}, indent=1) + "\n")


def site_packages(folder: Path) -> Path:
    """The folder of the toolchain's packages, relative to `folder`, for the running Python's version."""
    return folder / "venv" / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"


def identity(python: str) -> str:
    """sha256 over everything that decides a toolchain's content: lock, pins, how this checkout is installed, its path,
    Python's version and the kind of machine."""
    digest = hashlib.sha256()
    for path in (ROOT / "requirements.lock", PINS):
        digest.update(path.read_bytes())
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())
    digest.update(json.dumps(installation(pyproject), sort_keys=True).encode())
    digest.update(repr((str(ROOT), python, platform.machine(), FORMAT)).encode())
    return digest.hexdigest()


def installation(pyproject: Mapping[str, Any]) -> dict[str, Any]:
    """What an installation of the checkout takes from pyproject.toml: not the settings of tools, nor any comment."""
    tables = ("project", "dependency-groups", "build-system")
    found = {name: pyproject.get(name, {}) for name in tables}
    unread = ("description", "readme", "license", "license-files")
    return {**found, "project": {key: value for key, value in found["project"].items() if key not in unread}}


def survey(folder: Path, packages: Path) -> dict[str, InstalledFile]:
    """The pinned files in `folder`, each checked against its pin.

    Raises ToolchainError naming the first file that is missing or differs.
    """
    found: dict[str, InstalledFile] = {}
    for name, pin in pins().tools.items():
        path = packages / pin.path
        check_file(path, pin.expected())
        stat = path.stat()
        version = pins().wheels[pin.wheel]
        found[name] = InstalledFile(
            str(path.relative_to(folder)),
            f"{pin.wheel}=={version}",
            version,
            pin.expected(),
            stat.st_size,
            stat.st_mtime_ns,
        )
    return found


def check_tool(folder: Path, manifest: Manifest, name: str) -> Path:
    """The path of the pinned file `name` in the toolchain of that manifest. Raises ToolchainError if it is missing, or
    differs from what was installed or from its pin."""
    installed = manifest.tools.get(name)  # absent if the tool was pinned after the toolchain was built
    if installed is None or installed.sha256 != pins().tools[name].expected():
        raise ToolchainError(f"{folder}: built for other pins than {PINS.name}: {name} differs", hint=REPAIR)
    check_installed(folder, installed)
    return folder / installed.path


def check_file(path: Path, expected: str) -> None:
    """Raises ToolchainError unless `path` is a file with that sha256."""
    try:
        found = file_sha256(path) if path.is_file() else None
    except OSError as error:
        raise ToolchainError(f"{path}: cannot be read: {error.strerror}", hint=REPAIR) from error
    if found is None:
        raise ToolchainError(f"{path}: missing, expected a file with sha256 {expected}", hint=REPAIR)
    if found != expected:
        raise ToolchainError(f"{path}: damaged\n  expected sha256 {expected}\n  found    sha256 {found}", hint=REPAIR)


def check_installed(folder: Path, file: InstalledFile) -> None:
    """Raises ToolchainError unless the file is as it was installed; hashes it only if its size or time changed."""
    path = folder / file.path
    if path.is_file():
        stat = path.stat()
        if (stat.st_size, stat.st_mtime_ns) == (file.size, file.mtime_ns):
            return
    check_file(path, file.sha256)
