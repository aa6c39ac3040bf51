"""The reference of the operations of Tile IR, made from the dialect: `python -m ci.site --generate` writes it.

A page is made of a file of examples in docs/reference. The comment at its head is the page's title and introduction;
then there is one entry for each operation, whose name it has. What the operation does is its docstring, its types are
what the verifier accepts, and what an example prints is what it printed on the interpreter.
"""

from __future__ import annotations

import functools
import inspect
import io
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

from xdsl.ir import Attribute
from xdsl.irdl import OpDef, VarResultDef

from conformance.agreement.page import by_operation, measured
from toolchain.knobs import ROOT
from toolchain.tileir import text
from toolchain.tileir.dialect import types as t
from toolchain.tileir.dialect.base import V13_1, TileOp, Version
from toolchain.tileir.dialect.control import ModuleOp
from toolchain.tileir.dialect.ops import OPS
from toolchain.tileir.dialect.rules import RULES
from toolchain.tileir.dialect.verify import verify
from toolchain.tileir.interpreter import Grid, Prepared
from toolchain.tileir.interpreter.operations.codegen import LOWERINGS
from toolchain.tileir.text.formats import FORMATS, KEYWORDS, default

from .accepted import Accepted, accepted, mnemonic
from .forms import FORMS

FOLDER = ROOT / "docs/reference"
PAGES = (
    "floats", "integers", "products", "scaled", "conversions", "shapes", "memory", "multimem", "ordering", "control",
)  # fmt: skip
MADE = "<!-- Made by `python -m ci.site --generate` from the dialect and {}.mlir: change those. -->"


@dataclass(frozen=True)
class Example:
    """An entry of a file of examples: the text of its body, and the grid that runs it."""

    op: str
    grid: Grid
    body: str


def examples(path: Path) -> list[Example]:
    """The entries of a file, in its order. A comment `// grid: 2,2` above one says what runs it, else one block."""
    pattern = re.compile(r"(?:^// grid: ([\d,]+)\n)?^entry @(\w+)\(\) \{\n(.*?)^\}$", re.MULTILINE | re.DOTALL)
    found: list[Example] = []
    for grid, name, body in pattern.findall(path.read_text()):
        sizes = [int(size) for size in (grid or "1").split(",")] + [1, 1]
        found.append(Example(name, (sizes[0], sizes[1], sizes[2]), dedent(body)))
    return found


def page(name: str) -> str:
    """The page of a file of examples."""
    path = FOLDER / f"{name}.mlir"
    source = path.read_text()
    (module,) = text.parse_all(source, filename=str(path))
    verify(module, text=source, filename=str(path))
    title, *intro = [line.removeprefix("// ") for line in source.split("\n\n")[0].splitlines()]
    parts = [
        MADE.format(name),
        f"# {title}",
        "\n".join(intro),
        f"All examples in one file: [{name}.mlir]({name}.mlir).",
    ]
    for example in examples(path):
        parts += _operation(name, example, module)
    return "\n\n".join(parts) + "\n"


def _operation(name: str, example: Example, module: ModuleOp) -> list[str]:
    kind = OPS[example.op]
    op = next(op for op in module.entries[example.op].walk() if isinstance(op, TileOp) and mnemonic(op) == example.op)
    parts = [f"## {example.op}", " ".join(inspect.cleandoc(kind.__doc__ or "").split()), _since(kind)]
    parts.append(f"```mlir\n{_syntax(example.op)}\n```")
    if example.op in RULES and not op.regions:
        parts += _types(example.op, accepted(op))
    parts.append(f"```mlir\n{example.body.rstrip()}\n```")
    printed = io.StringIO()
    with redirect_stdout(printed):
        Prepared(module).launch(example.op, [], example.grid)  # each begins with the globals as they are written
    grid = ",".join(map(str, example.grid)).removesuffix(",1").removesuffix(",1")
    command = f"$ tilestack interpret docs/reference/{name}.mlir --entry {example.op}"
    command += "" if grid == "1" else f" --grid {grid}"
    return [*parts, f"```console\n{command}\n{printed.getvalue().rstrip()}\n```"]


