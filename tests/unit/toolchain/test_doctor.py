from __future__ import annotations

from pathlib import Path

import pytest

from toolchain import doctor
from toolchain.tools import tool


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A toolchain folder whose build did not finish."""
    monkeypatch.setenv("TILESTACK_TOOLCHAIN", str(tmp_path))
    tool.cache_clear()
    yield
    tool.cache_clear()


@pytest.mark.usefixtures("broken")
def test_a_broken_toolchain_ends_in_4_and_says_what_to_do(capsys: pytest.CaptureFixture[str]):
    assert doctor.main() == 4
    out = capsys.readouterr().out
    assert "bad   tileiras" in out
    assert "next: run: .venv/bin/nox -s build_toolchain" in out
    assert "checks failed: toolchain, cuobjdump" in out.splitlines()[-1]


def test_a_bad_setting_is_a_line_of_its_own(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TILESTACK_JOBS", "many")
    bad = [line for line in doctor.checks() if line.subject == "TILESTACK_JOBS"]
    assert [(line.status, line.advice) for line in bad] == [("bad", "unset TILESTACK_JOBS")]


def test_the_table_ends_with_a_sum():
    lines = [doctor.Check("a", "ok", "1"), doctor.Check("long name", "note", "2", "do that")]
    assert doctor.render(lines).splitlines() == [
        "ok    a          1",
        "note  long name  2",
        "                 next: do that",
        "all 2 checks passed",
    ]
