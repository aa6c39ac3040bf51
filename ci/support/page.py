"""docs/support.md, from the table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from toolchain.contract.entries import committed
from toolchain.contract.targets import targets

from .table import CompileRow, RunRow, Settings, Table

HEAD = """\
# Support table

Measured, not claimed: `python -m ci.support compile` and `run` made this page and its data, ci/support/support.json.
Every cell says how many of the {count} portable entries of ci/support/support.toml passed: {entries}.
They are the fastest to compile, each of another op; other entries may behave differently. All portable entries would
take about 7 hours on two cores, and this page is made anew every night. `tilestack compile --toolkit VERSION` tries
others. `-` means that nothing passed, and the numbers behind a cell point to the errors below the table.

- Kernels: `{kernels}` (hash over the fingerprints of these entries).
- Each tool has its own ptxas and libnvvm: `ci/support/tools/<version>.lock` has the wheels with their hashes.
- A cubin is compiled for a target without its GPU. Targets without a row in "On a GPU" were **not run**.
- Rows and policies of {predicted} are **predicted, not run**:
  see [tuning](tuning.md#predicted-rows-where-there-is-no-such-gpu).
"""
MAKE = """
## Make it again

```
nox -s support                                      # every tileiras: build/support
nox -s support -- --tileiras 13.5.37                # one of them
python -m ci.support run --bundles build/support/bundles --output build/support/gpu.json   # on a GPU machine
nox -s support_page -- build/support/*.json         # ci/support/support.json and this page
nox -s support_page -- --check build/support/*.json # what differs from this page; exit code 1 if anything does
```

Every night CI compiles with each tileiras. If a row or a tool's hash is another, a job fails and shows the difference.
Dates and the hash of the kernels do not count. GPU rows are made by hand, with the `run` command above.

A new tileiras: add its version to ci/matrix.toml, and `ci/support/tools/<version>.lock` made by
`uv pip compile --no-deps --generate-hashes` from tileiras, nvcc and nvvm of that version.
"""


def line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return line(head) + line("---" for _ in head) + "".join(map(line, rows))


class Notes:
    """Errors, numbered as they appear."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def mark(self, why: str) -> str:
        found = [self.numbers.setdefault(one, len(self.numbers) + 1) for one in why.split("; ") if one]
        return f" ({', '.join(map(str, found))})" if found else ""

    def text(self) -> str:
        return "".join(f"{number}. `{why.replace('`', '')}`\n" for why, number in self.numbers.items())


def compiled(version: str, rows: Sequence[CompileRow], table_: Table) -> str:
    """The section of one tileiras: source and bytecode against target."""
    notes = Notes()
    by_cell = {(row.source, row.bytecode, target): row for row in rows for target in row.targets}
    lines: list[Sequence[str]] = []
    for source, bytecode in dict.fromkeys((row.source, row.bytecode) for row in rows):
        cells = [by_cell[source, bytecode, target] for target in targets()]
        exports = f"{cells[0].exported}/{cells[0].of}"
        shown = [f"{f'{row.compiled}/{row.of}' if row.compiled else '-'}{notes.mark(row.why)}" for row in cells]
        lines.append([source, bytecode, exports, *shown])
    hashes = ", ".join(f"{name} `{sha256[:16]}`" for name, sha256 in table_.tools.get(version, {}).items())
    return (
        f"\n## tileiras {version}\n\n{table_.dates[f'tileiras {version}']}; sha256 {hashes}\n\n"
        + table(["source", "bytecode", "exports", *targets()], lines)
        + (f"\n{notes.text()}" if notes.numbers else "")
    )


def on_gpus(rows: Sequence[RunRow], dates: Mapping[str, str]) -> str:
    """Load, run and conform, per GPU and bundle."""
    made = "\n## On a GPU\n\n"
    if not rows:
        return made + "Not run.\n"
    for gpu in dict.fromkeys(row.gpu for row in rows):
        notes, own = Notes(), [row for row in rows if row.gpu == gpu]
        share: Callable[[RunRow, int], str] = lambda row, part: f"{part}/{row.of}"  # noqa: E731
        lines = [
            [row.tileiras, row.bytecode, row.source, share(row, row.loaded), share(row, row.ran),
             share(row, row.conformed) + notes.mark(row.why), str(row.fits)]
            for row in own
        ]  # fmt: skip
        head = ["tileiras", "bytecode", "source", "loads", "runs", "conforms", "cases"]
        made += f"### {gpu}, {own[0].target}, driver {own[0].driver}, {dates[gpu]}\n\n"
        made += f"{table(head, lines)}\n{notes.text()}"
    return made


def page(whole: Table, settings: Settings) -> str:
    """The whole page as Markdown."""
    versions = sorted({row.tileiras for row in whole.compiled}, reverse=True)
    entries = ", ".join(f"`{name}`" for name in settings.entries)
    tables = dict.fromkeys(row.target for row in committed().tuned if row.predicted)
    predicted = ", ".join(f"`entries/{target}.toml`" for target in targets() if target in tables)
    made = HEAD.format(
        count=len(settings.entries), entries=entries, kernels=whole.kernels[:16], predicted=predicted
    )  # fmt: skip
    made += on_gpus(whole.ran, whole.dates)
    for version in versions:
        made += compiled(version, [row for row in whole.compiled if row.tileiras == version], whole)
    return made.rstrip() + "\n" + MAKE
