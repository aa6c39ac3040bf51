"""The commands in the pages' `sh` blocks exist and take these words."""

from __future__ import annotations

import functools
import re
import shlex
from collections.abc import Iterator
from itertools import takewhile

import pytest

from tilestack.__main__ import parser
from toolchain.knobs import ROOT

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
whole = functools.cache(parser)  # reads any number of lines
SESSIONS = re.findall(r"@nox\.session.*\ndef (\w+)", (ROOT / "noxfile.py").read_text())


def commands() -> Iterator[tuple[str, list[str]]]:
    for page in PAGES:
        for block in re.findall(r"^```sh\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL):
            for line in block.replace("\\\n", " ").splitlines():
                words = list(takewhile(lambda word: word not in ("&&", "|", ">"), shlex.split(line, comments=True)))
                if words:
                    yield str(page.relative_to(ROOT)), words


TILESTACK = [(page, words) for page, words in commands() if words[0] == "tilestack"]


@pytest.mark.parametrize("words", [pytest.param(words, id=f"{page}: {' '.join(words)}") for page, words in TILESTACK])
def test_tilestack_takes_the_words(words: list[str]) -> None:
    whole().parse_args(words[1:])


def test_the_sessions_exist() -> None:
    named = [
        (page, words[words.index("-s") + 1]) for page, words in commands() if words[0].endswith("nox") and "-s" in words
    ]
    assert named and [(page, name) for page, name in named if name not in SESSIONS] == []
