"""Built packages kept in a folder, to be had again without building: an archive each, and what it must be.

An archive is what `conan cache save` writes. It is taken back only if its sha256 is the one noted when it was saved,
and if Conan then finds each file in it as its package's own manifest has it. Keep the folder where only those write
whom you trust to build: the notes lie beside the archives.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from pathlib import Path

from ..errors import ToolchainError
from ..pinned.pins import file_sha256
from .conan import Conan, Package


def _archive(folder: Path, package: Package) -> Path:
    revision = package.reference.partition("#")[2]
    return folder / f"{package.name}-{package.version}-{revision[:12]}-{package.package_id}.tgz"


def save(conan: Conan, folder: Path, package: Package) -> Path:
    """Write the package's archive and its note into `folder`, whole or not at all; returns the archive."""
    folder.mkdir(parents=True, exist_ok=True)
    final = _archive(folder, package)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".saving-") as temporary:
        made = Path(temporary, final.name)
        conan.run("cache", "save", f"{package.reference}:{package.package_id}", "--file", str(made))
        note = {"package": f"{package.reference}:{package.package_id}", "sha256": file_sha256(made)}
        beside = Path(temporary, "note")
        beside.write_text(json.dumps(note, indent=1) + "\n")
        made.replace(final)
        os.replace(beside, _note(final))  # noqa: PTH105 - the note last: without it the archive is not taken
    return final


def restore(conan: Conan, folder: Path, package: Package) -> bool:
    """Take the package back from `folder`; returns whether it was there. Raises ToolchainError if it was changed."""
    archive = _archive(folder, package)
    if not archive.is_file() or not _note(archive).is_file():
        return False
    try:
        noted = json.loads(_note(archive).read_text())
        sha256, saved = noted["sha256"], noted["package"]
    except (ValueError, TypeError, KeyError) as error:
        raise ToolchainError(
            f"{_note(archive)}: there is no note of its sha256", hint=f"delete it: rm {_note(archive)}"
        ) from error
    if (found := file_sha256(archive)) != sha256:
        raise ToolchainError(
            f"{archive}: sha256 {found}, but {sha256} was saved: changed or damaged, so it is not used",
            hint=f"delete it, and the package is built anew: rm {archive}",
        )
    wanted = f"{package.reference}:{package.package_id}"
    if saved != wanted:
        raise ToolchainError(f"{archive} is {saved}, not {wanted}", hint=f"delete it: rm {archive}")
    conan.run("cache", "restore", str(archive))
    conan.run("cache", "check-integrity", wanted)
    return True


def _note(archive: Path) -> Path:
    return archive.with_name(re.sub(r"\.tgz$", ".json", archive.name))
