"""The command lines of the README are sessions of noxfile.py, and CI runs both."""

from __future__ import annotations

from toolchain.knobs import ROOT
from toolchain.setup.uv import LINE

README = (ROOT / "README.md").read_text().splitlines()


def test_the_two_lines_stand_in_the_readme():
    assert f"{LINE} && .venv/bin/nox -s tests" in README
    assert f"{LINE} && .venv/bin/nox -s gpu_tests" in README


def test_ci_runs_both_lines():
    lines = (ROOT / ".ci/run").read_text().splitlines()
    assert LINE in lines and ".venv/bin/nox -s gpu_tests" in lines
    # The same session, which may skip less there and run the long tests too.
    session, _, options = lines[-1].partition(" -- ")
    assert session == ".venv/bin/nox -s tests"
    assert all(option == "--all" or option.startswith("--require=") for option in options.split())
