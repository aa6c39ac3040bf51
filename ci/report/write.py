"""Writes the files of a report."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from conformance.results.result import Results
from toolchain.files import write_whole

from .html import render_html
from .junit import render_junit
from .runs import Run


def write_report(results: Results, folder: Path) -> list[str]:
    """Write `results.json`, `junit.xml` and `index.html`, each completely or not at all. Returns lines for the user:
    the paths, and which file could not be written."""
    folder.mkdir(parents=True, exist_ok=True)
    runs = [Run("results.json", matrix=results)]
    lines = [
        write_text(folder / "results.json", results.to_json()),
        write_text(folder / "junit.xml", render_junit(runs)),
    ]
    if find_spec("jinja2") is None:
        page = folder / "index.html"
        page.unlink(missing_ok=True)  # an older page would show a different run
        command = f"tilestack report {folder / 'results.json'}"
        return [*lines, f"{page} not written: jinja2 is not installed here; elsewhere: {command}"]
    return [*lines, write_text(folder / "index.html", render_html(runs))]


def write_text(path: Path, text: str) -> str:
    """Writes a file completely or not at all, and returns its path."""
    write_whole(path, text.encode(errors="backslashreplace"), parents=True)  # a file name may hold bytes, not text
    return str(path)
