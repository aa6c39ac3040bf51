"""Which alignments an allocation may have: the verifier and the disassembler agree for every element type."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolchain.errors import SourceError, ToolFailed
from toolchain.tileir import bytecode, text
from toolchain.tileir.dialect import types, verify

ALIGNMENTS = (0, 1, 2, 3, 4, 8, 16, 1 << 62, 1 << 63)


@pytest.mark.needs("toolchain")
@pytest.mark.parametrize("element", sorted(types.spell(kind) for kind in types.POINTEES))
def test_alignments(element: str, tmp_path: Path) -> None:
    from toolchain.pinned.tools import tool

    file = tmp_path / "k.tilebc"
    ours: list[int] = []
    theirs: list[int] = []
    for alignment in ALIGNMENTS:
        source = f"entry @k() {{ %p = alloca num_elem = 4, alignment = {alignment} : tile<ptr<{element}>> return }}"
        module = text.parse(source, filename="k.mlir")
        file.write_bytes(bytecode.write(module, "13.4"))
        try:
            verify(module)
            ours.append(alignment)
        except SourceError:
            pass
        try:
            tool("tileirdisasm").run([str(file)])
            theirs.append(alignment)
        except ToolFailed:
            pass
    assert ours == theirs and 16 in ours
