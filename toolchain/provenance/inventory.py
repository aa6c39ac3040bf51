"""What requirements.lock says and what of it stands in the toolchain: what SBOMs and licences are made from."""

from __future__ import annotations

import csv
import re
from base64 import urlsafe_b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions
from pathlib import Path

from ..errors import ToolchainError
from ..knobs import ROOT, toolchain_dir
from ..pinned.manifest import REPAIR, site_packages
from ..setup.update import read_lock

LOCK = ROOT / "requirements.lock"


@dataclass(frozen=True)
class Wheel:
    """A package of the lock. `sha256`: of each of its wheels that the lock allows; `needed_by`: the packages of the
    lock that ask for it. `installed` is None where its markers leave it out, as for what only Windows needs."""

    name: str
    version: str
    sha256: tuple[str, ...]
    needed_by: tuple[str, ...]
    installed: Distribution | None


@dataclass(frozen=True)
class RecordedFile:
    """A file of an installed package, as its RECORD has it: path, sha256 in hex, size in bytes."""

    path: str
    sha256: str
    size: int


def normalized(name: str) -> str:
    """A package's name as an index compares it, https://packaging.python.org/specifications/name-normalization."""
    return re.sub(r"[-_.]+", "-", name).lower()


def inventory(lock: Path = LOCK, packages: Path | None = None) -> dict[str, Wheel]:
    """The packages of the lock, by name. `packages`: the folder they are installed in, the toolchain's by default.

    Raises ToolchainError if one is installed at another version than the lock's, or if there is no such folder.
    """
    if not lock.is_file():
        raise ToolchainError(f"there is no {lock}: an installed wheel has no lock", hint="run it in a checkout")
    packages = packages or site_packages(toolchain_dir())
    if not packages.is_dir():
        raise ToolchainError(f"{packages}: missing: the toolchain is not built", hint=REPAIR)
    installed = {normalized(found.name): found for found in distributions(path=[str(packages)])}
    wheels: dict[str, Wheel] = {}
    for name, row in read_lock(lock.read_text()).items():
        found = installed.get(name)
        if found is not None and found.version != row.version:
            raise ToolchainError(f"{packages} has {name} {found.version}, the lock {row.version}", hint=REPAIR)
        wheels[name] = Wheel(name, row.version, tuple(sorted(row.sha256)), _needed_by(row.text), found)
    return wheels


def _needed_by(text: str) -> tuple[str, ...]:
    """The names in the `# via` comments that uv writes: `# via pytest`, or one name a line."""
    said = re.findall(r"^    #(?: via)? +([\w.-]+)(?: .*)?$", text, flags=re.MULTILINE)
    return tuple(name for name in said if name not in ("via", "tilestack"))


def recorded(package: Distribution) -> list[RecordedFile]:
    """The files of an installed package that its RECORD has a hash of, without those that describe the package itself.

    RECORD is CSV of path, `sha256=` and the digest in base64 without padding, and size:
    https://packaging.python.org/specifications/recording-installed-packages.
    Raises ToolchainError if it is missing or damaged.
    """
    text = package.read_text("RECORD")
    if text is None:
        raise ToolchainError(f"{package.name} {package.version}: it has no RECORD of its files", hint=REPAIR)
    files: list[RecordedFile] = []
    for row in csv.reader(text.splitlines()):
        try:
            path, digest, size = row
            if ".dist-info/" in path or not digest:
                continue
            kind, _, value = digest.partition("=")
            if kind != "sha256":
                raise ValueError(f"{kind} and no sha256")
            files.append(RecordedFile(path, urlsafe_b64decode(value + "=").hex(), int(size)))
        except ValueError as error:
            where = f"{package.name} {package.version}: RECORD: {','.join(row)}"
            raise ToolchainError(f"{where}: {error}", hint=REPAIR) from error
    return files


def missing(wheels: Mapping[str, Wheel]) -> list[str]:
    """The packages of the lock that are not installed."""
    return [name for name, wheel in wheels.items() if wheel.installed is None]
