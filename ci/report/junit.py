"""Writes JUnit XML, which CI systems can show: a suite per file of results of the matrix, a test case per row."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree

from conformance.results.result import Results

from .runs import Run

# Characters that XML 1.0 cannot hold (https://www.w3.org/TR/xml/#charsets), such as colour codes and lone surrogates.
UNWRITABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _text(value: str) -> str:
    return UNWRITABLE.sub("\N{REPLACEMENT CHARACTER}", value)


def render_junit(runs: Sequence[Run]) -> str:
    """The JUnit document. `not run` rows are skipped cases, each with its reason. Benchmarks have no cases."""
    suites = ElementTree.Element("testsuites")
    for run in runs:
        if run.matrix:
            _suite(suites, run.matrix, ", ".join(run.machines))
    ElementTree.indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suites, encoding="unicode") + "\n"


def _suite(suites: ElementTree.Element, results: Results, machines: str) -> None:
    counts = results.counts()
    suite = ElementTree.SubElement(
        suites,
        "testsuite",
        name=_text(f"tilestack conformance: {machines}"),
        tests=str(len(results.rows)),
        failures=str(counts["failed"]),
        errors=str(counts["error"]),
        skipped=str(counts["not run"]),
        time=f"{sum(row.time_us or 0 for row in results.rows) / 1e6:.6f}",
    )
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in results.environment.items():
        ElementTree.SubElement(properties, "property", name=_text(name), value=_text(value))
    for row in results.rows:
        case = ElementTree.SubElement(
            suite, "testcase", classname=_text(row.cell), name=_text(row.shape), time=f"{(row.time_us or 0) / 1e6:.6f}"
        )
        message = _text(row.detail)
        match row.status:
            case "failed":
                ElementTree.SubElement(case, "failure", message=message)
            case "error":
                ElementTree.SubElement(case, "error", message=message)
            case "not run":
                ElementTree.SubElement(case, "skipped", message=message)
            case "passed":
                pass
