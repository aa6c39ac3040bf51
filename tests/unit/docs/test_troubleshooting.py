"""What docs/troubleshooting.md says that one sees is what our code, or the page on compatibility, says."""

from __future__ import annotations

import re
from pathlib import Path

from toolchain.errors import TilestackError
from toolchain.knobs import ROOT

PAGE = (ROOT / "docs/troubleshooting.md").read_text()


def code() -> str:
    files = [path for folder in ("toolchain", "tilestack") for path in (ROOT / folder).rglob("*.py")]
    return "\n".join(map(Path.read_text, [*files, ROOT / "docs/doctor.md"]))


def test_the_errors_that_it_names_are_ours() -> None:
    cells = re.findall(r"^\| (.*?) \|", PAGE, re.MULTILINE)
    seen = [phrase for cell in cells for phrase in re.findall(r"`([^`]+)`", cell)]
    text = code()
    assert len(seen) > 12
    assert [phrase for phrase in seen if phrase not in text] == []


def test_the_exit_codes_are_those_of_the_errors() -> None:
    def below(kind: type[TilestackError]) -> set[int]:
        return {kind.exit_code}.union(*map(below, kind.__subclasses__()))

    table = PAGE.split("| exit code |")[1].split("\n\n")[0]
    named = {int(number) for row in re.findall(r"^\| ([\d, ]+) \|", table, re.MULTILINE) for number in row.split(", ")}
    assert {2, 3, 4, 5, 6, 7, 8} <= named <= below(TilestackError) | {9}
