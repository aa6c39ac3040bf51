from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from toolchain import doctor
from toolchain.doctor import markdown
from toolchain.knobs import ROOT
from toolchain.pinned.tools import tool


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


@pytest.mark.parametrize(
    ("bad", "code"),
    [((), 0), ((True,), 7), ((False,), 4), ((True, False), 4)],
)
def test_the_exit_code_tells_a_gpu_from_a_toolchain(bad: tuple[bool, ...], code: int):
    lines = [doctor.Check("note", "note", "x"), *(doctor.Check("x", "bad", "x", device=device) for device in bad)]
    assert doctor.exit_code(lines) == code
    assert doctor.to_json(lines)["exit_code"] == code


def test_the_json_is_what_the_docs_say(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(doctor, "checks", lambda: [doctor.Check("a", "bad", "1", "do that")])
    assert doctor.report(as_json=True) == 4
    assert json.loads(capsys.readouterr().out) == {
        "schema": 1,
        "exit_code": 4,
        "checks": [{"subject": "a", "status": "bad", "found": "1", "next": "do that"}],
    }


def test_whatever_is_bad_says_what_to_do():
    assert all(line.advice for line in doctor.checks() if line.status == "bad")


def test_it_runs_on_a_bare_python():
    """Without any package, as on a machine where nothing is installed yet."""
    program = "import sys; sys.path.insert(0, sys.argv.pop()); from toolchain import doctor; sys.exit(doctor.main())"
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program, "--json", str(ROOT)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 4, ran.stderr
    lines = {line["subject"]: line for line in json.loads(ran.stdout)["checks"]}
    assert lines["numpy"]["status"] == "bad" and "build_toolchain" in lines["numpy"]["next"]
    assert "No module named 'numpy'" in lines["gpu"]["found"]


def test_the_docs_have_the_tables():
    """python -c 'from toolchain.doctor import markdown; print(markdown.tables())' prints what belongs there."""
    content = (ROOT / "docs/doctor.md").read_text()
    assert markdown.tables() in content


def test_the_docs_name_every_check():
    content = (ROOT / "docs/doctor.md").read_text()
    assert [
        line.subject for line in doctor.checks() if f"`{line.subject}`" not in content and ":" not in line.subject
    ] == []
