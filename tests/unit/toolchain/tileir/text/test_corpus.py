"""Small modules, one for each form of the text and each operation: read, verified, printed, read again, written.

A file says its form in a line `// form: ...`. What follows `// CHECK:` must be printed, in the order of the file, and
what follows `// CHECK-NEXT:` on the next line. Modules that stand in one file have `// -----` between them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from toolchain.tileir import bytecode, text
from toolchain.tileir.dialect import verify
from toolchain.tileir.dialect.control import ModuleOp
from toolchain.tileir.dialect.ops import OPS

CORPUS = Path(__file__).parent / "corpus"
FILES = sorted(CORPUS.glob("*.mlir"))
DOCS = Path(__file__).parents[5] / "docs" / "tile-ir-text.md"


def parts(file: Path) -> list[str]:
    """The modules of a file, each with empty lines in front so that its lines keep their numbers."""
    found: list[str] = []
    line = 0
    for part in file.read_text().split("// -----\n"):
        found.append("\n" * line + part)
        line += part.count("\n") + 1
    return found


def read(source: str, name: str) -> list[ModuleOp]:
    modules = text.parse_all(source, filename=name)
    for module in modules:
        verify(module, text=source, filename=name)
    return modules


def printed(modules: list[ModuleOp]) -> str:
    return text.print_modules(modules, locations=True)


def check(source: str, output: str) -> int:
    """Finds each wanted line of `source` in `output`, in order. Returns how many there are."""
    lines = [line.strip() for line in output.splitlines()]
    at = -1
    count = 0
    for line in source.splitlines():
        word, _, wanted = line.strip().removeprefix("// ").partition(": ")
        if word not in ("CHECK", "CHECK-NEXT"):
            continue
        following = [i for i in range(at + 1, len(lines)) if wanted in lines[i]]
        assert following, f"not printed after line {at + 1}: {wanted}\n{output}"
        assert word == "CHECK" or following[0] == at + 1, f"not on line {at + 2}: {wanted}\n{output}"
        at = following[0]
        count += 1
    return count


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_text_is_read_and_printed(file: Path) -> None:
    for source in parts(file):
        modules = read(source, file.name)
        output = printed(modules)
        assert check(source, output)
        again = read(output, "printed.mlir")
        assert printed(again) == output
        for module, copy in zip(modules, again, strict=True):
            code = bytecode.write(module, "13.5")
            assert bytecode.write(copy, "13.5") == code
            assert bytecode.write(bytecode.read(code), "13.5") == code


def test_the_table_of_the_docs_has_each_form() -> None:
    lines = DOCS.read_text().partition("| form |")[2].partition("\n\n")[0].splitlines()[2:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    forms = {
        line.removeprefix("// form: ")
        for file in FILES
        for line in file.read_text().splitlines()
        if line.startswith("// form: ")
    }
    assert {form for form, _, _ in rows} == forms and len(rows) == len(FILES)
    assert all(read and printed for _, read, printed in rows)


def test_every_operation_is_in_the_corpus() -> None:
    used = {
        op.name.removeprefix("cuda_tile.")
        for file in FILES
        for source in parts(file)
        for module in text.parse_all(source, filename=file.name)
        for op in module.walk()
    }
    assert OPS.keys() - used == set()
