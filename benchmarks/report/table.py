"""Results as plain text: a line per case and source, against the fastest peer."""

from __future__ import annotations

from collections.abc import Sequence

from .result import AGAINST, BenchmarkRow, Results

HEADER = ("case", "source", "ours ms", "95 %", "best peer", "peer ms", "ratio", "95 %", "of floor", "of copy")


def table(results: Results) -> str:
    """The table. Columns: median and 95 % interval of ours and of the fastest peer; the peer's time over ours, above 1
    if we are faster; the floor, and the time of a copy of as many bytes, both as a share of our time. Below it: the
    host's time to start a step, and failures."""
    lines = [HEADER, *(cells(row) for row in headline(results.rows))]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEADER))]
    text = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    failed = [f"{row.status}: {row.case} {row.source}: {row.detail}" for row in results.failures]
    missing = [
        f"no peer: {row.case}: {row.detail}"
        for row in _first_sources(results.rows)
        if row.status == "error" and row.ours_ms is not None
    ]
    host = [
        f"host: {row.case} {row.source}: {row.host_us:.1f} us to start it{_launch(row)}"
        for row in headline(results.rows)
        if row.host_us is not None
    ]
    return "\n".join([*text, *dict.fromkeys(host), *dict.fromkeys(failed), *missing])


def summary(row: BenchmarkRow) -> str:
    """A row in a few words."""
    if row.ours_ms is None:
        return f"{row.source}: {row.status}"
    said = f"{row.source} {_ms(row.ours_ms)} ms"
    return said if row.ratio is None else f"{said}, {row.ratio:.2f} times as fast as {row.peer} ({_ms(row.peer_ms)} ms)"


def _launch(row: BenchmarkRow) -> str:
    return "" if row.launch_us is None else f", {row.launch_us:.1f} of them the driver's launch"


def headline(rows: Sequence[BenchmarkRow]) -> list[BenchmarkRow]:
    """One row per case and source: that of the best peer, else of a correct one, else the first. Also one row for each
    other bundle that it is compared with."""
    found: dict[tuple[str, str, str], BenchmarkRow] = {}
    for row in rows:
        place = (row.case, row.source, row.peer if row.peer_kind == AGAINST else "")
        if place not in found or _rank(row) < _rank(found[place]):
            found[place] = row
    return list(found.values())


def _rank(row: BenchmarkRow) -> tuple[bool, bool]:
    return not row.best, row.ours_ms is None


def _first_sources(rows: Sequence[BenchmarkRow]) -> list[BenchmarkRow]:
    """A failed peer has a row for each source; only the first one is shown."""
    seen: dict[tuple[str, str], BenchmarkRow] = {}
    for row in rows:
        seen.setdefault((row.case, row.peer), row)
    return list(seen.values())


def cells(row: BenchmarkRow) -> tuple[str, ...]:
    """A row under HEADER."""
    if row.ours_ms is None or row.ours_low is None or row.ours_high is None:
        return (row.case, row.source, row.status, "", row.peer, _ms(row.peer_ms), "", "", "", "")
    shares = tuple(f"{100 * least / row.ours_ms:.0f} %" if least else "" for least in (row.floor_ms, row.copy_ms))
    ours = (row.case, row.source, _ms(row.ours_ms), f"{_ms(row.ours_low)}..{_ms(row.ours_high)}")
    if row.ratio is None or row.ratio_low is None or row.ratio_high is None:
        return (*ours, row.peer and f"{row.peer} ({row.status})", "", "", "", *shares)
    spread = f"{row.ratio_low:.2f}..{row.ratio_high:.2f}"
    return (*ours, row.peer, _ms(row.peer_ms), f"{row.ratio:.2f}", spread, *shares)


def _ms(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