def _since(kind: type[TileOp]) -> str:
    def said(version: Version) -> str:
        return ".".join(map(str, version))

    later = [f"`{name}` since {said(version)}" for name, version in kind.FIELDS_SINCE.items()]
    since = "; ".join([f"Since {said(kind.SINCE or V13_1)}", *later])
    return f"*{since}. Opcode {kind.OPCODE}. {_support(kind)}*"


def _support(kind: type[TileOp]) -> str:
    """What is done with an operation here. Its text and bytecode follow from its declaration."""
    name = kind.name.removeprefix("cuda_tile.")
    words = ["parsed", "verified", "written", *(["interpreted"] if name in LOWERINGS else [])]
    apart = "" if "interpreted" in words else ", not interpreted"
    return f"{', '.join(words[:-1]).capitalize()} and {words[-1]}{apart}. {_compared(name)}"


def _compared(op: str) -> str:
    """What the runs on GPUs say of an operation (conformance/agreement)."""
    if op not in _agreement():
        return "Bits compared on a GPU: not run."
    equal, ran = _agreement()[op]
    gpus = " and ".join(f"an {run.gpu.split()[1]}" for run in measured())
    return f"Bits compared on {gpus}: [equal in {equal} of {ran} cases](../agreement.md)."


@functools.cache
def _agreement() -> Mapping[str, tuple[int, int]]:
    return by_operation(measured())


def _syntax(op: str) -> str:
    """The operation's text, with the names of the fields for its values."""
    form = FORMS[op].replace("\\", "") if op in FORMS else _regular(op)
    results = [
        f"%{name}" + ", ..." * (isinstance(one, VarResultDef) and op != "print_tko")
        for name, one in _definition(op).results
    ]
    return " ".join([*([", ".join(results), "="] if results else []), op, form]).rstrip()


def _regular(op: str) -> str:
    """An operation's syntax behind its name, from the table that the parser and the printer share."""
    words: list[str] = []
    for word in FORMATS[op].split():
        if word == "flags":
            flags = sorted(_flags(op))
            words += [f"[{flag}]" for flag in flags]
        elif word[0] == "~":
            words.append(f"[{KEYWORDS[word[1:]]}<{word[1:]}>]")
        elif word[0] == "=":
            words.append(word[1:])
        elif word[0] == ".":
            words.append(f"{word[1:]} = N")
        elif word[0] == "<":
            words.append(f"type({word[1:-1].replace(',', ', ')})")
        else:
            words.append(f"%{word.strip('_')}" if word.isidentifier() else word)
    return " ".join(words).replace(" ,", ",").replace("[ ", "[").replace(" ]", "]").replace("% ", "%")


def _definition(op: str) -> OpDef:
    return OPS[op].get_irdl_definition()


def _flags(op: str) -> list[str]:
    definition = _definition(op)
    return [name.strip("_") for name, one in definition.properties.items() if "UnitAttr" in str(one.constr)]


def _types(op: str, found: Accepted) -> list[str]:
    """A table of types and property values, and one of the combinations of types if not all of them are accepted."""
    if not found.groups:
        return []
    rows = ["| | |", "|---|---|"]
    single = [{way[i] for way in found.types} for i in range(len(found.groups))]
    free = len(found.types) == math.prod(map(len, single))
    names = [", ".join(f"`{name.strip('_')}`" for name in group) for group in found.groups]
    if free:
        rows += [f"| {name} | {_scalars(group)} |" for name, group in zip(names, single, strict=True)]
    for name, words in found.values.items():
        same: dict[frozenset[tuple[Attribute, ...]], list[str]] = {}
        for word, ways in words.items():
            same.setdefault(ways, []).append(word)
        said = [_words(words, ways, found) for ways, words in same.items()]
        if f"~{name}" in FORMATS.get(op, ""):
            value: Any = default(op, name)
            said.append(f"by default `{value.data.value}`")
        rows.append(f"| `{name.strip('_')}` | {'; '.join(said)} |")
    tables = ["\n".join(rows)] if len(rows) > 2 else []
    if not free:
        head = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
        tables.append("\n".join([*head, *(f"| {' | '.join(row)} |" for row in _combinations(found.types))]))
    return tables


