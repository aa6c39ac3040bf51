"""A pytest plugin that runs the linters while the tests run: `pytest -p ci.lint_beside_tests`, as `nox -s tests` does.

The linters' output is shown once, below that of the tests and above pytest's last line. If they fail, the run fails.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO

import pytest

from toolchain.knobs import ROOT

COMMAND = (sys.executable, "-m", "ci.lint")
PATIENCE_S = 10  # for the linters to end after they were asked to
INTERRUPTED = (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR)


class LintBesideTests:
    """Starts the linters with the session and waits for them at its end."""

    def __init__(self, command: tuple[str, ...] = COMMAND) -> None:
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self._log: IO[str] | None = None
        self._output = ""

    def pytest_sessionstart(self) -> None:
        self._log = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 - closed at the end
        self._process = subprocess.Popen(self._command, cwd=ROOT, stdout=self._log, stderr=subprocess.STDOUT)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Wait for the linters, or stop them if the run was interrupted."""
        if self._process is None or self._log is None:
            return
        if exitstatus in INTERRUPTED:
            self._stop()
            return
        failed = self._process.wait() != 0
        self._log.seek(0)
        self._output = self._log.read()
        self._log.close()
        if failed:
            _count_as_error(session.config, self._output)
            if exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._output:
            terminalreporter.section("lint")
            terminalreporter.write(self._output)

    def _stop(self) -> None:
        assert self._process is not None
        self._process.terminate()
        try:
            self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _count_as_error(config: pytest.Config, output: str) -> None:
    """Make pytest count a lint failure as an error, so that its last line does not report success."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    assert isinstance(reporter, pytest.TerminalReporter)
    last = output.rstrip().rpartition("\n")[2]
    report = pytest.TestReport("lint", (str(Path(__file__).name), None, "lint"), {}, "failed", last, "setup")
    reporter.stats.setdefault("error", []).append(report)


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # a worker process of pytest-xdist only runs tests
        config.pluginmanager.register(LintBesideTests(), "lint-beside-tests-runner")
