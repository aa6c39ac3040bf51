"""The sources' kernels as the interpreter and the assembler take them: no GPU compiler is run.

An entry is exported when a test first wants it, unless a compile has left it in the cache. Its key is a digest of the
kernel and of all that exports it, so what a test gets is what the tree as it stands exports.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from toolchain.bundles.bundle import Bundle, BundleEntry, FileRef
from toolchain.caching.cache import Cache
from toolchain.compiling import pipeline
from toolchain.contract.artifact import Artifact, tile_ir
from toolchain.contract.entries import committed
from toolchain.contract.entry import EntrySpec
from toolchain.contract.targets import BYTECODE
from toolchain.knobs import cache_dir

SOURCES = {name: importlib.import_module(f"kernels_{name}").SOURCE for name in ("mlir", "py")}
Exported = Callable[[EntrySpec], bytes]
MakeArtifact = Callable[[EntrySpec], Artifact]


@pytest.fixture(scope="session")
def artifact() -> MakeArtifact:
    """An entry's artifact, by its spec as it stands in the tables."""
    cache = Cache(cache_dir())
    return lambda spec: pipeline.exported(f"kernels_{spec.source}", spec, cache)


@pytest.fixture(scope="session")
def exported(artifact: MakeArtifact) -> Exported:
    """An entry's bytecode."""
    return lambda spec: artifact(spec).payload


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
