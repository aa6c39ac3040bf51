"""Writes a run's results for people and CI systems: `results.json`, `junit.xml`, `index.html`."""

from .html import render_html
from .junit import render_junit
from .write import write_report

__all__ = ["render_html", "render_junit", "write_report"]
