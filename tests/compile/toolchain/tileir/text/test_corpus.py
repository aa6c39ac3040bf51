"""The corpus of text forms and the compiler's tools.

The disassembler reads our bytecode with its debug information, and what it prints is read back to the same program."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolchain.tileir import bytecode, text
from toolchain.tileir.dialect import verify
from toolchain.tileir.dialect.control import ModuleOp

CORPUS = Path(__file__).parents[4] / "unit" / "toolchain" / "tileir" / "text" / "corpus"
FILES = sorted(CORPUS.glob("*.mlir"))


def modules(file: Path) -> list[ModuleOp]:
    parts = file.read_text().split("// -----\n")
    return [module for part in parts for module in text.parse_all(part, filename=file.name)]


@pytest.mark.needs("toolchain")
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_disassembler_reads_the_corpus(file: Path, tmp_path: Path) -> None:
    from toolchain.pinned.tools import tool

    path = tmp_path / "k.tilebc"
    for module in modules(file):
        path.write_bytes(bytecode.write(module, "13.5", debug_info=True))
        printed = tool("tileirdisasm").run(["-g", str(path)]).stdout
        if not module.body.block.ops:
            continue  # it prints nothing
        again = text.parse(printed, filename="disassembled.mlir")
        verify(again)
        again.properties.update(module.properties)  # the name and the producer are not in its text
        assert bytecode.write(again, "13.5") == bytecode.write(module, "13.5")


@pytest.mark.needs("toolchain")
def test_the_compiler_takes_debug_information(tmp_path: Path) -> None:
    from toolchain.pinned.tools import tool

    path, cubin = tmp_path / "k.tilebc", tmp_path / "k.cubin"
    for name, source in (("debug-scopes", b"k.py"), ("collatz", b"collatz.mlir")):
        (module,) = modules(CORPUS / f"{name}.mlir")
        path.write_bytes(bytecode.write(module, "13.5", debug_info=True))
        tool("tileiras").run(["--gpu-name=sm_90", "--lineinfo", "-o", str(cubin), str(path)])
        assert source in cubin.read_bytes()
