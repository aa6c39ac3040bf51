"""JUnit XML, the form that CI systems show: one test case per row."""

from __future__ import annotations

from xml.etree import ElementTree

from gpt.conformance.result import Results


def render_junit(results: Results) -> str:
    """The JUnit document of a run. `not run` rows are skipped cases, each with its reason."""
    counts = results.counts()
    suite = ElementTree.Element(
        "testsuite",
        name="tilestack conformance",
        tests=str(len(results.rows)),
        failures=str(counts["failed"]),
        errors=str(counts["error"]),
        skipped=str(counts["not run"]),
        time=f"{sum(row.time_us or 0 for row in results.rows) / 1e6:.6f}",
    )
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in results.environment.items():
        ElementTree.SubElement(properties, "property", name=name, value=value)
    for row in results.rows:
        case = ElementTree.SubElement(
            suite, "testcase", classname=row.cell, name=row.shape, time=f"{(row.time_us or 0) / 1e6:.6f}"
        )
        match row.status:
            case "failed":
                ElementTree.SubElement(case, "failure", message=row.detail)
            case "error":
                ElementTree.SubElement(case, "error", message=row.detail)
            case "not run":
                ElementTree.SubElement(case, "skipped", message=row.detail)
            case "passed":
                pass
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"
