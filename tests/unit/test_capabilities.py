"""tests/conftest.py: a skip is declared by capability, or it is a failure."""

from __future__ import annotations

from pathlib import Path

import pytest

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