def _words(words: Sequence[str], ways: frozenset[tuple[Attribute, ...]], found: Accepted) -> str:
    """The words of a property that are possible in these ways."""
    types = "" if ways == found.types else _scalars({way[0] for way in ways})
    if words == ["set"]:
        return f"may be set for {types}" if types else "may be set"
    shown = ", ".join(f"`{word}`" for word in words)
    return f"{shown} for {types}" if types else shown


def _scalars(kinds: Iterable[Attribute]) -> str:
    kinds = set(kinds)
    if kinds == set(t.SCALARS):
        return "any type"
    if kinds == set(t.SCALARS) - {t.i4}:
        return "any type but `i4`"
    return ", ".join(f"`{name}`" for scalar, (name, _) in t.SCALARS.items() if scalar in kinds)


def _combinations(ways: frozenset[tuple[Attribute, ...]]) -> list[list[str]]:
    """Rows of the ways, joined where they differ in the last group alone, or in the first alone."""
    order = {scalar: number for number, scalar in enumerate(t.SCALARS)}
    last: dict[tuple[Attribute, ...], set[Attribute]] = {}
    for way in sorted(ways, key=lambda way: [order[scalar] for scalar in way]):
        last.setdefault(way[:-1], set()).add(way[-1])
    joined: dict[tuple[tuple[Attribute, ...], frozenset[Attribute]], list[Attribute]] = {}
    for first, targets in last.items():
        joined.setdefault((first[1:], frozenset(targets)), []).append(first[0])
    if any(middle for middle, _ in joined):
        return [[_scalars([one]) for one in first] + [_scalars(targets)] for first, targets in last.items()]
    return [[_scalars(sources), _scalars(targets)] for (_, targets), sources in joined.items()]


def index() -> str:
    """The first page: what a page of the reference says, and where each operation is."""
    where = {example.op: name for name in PAGES for example in examples(FOLDER / f"{name}.mlir")}
    rows = ["| operation | | since |", "|---|---|---|"]
    for op in sorted(where):
        since = ".".join(map(str, OPS[op].SINCE))
        first = " ".join(inspect.cleandoc(OPS[op].__doc__ or "").split()).split(". ")[0].rstrip(".")
        rows.append(f"| [{op}]({where[op]}.md#{op}) | {first} | {since} |".replace("|x|", "the absolute value"))
    return INDEX.format(toctree="\n".join(PAGES), rows="\n".join(rows), count=len(where))


INDEX = """\
<!-- Made by `python -m ci.site --generate` from the dialect: change that. -->

# The operations of Tile IR

All {count} operations that bytecode 13.5 has. A section says what an operation does, since which version of the
bytecode there is one, and how it is written. What is in brackets may be left out, but for the
brackets of lists, such as indices and sizes; `...` stands for more of the same. Its table has the types of elements
that the verifier accepts, with the names that operands and results have in the text above it.

Each example is an entry of a file beside the page: `docs/reference/floats.mlir` and so on. Its output is what the
interpreter printed, and all of them compile for a GPU. To try one, change the file and run the command again.

[Types, words and modules](types.md) explains the rest: types, rounding, memory order, promises.

```{{toctree}}
:maxdepth: 1

types
{toctree}
```

{rows}
"""


def write(folder: Path = FOLDER) -> None:
    """Writes every page."""
    pages: Mapping[str, str] = {"index": index(), **{name: page(name) for name in PAGES}}
    for name, content in pages.items():
        (folder / f"{name}.md").write_text(content)
