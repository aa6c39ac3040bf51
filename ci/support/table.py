"""The rows of the support table, and the file that keeps them."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from toolchain.errors import UsageError
from toolchain.files import write_whole
from toolchain.knobs import ROOT

HERE = ROOT / "ci/support"
DATA = HERE / "support.json"
KERNELS = "kernels.txt"  # beside the bundles: the hash of what they were compiled from
FORMAT = 1


@dataclass(frozen=True)
class Settings:
    """`support.toml`: the bytecode versions, the sources, the symbols of their entries, and how many cases a GPU runs
    of each."""

    bytecode: Sequence[str]
    sources: Sequence[str]
    entries: Sequence[str]
    cases: int

    @classmethod
    def load(cls, path: Path = HERE / "support.toml") -> Settings:
        table = tomllib.loads(path.read_text())
        return cls(table["bytecode"], table["sources"], table["entries"], table["cases"])


@dataclass(frozen=True)
class CompileRow:
    """What one tileiras made of one source's entries in one bytecode version, for targets with the same outcome.
    `exported` and `compiled` are numbers of the `of` entries; `why`: the short errors."""

    tileiras: str
    bytecode: str
    source: str
    of: int
    exported: int
    compiled: int
    why: str
    targets: tuple[str, ...]


@dataclass(frozen=True)
class RunRow:
    """How many of the entries of one bundle a GPU loaded and ran, and how many were right in every case. `fits`: the
    cases that ran."""

    gpu: str
    driver: str
    target: str
    tileiras: str
    bytecode: str
    source: str
    of: int
    loaded: int
    ran: int
    conformed: int
    fits: int
    why: str


@dataclass(frozen=True)
class Table:
    """`kernels`: the hash of what was compiled. `tools`: by version of tileiras the sha256 of its files. `dates`: by
    part (a version of tileiras, or a GPU) the day on which it was measured."""

    kernels: str = ""
    dates: Mapping[str, str] = field(default_factory=dict[str, str])
    tools: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    compiled: Sequence[CompileRow] = ()
    ran: Sequence[RunRow] = ()

    @classmethod
    def load(cls, path: Path = DATA) -> Table:
        """Raises UsageError for a file that is not ours."""
        try:
            found: dict[str, Any] = json.loads(path.read_text())
            if found["format"] != FORMAT:
                raise UsageError(f"{path}: format {found['format']}, this version reads {FORMAT}")
            compiled = [_compile_row(row) for row in found["compiled"]]
            ran = [RunRow(**row) for row in found["ran"]]
            return cls(found["kernels"], found["dates"], found["tools"], compiled, ran)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UsageError(f"{path}: no support table ({type(error).__name__}: {error})") from error

    def write(self, path: Path) -> None:
        """One row a line, so that a change is a visible difference."""
        head = {"format": FORMAT, "kernels": self.kernels, "dates": self.dates, "tools": self.tools}
        lines = [f" {json.dumps(name)}: {json.dumps(value, indent=1)}," for name, value in head.items()]
        for name, rows in (("compiled", self.compiled), ("ran", self.ran)):
            listed = ",\n".join(f"  {json.dumps(asdict(row))}" for row in rows)
            lines.append(f' "{name}": [\n{listed}\n ]' + "," * (name == "compiled"))
        write_whole(path, "{\n" + "\n".join(lines) + "\n}\n", parents=True)

    def merged(self, other: Table) -> Table:
        """This table with the rows of `other` in place of those of the same tileiras, or the same GPU. Rows of other
        kernels go: they say nothing of these."""
        if other.kernels != self.kernels:
            kept = Table(other.kernels)
            return kept.merged(other) if self.kernels else other
        versions, gpus = {row.tileiras for row in other.compiled}, {row.gpu for row in other.ran}
        compiled = [*(row for row in self.compiled if row.tileiras not in versions), *other.compiled]
        ran = [*(row for row in self.ran if row.gpu not in gpus), *other.ran]
        return Table(
            self.kernels, dict(sorted({**self.dates, **other.dates}.items())),
            dict(sorted({**self.tools, **other.tools}.items())),
            sorted(compiled, key=lambda r: (r.tileiras, r.bytecode, r.source, r.targets)),
            sorted(ran, key=lambda r: (r.gpu, r.tileiras, r.bytecode, r.source)),
        )  # fmt: skip


def _compile_row(row: dict[str, Any]) -> CompileRow:
    fields: dict[str, Any] = {**row, "targets": tuple(row["targets"])}
    return CompileRow(**fields)


def merge(tables: Iterable[Table]) -> Table:
    whole = Table()
    for table in tables:
        whole = whole.merged(table)
    return whole
