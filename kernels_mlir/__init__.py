"""The kernels written as Tile IR text: `<op>.mlir`, each valid as it stands, specialized per entry."""

from __future__ import annotations

import hashlib
import json
from importlib.metadata import version as installed_version
from pathlib import Path

from toolchain.artifact import Artifact, tile_ir
from toolchain.entry import EntrySpec, load_entries
from toolchain.errors import SourceError
from toolchain.targets import BYTECODE
from toolchain.tileir import bytecode, overlap, specialize
from toolchain.tileir.bytecode.writer import parse_version
from toolchain.tuned import put_first

HERE = Path(__file__).parent


class MlirSource:
    """Source `mlir`: an entry's bytecode is its op's file, specialized by the entry's dtype and constants."""

    name = "mlir"

    def entries(self) -> list[EntrySpec]:
        return put_first(load_entries(HERE / "entries.toml", self.name), self.name)

    def text(self, spec: EntrySpec) -> tuple[str, Path]:
        """The `.mlir` file that an entry is made from, and its path. Raises SourceError if there is no such kernel."""
        path = HERE / f"{spec.kernel or spec.op}.mlir"
        if not path.is_file():
            raise SourceError(f"{HERE.name}: {spec.symbol}: there is no kernel {path.name}")
        return path.read_text(), path

    def written(self, spec: EntrySpec) -> dict[str, str]:
        """What an entry's kernel is written in: its file, by name, less comments. Raises SourceError."""
        text, path = self.text(spec)
        lines = [line.partition("//")[0].rstrip() for line in text.splitlines()]
        return {path.name: "\n".join(line for line in lines if line)}

    def artifact(self, spec: EntrySpec, version: str = BYTECODE) -> Artifact:
        return tile_ir(self.bytecode(spec, version), version)

    def bytecode(self, spec: EntrySpec, version: str = BYTECODE) -> bytes:
        """Tile IR bytecode of one entry. Raises SourceError with file:line:col if the file does not fit the entry."""
        text, path = self.text(spec)
        module = specialize.specialize(text, filename=f"{HERE.name}/{path.name}", spec=spec)
        overlap.settle(module.entries[spec.symbol], spec, parse_version(version))
        return bytecode.write(module, version)

    def fingerprint(self, spec: EntrySpec) -> str:
        """Changes whenever the bytecode may: the file, the entry, and what parses and writes it."""
        text, _ = self.text(spec)
        compiler = sorted((HERE.parent / "toolchain" / "tileir").rglob("*.py"))
        digest = hashlib.sha256(json.dumps(spec.to_json()).encode())
        digest.update(repr(spec.params).encode())
        digest.update(text.encode())
        digest.update(installed_version("xdsl").encode())
        for path in [Path(__file__), *compiler]:
            digest.update(path.read_bytes())
        return digest.hexdigest()


SOURCE = MlirSource()
