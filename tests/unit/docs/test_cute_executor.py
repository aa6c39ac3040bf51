"""Runs the code of docs/cute-executor.md; the output beside each block is what it prints."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from tilestack.__main__ import main
from toolchain.cute.executor.state import findings

PAGE = (Path(__file__).parents[3] / "docs/cute-executor.md").read_text()
BLOCKS = re.findall(r"```python\n# (\S+)\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL)


def test_each_block_prints_what_the_page_shows(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    assert len(BLOCKS) == PAGE.count("```python") == 6
    for file, code, wanted in BLOCKS:
        exec(compile(f"# {file}\n{code}", file, "exec"), names)
        assert capsys.readouterr().out == wanted, file


def test_each_kind_of_finding_is_in_the_table() -> None:
    listed = re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)
    classes = [
        name for name, kind in vars(findings).items() if isinstance(kind, type) and kind.__module__ == findings.__name__
    ]
    assert sorted(listed) == sorted(set(classes) - {"Finding", "FaultLocation"})


def test_the_commands_print_what_the_page_shows(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cute = (Path(__file__).parents[3] / "docs/cute.md").read_text()
    kernels = re.findall(r"```mlir\n(.*?)```", cute, re.DOTALL)
    (tmp_path / "transpose.mlir").write_text(next(text for text in kernels if "@transpose" in text))
    monkeypatch.chdir(tmp_path)
    block = "".join(re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL))
    for command, wanted in re.findall(r"^\$ tilestack (.*)\n((?:[^$].*\n)*)", block, re.MULTILINE):
        main(shlex.split(command))
        said = capsys.readouterr()
        assert said.out + said.err == wanted
