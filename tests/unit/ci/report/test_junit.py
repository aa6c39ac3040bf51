from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

from ci.report import load, render_junit

from .conftest import make_row, two_machines


def test_a_suite_for_each_machine_and_a_case_for_each_row(save: Callable[..., Path]) -> None:
    document = ElementTree.fromstring(render_junit(two_machines(save)))
    counts = {
        suite.get("name"): [suite.get(k) for k in ("tests", "failures", "errors", "skipped")] for suite in document
    }
    assert counts == {
        "tilestack conformance: NVIDIA H100": ["2", "1", "1", "0"],
        "tilestack conformance: NVIDIA H200": ["2", "0", "0", "1"],
    }
    assert document.find("testsuite/testcase/failure").get("message") == "gelu bf16: off by <3>"  # type: ignore[union-attr]


def test_what_a_tool_says_may_be_no_text(save: Callable[..., Path]) -> None:
    said = "\x1b[31mred\x1b[0m \x00 \udcff \ufffe caf\N{LATIN SMALL LETTER E WITH ACUTE}\n\N{SNAKE}"
    rows = [make_row(status, detail=said) for status in ("failed", "error", "not run")]
    document = ElementTree.fromstring(render_junit(load([save("r.json", *rows)])))
    bad = "\N{REPLACEMENT CHARACTER}"
    assert {found.get("message") for case in document.iter("testcase") for found in case} == {
        f"{bad}[31mred{bad}[0m {bad} {bad} {bad} caf\N{LATIN SMALL LETTER E WITH ACUTE}\n\N{SNAKE}"
    }


def test_benchmarks_have_no_cases(save_times: Callable[..., Path]) -> None:
    assert len(ElementTree.fromstring(render_junit(load([save_times("b.json")])))) == 0
