"""The table and the picture of a results file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from toolchain.errors import UsageError

from ..report.plots import COLORS, PEER
from ..report.svg import Panel, Picture, Scale, around
from .cases import COLLECTIVES, KILOBYTE, MEGABYTE, Row


def load(path: Path) -> tuple[Mapping[str, Any], list[Row]]:
    """The environment and the rows. Raises UsageError for another file."""
    try:
        found: Any = json.loads(path.read_text())
        return found["environment"], [Row(**row) for row in found["rows"]]
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path}: not results of the collectives ({type(error).__name__}: {error})") from error


def size(nbytes: int) -> str:
    return f"{nbytes // MEGABYTE} MB" if nbytes >= MEGABYTE else f"{nbytes // KILOBYTE} KB"


def fastest(rows: Sequence[Row], collective: str) -> dict[str, dict[int, Row]]:
    """For each column, by size, the row of the least time. Ours is the best of its kernels; PyTorch's two sums over
    symmetric memory are two columns."""
    found: dict[str, dict[int, Row]] = {}
    for row in rows:
        if row.collective != collective or row.error:
            continue
        name = row.side if row.side in ("ours", "NCCL") else f"{row.side}, {row.variant}"
        best = found.setdefault(name, {}).get(row.nbytes)
        if best is None or row.us < best.us:
            found[name][row.nbytes] = row
    return found


def table(rows: Sequence[Row], collective: str) -> str:
    """Microseconds with the half width of their 95 % interval, by size and side, as Markdown."""
    columns = fastest(rows, collective)
    sizes = sorted({row.nbytes for row in rows if row.collective == collective})
    lines = [f"| {collective} | {' | '.join(columns)} |", f"|---|{'--:|' * len(columns)}"]
    for nbytes in sizes:
        cells = [_cell(column.get(nbytes)) for column in columns.values()]
        lines.append(f"| {size(nbytes)} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(row: Row | None) -> str:
    return "-" if row is None else f"{row.us:.3g} ± {(row.high - row.low) / 2:.1g}"


def tables(environment: Mapping[str, Any], rows: Sequence[Row]) -> str:
    """All of them, with what they were measured on."""
    where = ", ".join(f"{name} {value}" for name, value in environment.items())
    there = [name for name in COLLECTIVES if any(row.collective == name for row in rows)]
    there_products = [row for row in rows if row.collective not in COLLECTIVES and not row.error]
    products = [f"{row.collective}, {row.side}, {row.variant}: {_cell(row)} µs" for row in there_products]
    failed = [f"{r.side} {r.variant} {r.collective} {size(r.nbytes)}: {r.error}" for r in rows if r.error]
    return "\n".join([f"{where}\n", *(table(rows, name) for name in there), *products, *failed])


def plot(environment: Mapping[str, Any], rows: Sequence[Row]) -> str:
    """The all-reduce: time by size, both logarithmic."""
    columns = fastest(rows, "all_reduce")
    if not columns:
        raise UsageError("no time of an all-reduce: nothing to draw")
    points = {name: sorted((nbytes, row.us) for nbytes, row in found.items()) for name, found in columns.items()}
    every = [point for line in points.values() for point in line]
    picture = Picture(720, 420, "all-reduce on several GPUs")
    x = Scale(*around([float(nbytes) for nbytes, _ in every]), 70, 690, log=True)
    y = Scale(*around([us for _, us in every]), 360, 50, log=True)
    panel = Panel(picture, x, y)
    panel.frame(f"all-reduce of bf16, {environment.get('gpus', '')}", "bytes", "µs")
    colors = dict(zip(columns, (COLORS[0], PEER, *COLORS[1:]), strict=False))
    for name, line in points.items():
        panel.curve([(float(nbytes), us) for nbytes, us in line], colors[name], name)
    picture.legend(90, 70, [(name, colors[name], "") for name in columns])
    return picture.render()
