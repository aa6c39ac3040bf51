"""Each pass by files that show a module before and after it.

A file begins with `// pass: NAME` and, where the pass asks for it, `// entry: FIELDS`, a TOML inline table of what the
EntrySpec has besides its op (`gelu` if it says nothing) and symbol (`k`). Then the module before, a line `// becomes`
and the module after; several such pairs are separated by `// -----`. What a pass refuses ends in `// error: TEXT`
instead of `// becomes`. A module before may be a kernel source: then it is composed first.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from toolchain.contract.entry import EntrySpec
from toolchain.contract.targets import BYTECODE
from toolchain.errors import SourceError
from toolchain.tileir.bytecode.writer import parse_version
from toolchain.tileir.compose import Library, compose
from toolchain.tileir.compose.sample import is_kernel_source
from toolchain.tileir.dialect.control import ModuleOp
from toolchain.tileir.dialect.verify import verify
from toolchain.tileir.passes import PASSES
from toolchain.tileir.text import parse, print_module

FOLDER = Path(__file__).parent
VERSION = parse_version(BYTECODE)
CASES = [(path, part) for path in sorted(FOLDER.glob("*.mlir")) for part in path.read_text().split("// -----\n")]


def module_of(text: str, spec: EntrySpec) -> ModuleOp:
    if is_kernel_source(text):
        library = Library({"k.mlir": text})
        return compose(library, "k", symbol="k", dtype=spec.dtype, constants=spec.constants)
    return parse(text, filename="k.mlir")


def field(name: str, text: str, default: str) -> str:
    found = re.search(rf"^// {name}: (.*)$", text, re.MULTILINE)
    return found[1] if found else default


@pytest.mark.parametrize(("path", "text"), CASES, ids=[f"{path.stem}-{i}" for i, (path, _) in enumerate(CASES)])
def test_before_and_after(path: Path, text: str) -> None:
    fields = {"op": "gelu", "dtype": "f32", "source": "mlir"}
    fields |= tomllib.loads(f"entry = {field('entry', text, '{}')}")["entry"]
    spec = EntrySpec(**{"symbol": "k", **{k: tuple(v) if isinstance(v, list) else v for k, v in fields.items()}})
    before, becomes, after = text.partition("// becomes\n")
    module = module_of(before, spec)
    run = PASSES[field("pass", text, path.stem)]
    if not becomes:
        with pytest.raises(SourceError) as caught:
            run(module, spec, VERSION)
        assert field("error", text, "the file says neither what it becomes nor the error") in str(caught.value)
        return
    run(module, spec, VERSION)
    verify(module)
    assert print_module(module) == print_module(parse(after, filename="after.mlir"))


def test_every_pass_has_a_file() -> None:
    assert {path.stem for path, _ in CASES} == set(PASSES)
