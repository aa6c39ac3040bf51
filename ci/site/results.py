"""docs/results.md: every number of the benchmark's committed results, beside PyTorch's fastest way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.report.result import BenchmarkRow, Results
from benchmarks.report.table import cells, headline
from toolchain.knobs import ROOT

PAGE = ROOT / "docs/results.md"
FOLDER = ROOT / "benchmarks/results"
HEADER = ("case", "source", "ours, ms", "PyTorch, ms", "ratio", "of floor", "PyTorch's way")
HEAD = """\
<!-- Made by `python -m ci.site --generate` from the files in benchmarks/results: change those. -->

# All results

Every case of the committed benchmarks. A ratio is the time of the fastest correct way in PyTorch over ours: above 1 we
are faster. Its 95 % interval stands behind it. `of floor`: the least time that memory and tensor cores allow, as
a share of ours; after a stroke, the time to copy as many bytes. [Benchmarks](benchmarks.md) says how they are
taken, [performance](performance.md) what they mean."""


def page() -> str:
    """Of each file with a GPU: where it was measured, and a table for each group of cases."""
    files = sorted(FOLDER.glob("nvidia-*.json"), key=lambda path: path.stem)
    return "\n\n".join([HEAD, *(part for path in files for part in _file(path))]) + "\n"


def _file(path: Path) -> Iterator[str]:
    results = Results.load(path)
    where = results.environment
    yield f"## {path.stem}"
    yield (
        f"`benchmarks/results/{path.name}`: {where['gpu']}, driver {where['driver']}, CUDA {where['cuda']}, "
        f"{_made(where)}, first measured {where['date'].split(',')[0]}."
    )
    rows = headline(results.rows)
    for group in dict.fromkeys(row.group for row in rows):
        head = [f"| {' | '.join(HEADER)} |", "|" + "---|" * len(HEADER)]
        yield f"### {group}, {path.stem}"
        yield "\n".join([*head, *(f"| {' | '.join(_line(row))} |" for row in rows if row.group == group)])


def _made(where: Mapping[str, Any]) -> str:
    """The commit that the kernels were compiled from. If another tree launched them, its commit too."""
    tree = f"commit `{where['commit'][:7]}`{' with changes' if where.get('changes') else ''}"
    kernels = where.get("bundle_commit")
    if not kernels or tree == f"commit `{kernels[:7]}`":
        return tree
    return f"kernels of commit `{kernels[:7]}`, launched from {tree}"


def _line(row: BenchmarkRow) -> tuple[str, ...]:
    case, source, ours, _, peer, peer_ms, ratio, ratio_spread, floor, copy = cells(row)
    shares = f"{floor} / {copy}" if copy else floor
    return case, source, ours, peer_ms, f"{ratio} ({ratio_spread})" if ratio_spread else ratio, shares, peer


def write(path: Path = PAGE) -> None:
    path.write_text(page())
