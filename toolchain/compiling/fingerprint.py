"""One hash over everything that an entry's code depends on, for all kernel sources."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ..contract.entry import EntrySpec

TOOLCHAIN = Path(__file__).parent.parent
# What makes an entry of a row and bytecode of an entry. The interpreter has no part in it.
COMPILER = (
    "contract/ops.toml", "contract/op.py", "contract/rows.py", "contract/entries.py", "contract/entry.py",
    "contract/expressions.py", "compiling/fingerprint.py",
    "tileir/block_zero.py", "tileir/location.py", "tileir/numbers.py", "tileir/source.py", "tileir/specialize.py",
    "tileir/bytecode", "tileir/compose", "tileir/dialect", "tileir/passes", "tileir/text",
)  # fmt: skip
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
    """A hash of the files that COMPILER names, of those in its folders at any depth, and of the packages' versions."""
    digest = hashlib.sha256()
    for name in EXPORTERS:
        digest.update(_version(name))
    for path in map(TOOLCHAIN.joinpath, COMPILER):
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(file.relative_to(TOOLCHAIN).as_posix().encode())
            digest.update(file.read_bytes())
    return digest.digest()
