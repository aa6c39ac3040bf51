"""One hash over everything that an entry's code depends on, for all kernel sources."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from .entry import EntrySpec

HERE = Path(__file__).parent
EXPORTERS = ("cuda-tile", "xdsl")  # packages that trace, build or write bytecode


def fingerprint(
    spec: EntrySpec, files: Iterable[Path], texts: Mapping[str, str] | None = None, packages: Iterable[str] = ()
) -> str:
    """A hash that changes whenever the entry's code may change. It covers the entry, its op's signature, the kernel,
    our compiler and the packages that it uses. `files`: the files of the kernel and of the source's own module;
    `texts`: by name, texts that are only part of a file; `packages`: those that the source uses beside ours."""
    digest = hashlib.sha256(json.dumps(spec.to_json()).encode())
    digest.update(repr(spec.params).encode())
    digest.update(_compiler())
    for path in sorted(files):
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    digest.update(json.dumps(sorted((texts or {}).items())).encode())
    for name in packages:
        digest.update(_version(name))
    return digest.hexdigest()


def _version(package: str) -> bytes:
    try:
        return f"{package} {version(package)}\n".encode()
    except PackageNotFoundError:
        return f"no {package}\n".encode()


@cache
def _compiler() -> bytes:
    """A hash of all of tileir, of the modules that make an entry from a row, which decide a kernel's constants, and of
    the packages' versions."""
    digest = hashlib.sha256()
    for name in EXPORTERS:
        digest.update(_version(name))
    layer = [*HERE.glob("entr*.py"), HERE / "ops.toml", Path(__file__)]
    for path in sorted([*(HERE / "tileir").rglob("*.py"), *layer]):
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.digest()
