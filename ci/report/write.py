"""Write the three files of a report into a folder."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from conformance.result import Results
from toolchain.files import write_whole

from .html import render_html
from .junit import render_junit


def write_report(results: Results, folder: Path) -> list[str]:
    """Write `results.json`, `junit.xml` and `index.html`, each completely or not at all. Returns lines for the user:
    the paths, and which file could not be written."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [
        _write(folder / "results.json", results.to_json()),
        _write(folder / "junit.xml", render_junit(results)),
    ]
    if find_spec("jinja2") is None:
        page = folder / "index.html"
        page.unlink(missing_ok=True)  # an older page would show a different run
        command = f"tilestack report {folder / 'results.json'}"
        return [*lines, f"{page} not written: jinja2 is not installed here; elsewhere: {command}"]
    return [*lines, _write(folder / "index.html", render_html(results))]


def _write(path: Path, text: str) -> str:
    write_whole(path, text.encode(errors="backslashreplace"))  # a file name may hold bytes that are not text
    return str(path)
