"""The kernels written as Tile IR text, composed from parts: skeletons, fragments and the kernels that join them.

See `toolchain/tileir/compose/library.py` for what stands in the `.mlir` files.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from toolchain.compiling.fingerprint import fingerprint
from toolchain.contract.artifact import Artifact, tile_ir
from toolchain.contract.entries import entries_of
from toolchain.contract.entry import EntrySpec
from toolchain.contract.targets import BYTECODE
from toolchain.errors import SourceError
from toolchain.tileir import bytecode
from toolchain.tileir.bytecode.writer import parse_version
from toolchain.tileir.compose import Library
from toolchain.tileir.dialect.control import ModuleOp
from toolchain.tileir.specialize import specialize

HERE = Path(__file__).parent


class MlirSource:
    """Source `mlir`: an entry's bytecode is its kernel, composed for the entry's dtype and constants."""

    name = "mlir"

    @cached_property
    def library(self) -> Library:
        """The parts as they stood when first asked for. Raises SourceError."""
        return Library.load(HERE)

    def entries(self) -> list[EntrySpec]:
        return entries_of(self.name)

    def written(self, spec: EntrySpec) -> Mapping[str, str]:
        """The text of an entry's kernel and of each part that it may use, by name, without comments. Raises
        SourceError."""
        try:
            return self.library.written(spec.kernel or spec.op)
        except SourceError as error:
            raise SourceError(f"{HERE.name}: {spec.symbol}: {error.args[0]}", hint=error.hint) from error

    def module(self, spec: EntrySpec, version: str = BYTECODE) -> ModuleOp:
        """The composed module of one entry. Raises SourceError with file:line:col if a part does not fit the entry."""
        return specialize(self.library, spec, parse_version(version))

    def artifact(self, spec: EntrySpec, version: str = BYTECODE) -> Artifact:
        return tile_ir(self.bytecode(spec, version), version)

    def bytecode(self, spec: EntrySpec, version: str = BYTECODE) -> bytes:
        """Tile IR bytecode of one entry. Raises SourceError."""
        return bytecode.write(self.module(spec, version), version)

    def fingerprint(self, spec: EntrySpec) -> str:
        """Changes whenever the bytecode may."""
        try:
            texts = self.written(spec)
        except SourceError:  # the export of this entry will raise it; until then every file counts
            texts = {path.name: path.read_text(errors="backslashreplace") for path in HERE.glob("*.mlir")}
        return fingerprint(spec, [Path(__file__)], texts)


SOURCE = MlirSource()
