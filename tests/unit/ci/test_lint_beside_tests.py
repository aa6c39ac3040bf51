"""The linters beside the tests, with stand-ins for the linters."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ci.lint import commands, lint

pytest_plugins = ["pytester"]

PLUGIN = """\
import sys
from ci.lint_beside_tests import LintBesideTests

def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(LintBesideTests((sys.executable, "-c", {code!r})), "lint-runner")
"""


def run(pytester: pytest.Pytester, code: str, test: str = "assert True") -> pytest.RunResult:
    pytester.makepyfile(stand_in=PLUGIN.format(code=code), test_it=f"def test_it():\n    {test}\n")
    return pytester.runpytest_subprocess("-p", "stand_in", "-p", "no:cacheprovider")


def test_both_pass(pytester: pytest.Pytester) -> None:
    result = run(pytester, "print('lint: all well')")
    assert result.ret == 0
    lines = result.stdout.lines
    assert lines.index("lint: all well") < len(lines) - 1
    assert "1 passed" in lines[-1] and "error" not in lines[-1]


def test_failed_linters_fail_a_run_whose_tests_pass(pytester: pytest.Pytester) -> None:
    result = run(pytester, "print('x.py:1: bad\\nlint: 1 of 6 failed'); raise SystemExit(1)")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*= lint =*", "x.py:1: bad", "*ERROR lint - lint: 1 of 6 failed*"])
    assert "1 passed" in result.stdout.lines[-1] and "1 error" in result.stdout.lines[-1]


def test_failed_tests_fail_a_run_whose_linters_pass(pytester: pytest.Pytester) -> None:
    result = run(pytester, "print('lint: all well')", "assert False")
    assert result.ret == 1
    assert "lint: all well" in result.stdout.lines
    assert "1 failed" in result.stdout.lines[-1] and "error" not in result.stdout.lines[-1]


def test_an_interrupted_run_stops_the_linters(pytester: pytest.Pytester) -> None:
    result = run(pytester, "import time; time.sleep(3600)", "raise KeyboardInterrupt")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert "= lint =" not in result.stdout.str()


def test_a_linter_that_fails_stops_no_other(capfd: pytest.CaptureFixture[str]) -> None:
    python = Path(sys.executable).name
    failed = lint([[python, "-c", "raise SystemExit(3)"], [python, "-c", "print('second')"]])
    assert failed == [f"{python} -c 'raise SystemExit(3)'"]
    assert "second" in capfd.readouterr().out


def test_every_linter_is_in_the_toolchain() -> None:
    names = {name for name, *_ in commands()}
    assert names == {"actionlint", "basedpyright", "check-jsonschema", "lint-imports", "python", "ruff", "zizmor"}


@pytest.mark.needs("toolchain")
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("runs-on: ubuntu-24.04", ""),
        ("runs-on: ubuntu-99.04", 'label "ubuntu-99.04" is unknown'),
        ("needs: [absent]\n    runs-on: ubuntu-24.04", 'needs job "absent" which does not exist'),
        ("if: github.nothing == 1\n    runs-on: ubuntu-24.04", 'property "nothing" is not defined'),
    ],
)
def test_actionlint_finds_what_the_schema_allows(
    line: str, said: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    workflow = tmp_path / "one.yml"
    workflow.write_text(f"on: push\njobs:\n  first:\n    {line}\n    steps: [{{run: 'true'}}]\n")
    (command,) = [words for words in commands() if words[0] == "actionlint"]
    options = [word for word in command if not word.endswith("yml")]
    assert bool(lint([[*options, str(workflow)]])) == bool(said)
    assert said in capfd.readouterr().out
