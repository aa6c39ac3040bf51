"""Runs the steps of docs/cute-guide.md one after the other; the output beside a step is what it prints."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = (Path(__file__).parents[3] / "docs/cute-guide.md").read_text()
STEPS = re.findall(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", PAGE, re.DOTALL)


def test_each_step_runs_and_prints_what_the_page_shows(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    assert len(STEPS) == 11  # the imports, and ten steps
    for number, (code, wanted) in enumerate(STEPS):
        exec(compile(code, f"step {number}", "exec"), names)
        assert capsys.readouterr().out == wanted, number
