"""The kernels written in CuTe, in the front end `toolchain.cute.dsl`, compiled to PTX per entry (entries.py).

Folders: `products`; `attention`; `ranks`, the products of several GPUs; `decode` and `texts`, a whole decode step of
one text and of a few.
"""

from __future__ import annotations

from pathlib import Path

import toolchain
from toolchain.compiling.fingerprint import fingerprint
from toolchain.contract.artifact import Artifact, ptx
from toolchain.contract.entries import entries_of
from toolchain.contract.entry import EntrySpec
from toolchain.contract.targets import BYTECODE
from toolchain.errors import SourceError, TilestackError

HERE = Path(__file__).parent
COMPILER = Path(toolchain.__file__).parent / "cute"
INDEX_BITS = 32  # `toolchain.cute` computes offsets in i32


class CuteSource:
    """Source `cute`: an entry's PTX is its kernel, traced for the entry's op, dtype and constants (entries.py)."""

    name = "cute"

    def entries(self) -> list[EntrySpec]:
        return entries_of(self.name)

    def artifact(self, spec: EntrySpec, version: str = BYTECODE) -> Artifact:  # noqa: ARG002 - of Tile IR
        """PTX of one entry. Raises SourceError."""
        from .entries import made  # imported here because it needs xDSL, and only this step does

        try:
            found = made(spec)
            text = found.kernel.ptx(found.arch)
        except TilestackError as error:
            raise SourceError(f"{HERE.name}: {spec.symbol}: {error.args[0]}", hint=error.hint) from error
        kernel, block = found.kernel, (found.kernel.threads, 1, 1)
        return ptx(
            text, block=block, shared_bytes=kernel.shared_bytes, waits=kernel.waits, maps=found.maps, ir=str(kernel),
            index_bits=INDEX_BITS, together=found.together,
        )  # fmt: skip

    def fingerprint(self, spec: EntrySpec) -> str:
        """Changes whenever the PTX may. Kernels share their parts, so all files of this folder count."""
        compiler = (path for path in COMPILER.rglob("*.py") if path.parent.name != "executor")
        files = [*HERE.rglob("*.py"), *compiler]
        return fingerprint(spec, files, packages=["llvmlite"])


SOURCE = CuteSource()
