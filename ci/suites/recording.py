"""A plugin of pytest that writes what becomes of each test to a file, a line of JSON for each, as they end, and ends a
test after so many seconds of the processor, which do not depend on what else the machine does.

It runs in the suite's own environment, and imports nothing of ours.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

_LONGEST = 600  # characters of a reason
_SECONDS = pytest.StashKey[float]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record", metavar="FILE", help="write a line of JSON for each test")
    parser.addoption("--seconds", type=float, default=60.0, help="of the processor, that a test may take")


def pytest_configure(config: pytest.Config) -> None:
    path: Any = config.getoption("--record")
    if path and not hasattr(config, "workerinput"):  # the process that collects what the workers of xdist report
        config.pluginmanager.register(Recorder(Path(path)))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    seconds: Any = item.config.getoption("--seconds")

    def end(*_: object) -> None:
        pytest.fail(f"Timeout: more than {seconds:g} seconds of the processor", pytrace=False)

    signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    begun = time.process_time()
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        item.stash[_SECONDS] = time.process_time() - begun


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    report.processor_seconds = item.stash.get(_SECONDS, 0.0)  # pyright: ignore[reportAttributeAccessIssue]
    return report


class Recorder:
    """`outcome` of a line: passed, failed or skipped; `reason`: of a failure its last line, of a skip its own."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.write_text("")

    @contextmanager
    def _line(self) -> Generator[dict[str, Any]]:
        row: dict[str, Any] = {}
        yield row
        with self._path.open("a") as file:
            file.write(json.dumps(row) + "\n")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call" and report.passed:
            return
        if report.when == "teardown" and not report.failed:
            return
        with self._line() as row:
            spent = getattr(report, "processor_seconds", 0.0)  # 0 of a test whose process died
            row.update(test=report.nodeid, outcome=report.outcome, seconds=round(spent, 2))
            row["reason"] = "" if report.passed else _reason(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.passed:
            return
        with self._line() as row:
            row.update(test=report.nodeid, outcome=report.outcome, seconds=0.0, reason=_reason(report))


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    if isinstance(report.longrepr, tuple):  # of a skip: file, line and reason
        return str(report.longrepr[2])[:_LONGEST]
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None:
        return f"{crash.message}"[:_LONGEST]
    return report.longreprtext[-_LONGEST:]
