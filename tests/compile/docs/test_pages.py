"""Runs what the pages show, block after block, and compares what is printed.

A block whose first line is a comment with a file's name is that file. A `console` block is commands and their output,
in which three dots stand for anything. A `python` block without a name is run, with its output in the `text` block that
follows, if any. `sh` blocks are checked by tests/unit/docs/test_commands.py.
"""

from __future__ import annotations

import doctest
import re
import shlex
import sys
from pathlib import Path

import pytest

from tilestack.__main__ import main
from toolchain.knobs import ROOT

pytestmark = pytest.mark.needs("toolchain")
PAGES = ("index", "interpreter", "kernel-guide", "kernel-guide-python", "python", "tiles")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAME = re.compile(r"(?://|#) ([\w.-]+\.(?:mlir|py|toml))\n")


def expect(wanted: str, found: str, what: str) -> None:
    same = doctest.OutputChecker().check_output(wanted, found, doctest.ELLIPSIS)
    assert same, f"{what} printed\n{found}\nbut the page says\n{wanted}"


@pytest.mark.parametrize("page", [*PAGES, pytest.param("python-torch", marks=pytest.mark.needs("torch"))])
def test_the_page_shows_what_happens(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("toolchain.compiling.progress.EVERY_S", 1e6)  # a busy machine says how far it is
    names: dict[str, object] = {}
    said: str | None = None
    ran = 0
    for language, text in BLOCK.findall((ROOT / f"docs/{page}.md").read_text()):
        if named := NAME.match(text):
            Path(named[1]).write_text(text)
        elif language == "console":
            for command, wanted in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE):
                tool, *words = shlex.split(command)
                assert tool == "tilestack"
                main(words)
                shown = capsys.readouterr()
                expect(wanted, shown.out + shown.err, command)
                ran += 1
        elif language == "python":
            exec(compile(text, f"docs/{page}.md", "exec"), names)
            said = capsys.readouterr().out
            ran += 1
        elif language == "text" and said is not None:
            expect(text, said, "the code")
            said = None
    assert ran
    for written in tmp_path.glob("*.py"):
        sys.modules.pop(written.stem, None)
