"""The reference of the CuTe dialects, made from the definitions: `python -m ci.site --generate` writes it.

A page is made of a file of examples in docs/cute-reference. The comment at its head is the page's title and
introduction; then there is one function for each operation, whose name it has. What an operation does, its operands and
its targets are those of its definition; the PTX text is that of the example.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from xdsl.ir import Operation

from toolchain.cute import draw
from toolchain.cute.atoms import atoms, copies, find, find_copy
from toolchain.cute.atoms.mma import WARP
from toolchain.cute.atoms.tcgen05 import COLUMNS, KINDS
from toolchain.cute.dialect.ops import AlgebraOp
from toolchain.cute.dialect.sugar import SUGAR, LeavesOp, PrintOp, SugarOp
from toolchain.cute.dialect.tensor_ops import CUTE, MemoryOp
from toolchain.cute.nvgpu import ArchOp
from toolchain.cute.nvgpu.row import said
from toolchain.cute.parse import CUTE_NVGPU, parse
from toolchain.knobs import ROOT

from .cute_coverage import coverage

FOLDER = ROOT / "docs/cute-reference"
PAGES = ("layouts", "tuples", "tensors", "atoms", "sm80", "sm90", "sm100")
MADE = "<!-- Made by `python -m ci.site --generate` from the dialects{}: change those. -->"
MANY = 12  # forms that a section names; of more, it names the first
PICTURES = {
    "a-m16n8k16": lambda: draw.of_atom(find("mma.m16n8k16.f32.bf16"), "a"),
    "b-m16n8k16": lambda: draw.of_atom(find("mma.m16n8k16.f32.bf16"), "b"),
    "c-m16n8k16": lambda: draw.of_atom(find("mma.m16n8k16.f32.bf16"), "c"),
    "ldmatrix-x2": lambda: draw.of_copy(find_copy("ldmatrix.x2"), "registers"),
}


def operations() -> dict[str, type[Operation]]:
    """All operations of both dialects by the name of their example."""
    found = [*CUTE.operations, *CUTE_NVGPU.operations]
    return {example_name(op.name): op for op in found}


def example_name(name: str) -> str:
    """`cute_nvgpu.arch.mma.sync` has the example `mma_sync`."""
    return re.sub(r"^cute(_nvgpu)?[.](arch[.])?", "", name).replace(".", "_")


def page(name: str) -> str:
    """The page of a file of examples."""
    path = FOLDER / f"{name}.mlir"
    source = path.read_text()
    module = parse(source, str(path))
    title, *intro = [line.removeprefix("// ") for line in source.split("\n\n")[0].splitlines()]
    parts = [
        MADE.format(f" and {name}.mlir"), f"# {title}", "\n".join(intro),
        f"All examples in one file: [{name}.mlir]({name}.mlir).",
    ]  # fmt: skip
    known = operations()
    for function in module.body.ops:
        symbol: Any = function
        example = symbol.sym_name.data
        kind = known[example]
        op = next(op for op in symbol.walk() if type(op) is kind)
        parts += [f"## {kind.name}", _sentence(kind), *_facts(op), f"```mlir\n{_text(source, example)}\n```"]
        if isinstance(op, ArchOp) and op.asm[0]:
            parts.append(f"```text\n{op.asm[0]}\n```")
    return "\n\n".join(parts) + "\n"


def _text(source: str, example: str) -> str:
    found = re.search(rf"^func\.func @{example}\(.*?^\}}$", source, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[0]


def _sentence(kind: type[Operation]) -> str:
    return " ".join((inspect.getdoc(kind) or "").split())


def _facts(op: Operation) -> Iterator[str]:
    """Operands, and what else the definition says."""
    match op:
        case AlgebraOp():
            least = len(op.ROW.operands) - op.ROW.optional
            words = [f"[{w}]" if number >= least else w for number, w in enumerate(op.ROW.operands)]
            yield f"*Operands: {'; '.join(words)}.*"
        case SugarOp() | LeavesOp() | PrintOp():
            yield f"*Operands: {op.OPERANDS}. `cute-desugar` writes it with simpler operations.*"
        case MemoryOp():
            names = [kind.name.removeprefix("cute.") if kind else "value" for kind in op.KINDS]
            words = [f"[{word}]" if number >= len(names) - op.OPTIONAL else word for number, word in enumerate(names)]
            yield f"*Operands: {'; '.join(words) or 'none'}.*"
        case ArchOp():
            row = op.ROW
            lines = [f"Operands: {row.operands or 'none'}", f"GPUs: {row.where}"]
            if row.numbers is not None:
                lines.append(f"`n`: {said(row.numbers)}")
            if row.atoms:
                shown = ", ".join(f"`{atom}`" for atom in row.atoms[:MANY])
                lines.append(f"`atom`: {shown}" + (f" and {len(row.atoms) - MANY} more" * (len(row.atoms) > MANY)))
            yield f"*{'. '.join(lines)}.*"
        case _:
            return


def atom_page() -> str:
    """All atoms: shapes, dtypes and GPUs, and pictures of a few."""
    rows = ["| atom | M, N, K | A and B | C | GPUs | A in |", "|---|---|---|---|---|---|"]
    groups: dict[tuple[str, ...], list[int]] = {}
    for atom in atoms().values():
        kind = atom.name.partition(".")[0]
        place = "registers" if atom.a_layout is not None else "shared memory"
        gpus = f"sm_{atom.arch} and newer" if atom.threads == WARP else "sm_90a"
        tile = f"{atom.m}, {atom.n}, {atom.k}" if atom.threads == WARP else f"{atom.m}, N, {atom.k}"
        groups.setdefault((kind, tile, atom.ab, atom.c, gpus, place), []).append(atom.n)
    for (kind, tile, ab, c, gpus, place), columns in groups.items():
        shown = tile if len(columns) == 1 else f"{tile}; N {columns[0]} to {columns[-1]}"
        rows.append(f"| `{kind}` | {shown} | {ab} | {c} | {gpus} | {place} |")
    tensor = ["| M | blocks | N |", "|---|---|---|"]
    for (m, pair), columns in COLUMNS.items():
        steps = f"{columns[0]} to {columns[-1]} in steps of {columns.step}"
        tensor.append(f"| {m} | {'2' if pair else '1'} | {steps} |")
    drawn = [f"![{picture().title}]({name}.svg)" for name, picture in PICTURES.items()]
    return ATOMS.format(
        made=MADE.format(""), atoms="\n".join(rows), copies=", ".join(f"`{name}`" for name in copies()),
        tensor="\n".join(tensor), kinds=", ".join(f"`{name}`" for name in KINDS), pictures="\n\n".join(drawn),
    )  # fmt: skip


ATOMS = """\
{made}

