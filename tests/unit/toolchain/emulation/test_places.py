"""Tracebacks that end at a kernel's line."""

from __future__ import annotations

import traceback
from pathlib import Path

from toolchain.emulation.places import at_source
from toolchain.errors import SanitizerError


def shown(error: BaseException) -> str:
    try:
        raise at_source(error)
    except SanitizerError as raised:
        return "".join(traceback.format_exception(raised))


def test_the_last_entry_is_the_line_with_its_function_and_expression(tmp_path: Path) -> None:
    source = tmp_path / "kernels.py"
    source.write_text("def outer():\n    def inner(x):\n        y = store(x, 1)\n")
    error = SanitizerError("a race")
    error.place = str(source), 3, 13
    lines = shown(error).splitlines()
    assert f'File "{source}", line 3, in inner' in lines[-4]
    assert lines[-3:-1] == ["    y = store(x, 1)", "        ^^^^^^^^^^^"]


def test_without_a_place_or_its_source_the_error_is_shown_too() -> None:
    assert "SanitizerError: a race" in shown(SanitizerError("a race"))
    error = SanitizerError("a race")
    error.place = "/nowhere.py", 7, 1
    assert 'File "/nowhere.py", line 7, in kernel' in shown(error)
