"""The content of a report, read back from its three files."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from ci.report import write_report
from conformance.results.result import CellResult, Results
from toolchain.errors import UsageError


def row(status: str, **more: object) -> CellResult:
    passed = CellResult("gelu-mlir-bf16-sm_90", "mlir", "gelu", "bf16", "sm_90", "cuda:0", "M=7 N=65", "passed")
    return dataclasses.replace(passed, status=status, **more)


RESULTS = Results(
    {"executors": "cuda:0 <H200>"},
    [
        row("passed", error=0.01, bound=0.04, time_us=12.5),
        row("failed", detail="gelu bf16: off by <3>", shape="M=1 N=1"),
        row("error", source="py", detail="LaunchError: x"),
        row("not run", op="softmax", detail="too slow for the interpreter"),
    ],
)


def test_the_files_say_what_the_results_say(tmp_path: Path) -> None:
    lines = write_report(RESULTS, tmp_path)
    assert lines == [str(tmp_path / name) for name in ("results.json", "junit.xml", "index.html")]
    assert Results.load(tmp_path / "results.json") == RESULTS
    (suite,) = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert {k: suite.get(k) for k in ("tests", "failures", "errors", "skipped")} == {
        "tests": "4", "failures": "1", "errors": "1", "skipped": "1",
    }  # fmt: skip
    assert suite.find("testcase/failure").get("message") == "gelu bf16: off by <3>"  # type: ignore[union-attr]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["index.html", "junit.xml", "results.json"]


def test_a_report_that_cannot_be_written_leaves_the_older_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_report(RESULTS, tmp_path)

    def full(self: Path, _: bytes) -> int:
        raise OSError(28, "No space left on device", str(self))

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space"):
        write_report(Results({}, []), tmp_path)
    assert Results.load(tmp_path / "results.json") == RESULTS
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize(
    ("statuses", "green"),
    [
        (["passed", "not run"], True),
        (["passed", "failed"], False),
        (["passed", "error"], False),
        (["not run"], False),
        ([], False),
    ],
)
def test_green_needs_something_passed_and_nothing_failed(statuses: list[str], green: bool) -> None:
    assert Results({}, [row(s) for s in statuses]).green is green


def test_summary_counts_every_status() -> None:
    assert RESULTS.summary() == "1 passed, 1 failed, 1 error, 1 not run"


def results(*rows: dict[str, object]) -> bytes:
    return json.dumps({"format": 1, "environment": {}, "rows": rows}).encode()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"\x7fELF\xff\x00",
        b"[" * 100_000,
        b'{"format": 2, "environment": {}, "rows": []}',
        b'{"format": 3, "environment": {}, "rows": []}',
        b'{"format": 1, "environment": [], "rows": []}',
        results({"x": 1}),
        results(dataclasses.asdict(row("passed", error="much"))),
        results(dataclasses.asdict(row("passed", detail=None))),
        results(dataclasses.asdict(row("green"))),
    ],
)
def test_what_is_no_results_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "results.json"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"results\.json"):
        Results.load(path)


def test_results_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"{tmp_path} cannot be read: Is a directory"):
        Results.load(tmp_path)


def test_a_missing_results_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        Results.load(tmp_path / "absent.json")
