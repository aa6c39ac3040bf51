"""The tables of docs/doctor.md, from compatibility.toml and targets.toml."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..contract.targets import targets
from ..pinned.compatibility import table


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def tables() -> str:
    """All of them, with headings."""
    known = table()
    parts = [
        "### tileiras, bytecode and targets",
        _table(
            ("tileiras", "reads bytecode", "libnvvm from", "targets", "source"),
            (
                (row.version, " ".join(row.bytecode), row.libnvvm or "not measured", " ".join(row.targets), row.source)
                for row in known.tileiras
            ),
        ),
        "### PTX, ptxas and the driver's compiler",
        _table(
            ("CUDA release", "PTX up to", "for the suffixes a and f too", "source"),
            (
                (row.release, row.ptx, " ".join(c[:-1] for c in row.chips if c.endswith("a")), row.source)
                for row in known.cuda
            ),
        ),
        "### Optimization hints",
        _table(("key", "tileiras from", "source"), ((f"`{row.name}`", row.since, row.source) for row in known.hints)),
        "### The tools of cuda-tile",
        _table(
            ("cuda-tile", "writes bytecode", "hints that its text may have", "source"),
            (
                (
                    row.version,
                    " ".join(row.bytecode),
                    f"{' '.join(row.hints)}, each for {' '.join(row.targets)}" if row.hints else "any",
                    row.source,
                )
                for row in known.cuda_tile
            ),
        ),
        "### Cubins and the driver",
        _table(
            ("cubins of CUDA", "driver from", "source"),
            ((f"{row.cuda}.x", str(row.minimum), row.source) for row in known.drivers),
        ),
        "### Cubins and GPUs",
        _table(
            ("target", "compute capability", "its cubins run on"),
            (
                (
                    target.name,
                    f"{target.compute_capability[0]}.{target.compute_capability[1]}",
                    "this one alone" if target.exact else "this one, and later minor ones of the same major",
                )
                for target in targets().values()
            ),
        ),
        "### Sources",
        _table(("source", "which is"), known.sources.items()),
    ]
    return "\n\n".join(parts)