# The atoms

An atom is one instruction with the layouts that say which thread holds which element. Its name has its tile and the
dtypes of C, and of A and B: `mma.m16n8k16.f32.bf16`. `tilestack draw-layout NAME --operand a` draws it.

{atoms}

Integers have N of 8, 16, 24 and then multiples of 16 with `wgmma`. In `_sp` atoms A has half of the values along K: two
of four, and one of two for tf32.

## Copies

Of a warp, 1, 2 or 4 matrices of 8 x 8 elements of 16 bits, where `stmatrix` needs sm_90:
{copies}. `universal.bN` and `cp.async.bN` move N bits of one thread.

## Tensor memory

`tcgen05.m128n128k16.f32.bf16` and so on, for sm_100a and its family; `tcgen05_pair` for two blocks together. Operands
are {kinds} and the formats of 8, 6 and 4 bits.

{tensor}

## Pictures

T is the thread, V the number of the value in its registers.

{pictures}
"""


def index() -> str:
    """The first page: where each operation is, and the passes."""
    known = operations()
    rows = ["| operation | | |", "|---|---|---|"]
    for name in PAGES:
        for example in re.findall(r"^func\.func @(\w+)", (FOLDER / f"{name}.mlir").read_text(), re.MULTILINE):
            kind = known[example]
            first = _sentence(kind).split(". ")[0].rstrip(".").split(": `")[0]
            anchor = kind.name.replace(".", "").lower()  # as docutils and GitHub make it
            rows.append(f"| [{kind.name}]({name}.md#{anchor}) | {first} | {name} |")
    counts = _counts(list(known.values()))
    toctree = "\n".join([*PAGES, "mma-atoms", "coverage"])
    return INDEX.format(made=MADE.format(""), counts=counts, toctree=toctree, rows="\n".join(rows))


def coverage_page() -> str:
    """What there is of each operation."""
    known = operations()
    found: dict[str, tuple[type[Operation], str]] = {}
    for name in PAGES:
        source = (FOLDER / f"{name}.mlir").read_text()
        for example in re.findall(r"^func\.func @(\w+)", source, re.MULTILINE):
            found[example] = known[example], _text(source, example)
    return coverage(MADE.format(", the passes and NVIDIA's tests"), found)


def _counts(kinds: Sequence[type[Operation]]) -> str:
    cute = sum(kind.name.startswith("cute.") for kind in kinds)
    others = f"of which {len(SUGAR)} are written with simpler ones first, and `cute_nvgpu` {len(kinds) - cute}"
    return f"`cute` has {cute} operations, {others}"


INDEX = """\
{made}

# The operations of CuTe

{counts}.

Each example is a function of a file beside its page; `tilestack cute-opt docs/cute-reference/layouts.mlir` verifies and
prints it. Words in brackets may be left out. [CuTe](../cute.md) explains the rest, and [a table](coverage.md) says what
there is of each: inferred, verified, folded, lowered, run, compared with NVIDIA's.

```{{toctree}}
:maxdepth: 1

{toctree}
```

{rows}
"""


def write(folder: Path = FOLDER) -> None:
    """Writes every page and picture."""
    pages = {
        "index": index(),
        "mma-atoms": atom_page(),
        "coverage": coverage_page(),
        **{name: page(name) for name in PAGES},
    }
    for name, content in pages.items():
        (folder / f"{name}.md").write_text(content)
    for name, picture in PICTURES.items():
        (folder / f"{name}.svg").write_text(draw.as_svg(picture()))
