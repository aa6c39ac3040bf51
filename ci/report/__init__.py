"""Makes a report of files of results: a page, JUnit XML and Markdown."""

from .html import render_html
from .junit import render_junit
from .markdown import render_markdown
from .runs import Run, load
from .write import write_report, write_text

__all__ = ["Run", "load", "render_html", "render_junit", "render_markdown", "write_report", "write_text"]
