"""Both sources' kernels as bytecode, for the interpreter: no GPU compiler is run.

An entry is exported when a test first wants it, once for all processes of a run: they share a cache.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from toolchain.bundles.bundle import Bundle, BundleEntry, FileRef
from toolchain.caching.cache import Cache, key
from toolchain.contract.artifact import tile_ir
from toolchain.contract.entries import committed
from toolchain.contract.entry import EntrySpec
from toolchain.contract.targets import BYTECODE

SOURCES = {name: importlib.import_module(f"kernels_{name}").SOURCE for name in ("mlir", "py")}
Exported = Callable[[EntrySpec], bytes]


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """An entry's bytecode, by its spec as it stands in the tables."""
    base = tmp_path_factory.getbasetemp()
    cache = Cache((base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "exported")

    def export(spec: EntrySpec) -> bytes:
        source = SOURCES[spec.source]
        return cache.get_or_make(key(source.fingerprint(spec)), lambda: source.bytecode(spec))

    return export


@dataclass(frozen=True, eq=False)
class LazyBundle(Bundle):
    """All entries, each exported when it is first read."""

    make: dict[Path, Callable[[], bytes]] = field(default_factory=dict[Path, Callable[[], bytes]])

    def read(self, file: FileRef) -> bytes:
        return self.make[file.path]()


@pytest.fixture(scope="session")
def bundle(exported: Exported) -> Bundle:
    specs = [spec for source in SOURCES.values() for spec in source.entries()]
    form = tile_ir(b"", BYTECODE).form
    files = [Path(spec.source, spec.symbol) for spec in specs]
    entries = tuple(BundleEntry(spec, FileRef(path, ""), form, {}) for spec, path in zip(specs, files, strict=True))
    make = {path: lambda spec=spec: exported(spec) for spec, path in zip(specs, files, strict=True)}
    return LazyBundle(Path("nowhere"), entries, {}, committed().policies, make=make)
