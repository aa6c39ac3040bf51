"""docs/compilation.md: one entry after every stage of its compilation, as the tools make it now."""

from __future__ import annotations

import difflib
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from toolchain.compiling.stages import STAGES
from toolchain.contract.entry import EntrySpec
from toolchain.contract.sources import load_source
from toolchain.contract.targets import BYTECODE
from toolchain.knobs import ROOT
from toolchain.pinned.tools import tool
from toolchain.tileir import bytecode, text
from toolchain.tileir.bytecode.writer import parse_version
from toolchain.tileir.compose import Library, compose
from toolchain.tileir.dialect.control import ModuleOp
from toolchain.tileir.interpreter import Prepared
from toolchain.tileir.passes import PASSES
from toolchain.tileir.specialize import COMPOSED, FINAL

PAGE = ROOT / "docs/compilation.md"
PACKAGE, SYMBOL, TARGET = "kernels_mlir", "gelu_1024_bf16", "sm_90"
UNALIGNED = "gelu_any_bf16"  # the same kernel without any promise
TARGETS = ("sm_80", "sm_90", "sm_100")
SHOWN = re.compile(
    r"^\s+/\*[0-9a-f]{4}\*/\s+((?:@!?U?P\w+ )?(?:LDG|STG|MUFU\.TANH|PREEXIT|ACQBULK)\b[^;]*);", re.MULTILINE
)
WHAT = {
    "inline": "fills holes, and replaces each call by the fragment's body",
    "drop-unused-carry": "loop values that nothing reads",
    "drop-unused": "values that nothing reads",
    "drop-identity-casts": "casts to the type that is there already",
    "assume-divisors": "the entry's promises, as operations",
    "set-sizes": "sizes that the entry has compiled in",
    "set-hints": "hints for the compiler",
    "overlap": "the wait for the launch before",
}


def page() -> str:
    """Raises SourceError, ToolFailed and whatever else a stage raises."""
    source: Any = load_source(PACKAGE)
    specs: dict[str, EntrySpec] = {spec.symbol: spec for spec in source.entries()}
    spec = specs[SYMBOL]
    module, steps = _passes(source.library, spec)
    code = bytecode.write(module, BYTECODE)
    assert code == source.bytecode(spec)  # what is shown is what is compiled
    changes = {name: change for name, _, _, change in steps}
    sass = {target: _sass(STAGES["tile-ir"].run(code, target)) for target in TARGETS}
    unaligned = _row(
        f"`{TARGET}`, `{UNALIGNED}`", *_sass(STAGES["tile-ir"].run(source.bytecode(specs[UNALIGNED]), TARGET))
    )
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), undefined=StrictUndefined, trim_blocks=True,
        keep_trailing_newline=True, autoescape=False,
    )  # fmt: skip
    return environment.get_template("compilation.md.j2").render(
        spec=spec, source=(ROOT / PACKAGE / "gelu.mlir").read_text().rstrip(), facts=_facts(spec),
        passes=[(name, before, after, WHAT[name]) for name, before, after, _ in steps],
        assumed=changes["assume-divisors"], overlapped=changes["overlap"], text=text.print_module(module).rstrip(),
        bytecode=code, version=BYTECODE, dump="\n".join(_dump(code[:64])), target=TARGET,
        targets=[*(_row(f"`{target}`", *sass[target]) for target in TARGETS), unaligned],
        sass="\n".join(line.strip() for line in SHOWN.findall(sass[TARGET][0])),
        python=Prepared(module).kernel(SYMBOL, sanitize=False).source.rstrip(),
    )  # fmt: skip


def _facts(spec: EntrySpec) -> list[tuple[str, str]]:
    def words(values: Any) -> str:
        return ", ".join(f"`{value}`" for value in values)

    return [
        ("op, dtype", words([spec.op, spec.dtype])),
        ("constants", words(f"{name} = {value}" for name, value in spec.constants.items())),
        ("grid", words(spec.grid)),
        ("16-byte addresses and rows", words(spec.aligned)),
        ("multiples", words(f"{name} of {value}" for name, value in spec.multiples.items())),
    ]


def _passes(library: Library, spec: EntrySpec) -> tuple[ModuleOp, list[tuple[str, int, int, str]]]:
    """The final module, and for each pass: its name, the number of operations before and after, the lines it added."""
    kernel = spec.kernel or spec.op
    module = compose(library, kernel, symbol=spec.symbol, dtype=spec.dtype, constants=spec.constants, op=spec.op)
    found: list[tuple[str, int, int, str]] = []
    old: list[str] = []
    for name in (*COMPOSED, "assume-divisors", *FINAL, "overlap"):
        before = _size(module)
        PASSES[name](module, spec, parse_version(BYTECODE))
        new = [line.strip() for line in text.print_module(module).splitlines()]
        added = [line[2:] for line in difflib.ndiff(old, new) if line.startswith("+ ")] if old else []
        found.append((name, before, _size(module), "\n".join(added)))
        old = new
    return module, found


def _size(module: ModuleOp) -> int:
    """The operations inside of the entry."""
    return len(list(module.entries[SYMBOL].walk())) - 1


def _dump(data: bytes) -> Iterator[str]:
    for start in range(0, len(data), 16):
        row = data[start : start + 16]
        shown = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        yield f"{start:04x}  {row.hex(' ')}  {shown}"


def _sass(cubin: bytes) -> tuple[str, str]:
    """The disassembly of a cubin, and its resources as cuobjdump says them."""
    with tempfile.TemporaryDirectory(prefix="tilestack-") as folder:
        path = Path(folder, "kernel.cubin")
        path.write_bytes(cubin)
        usage = tool("cuobjdump").run(["--dump-resource-usage", str(path)]).stdout
        return tool("nvdisasm").run(["--print-code", str(path)]).stdout, usage


def _row(name: str, code: str, usage: str) -> tuple[str, ...]:
    shown = [line.split(".")[0].split()[-1] for line in SHOWN.findall(code)]
    registers = re.search(r"REG:(\d+)", usage)
    assert registers is not None, usage
    instructions = len(re.findall(r"^\s+/\*[0-9a-f]{4}\*/", code, re.MULTILINE))
    counts = (shown.count(name) for name in ("LDG", "STG", "MUFU"))
    return (name, registers[1], str(instructions), *map(str, counts))


def write(path: Path = PAGE) -> None:
    path.write_text(page())
