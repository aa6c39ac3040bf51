from __future__ import annotations

from dataclasses import replace
from typing import Any

from benchmarks.report.result import Results
from benchmarks.report.table import headline, summary, table


def test_a_line_per_case_and_source(results: Results) -> None:
    lines = table(results).splitlines()
    assert len(lines) == 1 + len(results.rows)
    assert lines[1].split() == ["forward", "64", "mlir", "0.64", "0.6337..0.6465", "F.linear", "0.96", "1.50",
                                "1.40..1.60", "78", "%"]  # fmt: skip


def test_a_copy_of_as_many_bytes_stands_beside_the_floor(results: Results, row: Any) -> None:
    lines = table(replace(results, rows=[row(copy_ms=0.8), row(case="linear M=9")])).splitlines()
    assert lines[0].split()[-4:] == ["of", "floor", "of", "copy"]
    assert lines[1].split()[-4:] == ["50", "%", "80", "%"]
    assert lines[2].split()[-3:] == ["1.40..1.60", "50", "%"]


def test_the_headline_is_the_best_peer(row: Any) -> None:
    rows = [row(peer="a", best=False), row(peer="b", best=True), row(peer="c", best=False)]
    assert [r.peer for r in headline(rows)] == ["b"]


def test_another_bundles_kernels_have_a_line_of_their_own(results: Results, row: Any) -> None:
    rows = [row(peer="old mlir", peer_kind="against", best=False, ratio=1.02), row(peer="b"), row(peer="c", best=False)]
    assert [r.peer for r in headline(rows)] == ["old mlir", "b"]
    assert [line.split()[5] for line in table(replace(results, rows=rows)).splitlines()[1:]] == ["old", "b"]


def test_a_wrong_output_has_no_ratio_and_is_told(results: Results, row: Any) -> None:
    wrong = row(status="wrong", detail="mlir: 3 of 4 elements are not finite", best=False,
                ours_ms=None, ours_low=None, ours_high=None, ratio=None, ratio_low=None, ratio_high=None)  # fmt: skip
    text = table(replace(results, rows=[wrong]))
    assert "1.50" not in text
    assert "wrong: linear M=8 mlir: mlir: 3 of 4 elements are not finite" in text


def test_a_peer_that_did_not_run_is_told_once(results: Results, row: Any) -> None:
    failed: dict[str, Any] = {"status": "error", "peer": "cudnn", "detail": "cudnn: RuntimeError: no", "best": False,
                              "peer_ms": None, "ratio": None}  # fmt: skip
    text = table(replace(results, rows=[row(), row(**failed), row(source="py"), row(source="py", **failed)]))
    assert text.count("no peer: linear M=8: cudnn: RuntimeError: no") == 1


def test_a_row_in_a_few_words(row: Any) -> None:
    assert summary(row()) == "mlir 1 ms, 1.50 times as fast as F.linear (1.5 ms)"
    assert summary(row(ratio=None)) == "mlir 1 ms"
    assert summary(row(ours_ms=None, ratio=None, status="wrong")) == "mlir: wrong"


def test_ours_without_a_peer(results: Results, row: Any) -> None:
    alone = row(peer="", peer_kind="", peer_ms=None, ratio=None, ratio_low=None, ratio_high=None, best=False)
    lines = table(replace(results, rows=[alone])).splitlines()
    assert lines[1].split() == ["linear", "M=8", "mlir", "1", "0.9..1.1", "50", "%"]


def test_what_a_step_costs_the_host_is_told_once(results: Results, row: Any) -> None:
    host = {"host_us": 4.56, "launch_us": 3.21}
    rows = [row(**host), row(**host, peer="old", peer_kind="against", best=False), row(source="py")]
    said = [line for line in table(replace(results, rows=rows)).splitlines() if line.startswith("host: ")]
    assert said == ["host: linear M=8 mlir: 4.6 us to start it, 3.2 of them the driver's launch"]
    before = [row(host_us=4.56, launch_us=None)]  # results of runs that did not take it
    assert table(replace(results, rows=before)).splitlines()[-1] == "host: linear M=8 mlir: 4.6 us to start it"
