"""The report page: one file that works from disk, without a network. Its script draws it from the data in it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .data import page_data
from .runs import Run
from .summary import headline, verdict

PAGE = Path(__file__).parent / "page"
SCRIPTS = ("model.js", "grid.js", "drawer.js", "charts.js", "tables.js", "start.js")


def render_html(
    runs: Sequence[Run],
    resources: Mapping[str, Any] | None = None,
    difference: Any = None,
    support: Any = None,
    cache: Sequence[Mapping[str, Any]] | None = None,
) -> str:
    """The page. The arguments are those of `page_data`. Raises ImportError without jinja2, which a bare GPU machine may
    lack."""
    import jinja2

    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    template = environment.from_string(_read("page.html.j2"))
    return template.render(
        headline=headline(runs),
        verdict=verdict(runs),
        style=_read("uplot/uPlot.min.css") + _read("style.css"),
        chart_script=_read("uplot/uPlot.iife.min.js"),
        script="\n".join(_read(name) for name in SCRIPTS),
        data=_embedded(page_data(runs, resources, difference, support, cache)),
    )


def _read(name: str) -> str:
    return (PAGE / name).read_text("utf-8")


def _embedded(data: Mapping[str, Any]) -> str:
    """JSON inside a script element, which ends at the first `</script`."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
