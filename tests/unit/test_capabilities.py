"""tests/conftest.py: a skip is declared by capability, or it is a failure."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from toolchain.knobs import ROOT

pytest_plugins = ["pytester"]

CONFTEST = Path(__file__).parent.parent / "conftest.py"


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
    """Run a test module under our conftest, in which `absent` is never there and `present` always is."""

    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    def run(source: str, *args: str) -> pytest.RunResult:
        capabilities = '\nCAPABILITIES.update(absent=lambda: "it is not there", present=lambda: None)\n'
        pytester.makeconftest(CONFTEST.read_text() + capabilities)
        pytester.makepyfile("import pytest\n" + source)
        return pytester.runpytest_inprocess("-p", "no:cacheprovider", *args)

    return run


def test_a_missing_capability_skips_and_is_counted(run):
    result = run(
        '@pytest.mark.needs("absent")\ndef test_a(): assert 0\n'
        '@pytest.mark.needs("present", "absent")\ndef test_b(): assert 0\n'
        '@pytest.mark.needs("present")\ndef test_c(): pass'
    )
    result.assert_outcomes(passed=1, skipped=2)
    result.stdout.fnmatch_lines(["skipped for want of absent: 2"])
    assert result.ret == 0


def test_a_required_capability_that_is_missing_fails(run):
    result = run('@pytest.mark.needs("absent")\ndef test_a(): pass', "--require", "absent")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*absent is required by this run but missing: it is not there*"])
    assert result.ret == 1


def test_a_long_test_runs_with_all_and_says_why_it_is_long(run):
    run('@pytest.mark.long("why")\ndef test_a(): pass').assert_outcomes(skipped=1)
    run('@pytest.mark.long("why")\ndef test_a(): pass', "--all").assert_outcomes(passed=1)
    result = run("@pytest.mark.long\ndef test_a(): pass")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*say why it is long*"])


def test_network_counts_as_there_only_if_required(run):
    source = '@pytest.mark.needs("network")\ndef test_a(): pass'
    run(source).assert_outcomes(skipped=1)
    run(source, "--require", "network").assert_outcomes(passed=1)


@pytest.mark.parametrize(
    "source",
    [
        'def test_a(): pytest.skip("later")',
        '@pytest.mark.skip(reason="later")\ndef test_a(): pass',
        '@pytest.mark.skipif(True, reason="later")\ndef test_a(): pass',
        'def test_a(): pytest.importorskip("no_such_module")',
        '@pytest.fixture\ndef f(): pytest.skip("later")\ndef test_a(f): pass',
        'pytest.skip("later", allow_module_level=True)',
        'pytest.importorskip("no_such_module")',
        '@pytest.mark.needs("present")\ndef test_a(): pytest.skip("later")',
    ],
)
def test_any_other_skip_fails_the_run(run, source: str):
    result = run(source)
    assert result.ret != 0
    result.stdout.fnmatch_lines(["*unexpected skip*"])
    assert "skipped" not in result.parseoutcomes()


def test_an_unknown_capability_fails(run):
    result = run('@pytest.mark.needs("absnet")\ndef test_a(): pass')
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*no capability 'absnet'*"])


def test_an_expected_failure_is_no_skip(run):
    run("@pytest.mark.xfail\ndef test_a(): assert 0").assert_outcomes(xfailed=1)


# Packages that a GPU machine has not: docs/faq.md names those that it has.
PYTEST_ALONE = """
import sys
from functools import partial
from importlib.machinery import PathFinder
NAMES = ("cuda.tile", "grimp", "hypothesis", "jinja2", "llvmlite", "nox", "rich", "torch", "xdsl")
FIND = PathFinder.find_spec
def find(_, name, *others):
    return None if name.startswith(NAMES) else FIND(name, *others)
PathFinder.find_spec = partial(find, None)
import pytest
sys.exit(pytest.main(sys.argv[1:]))
"""


def test_the_tests_for_a_gpu_are_found_on_a_machine_with_pytest_alone():
    words = ["-n", "0", "-q", "-p", "no:hypothesispytest", "-p", "no:cacheprovider", "--collect-only"]
    command = [sys.executable, "-c", PYTEST_ALONE, *words, "tests/gpu"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "test_the_interpreter_where_there_is_a_gpu" in done.stdout


def test_what_runs_on_the_cpu_among_the_tests_for_a_gpu_says_so():
    """A launch on the CPU needs the interpreter's package, or is refused before it comes to that."""
    missing: list[str] = []
    for path in sorted((ROOT / "tests/gpu").rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.FunctionDef) or not node.name.startswith("test_"):
                continue
            refused = {id(each) for block in ast.walk(node) if isinstance(block, ast.With) for each in ast.walk(block)}
            calls = (each for each in ast.walk(node) if isinstance(each, ast.Call) and id(each) not in refused)
            on_cpu = any("'cpu'" in ast.unparse(call) for call in calls)
            declared = any("'interpreter'" in ast.unparse(mark) for mark in node.decorator_list)
            missing += [f"{path.name}::{node.name}"] if on_cpu and not declared else []
    assert not missing
