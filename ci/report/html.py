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
SCRIPTS = ("shared.js", "model.js", "grid.js", "drawer.js", "charts.js", "tables.js", "start.js")


def render_html(
    runs: Sequence[Run],
    resources: Mapping[str, Any] | None = None,
    difference: Any = None,
    support: Any = None,
    cache: Sequence[Mapping[str, Any]] | None = None,
) -> str:
    """The page. The arguments are those of `page_data`. Raises ImportError without jinja2, which a bare GPU machine may
    lack."""
    return render(
        PAGE / "page.html.j2",
        [PAGE / "style.css"],
        [PAGE / name for name in SCRIPTS],
        page_data(runs, resources, difference, support, cache),
        headline=headline(runs),
        verdict=verdict(runs),
    )


def render(
    template: Path, styles: Sequence[Path], scripts: Sequence[Path], data: Mapping[str, Any], **more: Any
) -> str:
    """A page that loads nothing: its template gets styles, uPlot, scripts and data as text. Raises ImportError."""
    import jinja2

    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    return environment.from_string(template.read_text("utf-8")).render(
        style="".join(path.read_text("utf-8") for path in (PAGE / "uplot/uPlot.min.css", *styles)),
        chart_script=(PAGE / "uplot/uPlot.iife.min.js").read_text("utf-8"),
        script="\n".join(path.read_text("utf-8") for path in scripts),
        data=_embedded(data),
        **more,
    )


def _embedded(data: Mapping[str, Any]) -> str:
    """JSON inside a script element, which ends at the first `</script`."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
