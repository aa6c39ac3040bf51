"""A plugin of pytest that writes what becomes of each test to a file, a line of JSON for each, as they end.

It runs in the suite's own environment, and imports nothing of ours.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

_LONGEST = 600  # characters of a reason


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record", metavar="FILE", help="write a line of JSON for each test")


def pytest_configure(config: pytest.Config) -> None:
    path: Any = config.getoption("--record")
    if path and not hasattr(config, "workerinput"):  # the process that collects what the workers of xdist report
        config.pluginmanager.register(Recorder(Path(path)))


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
            row.update(test=report.nodeid, outcome=report.outcome, seconds=round(report.duration, 2))
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
