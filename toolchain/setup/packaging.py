"""The build backend of the `tilestack` distribution (PEP 517 and PEP 660), with nothing but the standard library.

A wheel installs the names of `[tool.tilestack] packages` in pyproject.toml: `tilestack` and `cute_runtime`. The folders
of the checkout that they need lie below one of them, in `tilestack/_lib`, as `library` lists them there;
tilestack/__init__.py finds them. An installed wheel thus
has the same modules and tables as the checkout, without names such as `ci` or `toolchain` beside everybody else's.

The bytes depend on the files alone: no times, owners or permissions get in. A build needs no other package and no
network.
"""

from __future__ import annotations

import base64
import csv
import gzip
import hashlib
import io
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

LIBRARY = "tilestack/_lib"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest that a zip file can say
_ROOT_FILES = ("LICENSE", "README.md", "pyproject.toml")


def build_wheel(wheel_directory: str, config_settings: object = None, metadata_directory: object = None) -> str:
    """Writes the wheel of the checkout or sdist in the current folder; returns its file name."""
    del config_settings, metadata_directory
    root = Path.cwd()
    table = _pyproject(root)
    files = {path: (root / path).read_bytes() for place in _packages(table) for path in _files(root, place)}
    for place in _library(table):
        files |= {f"{LIBRARY}/{path}": (root / path).read_bytes() for path in _files(root, place)}
    return _write_wheel(Path(wheel_directory), root, table, files)


def build_editable(wheel_directory: str, config_settings: object = None, metadata_directory: object = None) -> str:
    """Writes a wheel that points at the checkout in the current folder; returns its file name."""
    del config_settings, metadata_directory
    root = Path.cwd()
    return _write_wheel(Path(wheel_directory), root, _pyproject(root), {"tilestack.pth": f"{root}\n".encode()})


def build_sdist(sdist_directory: str, config_settings: object = None) -> str:
    """Writes an archive of all that a wheel is built from, laid out as in the checkout; returns its file name."""
    del config_settings
    root = Path.cwd()
    table = _pyproject(root)
    stem = _stem(table)
    files = {name: (root / name).read_bytes() for name in _ROOT_FILES}
    for place in (*_packages(table), *_library(table)):
        files |= {path: (root / path).read_bytes() for path in _files(root, place)}
    files["PKG-INFO"] = _metadata(root, table)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, content in sorted(files.items()):
            member = tarfile.TarInfo(f"{stem}/{path}")
            member.size, member.mode = len(content), 0o644
            archive.addfile(member, io.BytesIO(content))
    (Path(sdist_directory) / f"{stem}.tar.gz").write_bytes(gzip.compress(packed.getvalue(), mtime=0))
    return f"{stem}.tar.gz"


def _pyproject(root: Path) -> dict[str, Any]:
    return tomllib.loads((root / "pyproject.toml").read_text())


def _packages(table: Mapping[str, Any]) -> list[str]:
    return table["tool"]["tilestack"]["packages"]


def _library(table: Mapping[str, Any]) -> list[str]:
    return table["tool"]["tilestack"]["library"]


def _stem(table: Mapping[str, Any]) -> str:
    return f"{table['project']['name']}-{table['project']['version']}"


def _files(root: Path, place: str) -> Iterator[str]:
    """The files of a folder, or the one file, relative to the root. Raises FileNotFoundError if there are none."""
    path = root / place
    found = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    names = [file.relative_to(root) for file in found]
    names = [name for name in names if not any(p == "__pycache__" or p.startswith(".") for p in name.parts)]
    if not names:
        raise FileNotFoundError(f"{path}: pyproject.toml lists it as part of the library, but there is no such file")
    return (name.as_posix() for name in names)


def _write_wheel(folder: Path, root: Path, table: Mapping[str, Any], files: Mapping[str, bytes]) -> str:
    info = f"{_stem(table)}.dist-info"
    scripts = "".join(f"{name} = {where}\n" for name, where in table["project"]["scripts"].items())
    files = {
        **files,
        f"{info}/METADATA": _metadata(root, table),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: tilestack\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[console_scripts]\n{scripts}".encode(),
        f"{info}/licenses/LICENSE": (root / "LICENSE").read_bytes(),
    }
    record = io.StringIO()
    rows = csv.writer(record, lineterminator="\n")
    for path, content in sorted(files.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        rows.writerow((path, f"sha256={digest}", len(content)))
    rows.writerow((f"{info}/RECORD", "", ""))
    name = f"{_stem(table)}-py3-none-any.whl"
    with zipfile.ZipFile(folder / name, "w") as archive:
        for path, content in [*sorted(files.items()), (f"{info}/RECORD", record.getvalue().encode())]:
            member = zipfile.ZipInfo(path, _EPOCH)
            member.compress_type, member.external_attr = zipfile.ZIP_DEFLATED, 0o100644 << 16
            archive.writestr(member, content)
    return name


def _metadata(root: Path, table: Mapping[str, Any]) -> bytes:
    """https://packaging.python.org/specifications/core-metadata, version 2.4."""
    project = table["project"]
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {project['name']}",
        f"Version: {project['version']}",
        f"Summary: {project['description']}",
        f"License-Expression: {project['license']}",
        "License-File: LICENSE",
        f"Requires-Python: {project['requires-python']}",
        *(f"Requires-Dist: {requirement}" for requirement in project["dependencies"]),
    ]
    for extra, requirements in project["optional-dependencies"].items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f"Requires-Dist: {requirement} ; extra == '{extra}'" for requirement in requirements]
    lines += ["Description-Content-Type: text/markdown", "", (root / project["readme"]).read_text()]
    return "\n".join(lines).encode()
