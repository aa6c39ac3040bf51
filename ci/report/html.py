"""The report page: a grid of ops against sources and dtypes, then every row. One file, no network."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from conformance.result import Results, Row

_WORST_FIRST = ("error", "failed", "not run", "passed")


@dataclass(frozen=True)
class Square:
    """A square of the grid: all rows of one op, source and dtype. `ran` and `not_run` count its rows. `used`: the
    largest share of a bound, in percent."""

    status: str
    passed: int
    ran: int
    not_run: int
    used: float | None


def _square(rows: list[Row]) -> Square:
    ran = [row for row in rows if row.status != "not run"]
    status = next(s for s in _WORST_FIRST if any(row.status == s for row in ran or rows))
    used = max((row.percent for row in ran if row.percent is not None), default=None)
    return Square(status, sum(row.status == "passed" for row in ran), len(ran), len(rows) - len(ran), used)


def render_html(results: Results) -> str:
    """The page. Raises ImportError without jinja2, which a bare GPU machine may lack."""
    import jinja2

    groups: dict[tuple[str, tuple[str, str]], list[Row]] = defaultdict(list)
    for row in results.rows:
        groups[row.op, (row.source, row.dtype)].append(row)
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    template = environment.from_string((Path(__file__).parent / "page.html.j2").read_text("utf-8"))
    return template.render(
        results=results,
        counts=results.counts(),
        ops=list(dict.fromkeys(op for op, _ in groups)),
        columns=sorted(dict.fromkeys(column for _, column in groups)),
        squares={key: _square(rows) for key, rows in groups.items()},
    )
