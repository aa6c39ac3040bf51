from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.report.result import Results, join, mark_best, merge
from toolchain.errors import UsageError
from toolchain.knobs import ROOT


def test_what_is_saved_is_loaded(results: Results, tmp_path: Path) -> None:
    path = tmp_path / "new" / results.file_name
    results.save(path)
    assert path.name == "nvidia-h200.json"
    assert Results.load(path) == results
    assert list(path.parent.iterdir()) == [path]


def test_a_save_that_fails_leaves_what_was_there(results: Results, tmp_path: Path, row: Any) -> None:
    path = tmp_path / "results.json"
    results.save(path)
    broken = replace(results, rows=[row(detail=object())])
    with pytest.raises(TypeError):
        broken.save(path)
    assert Results.load(path) == results
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("content", ["", "[]", '{"format": 1}', '{"format": 1, "rows": [{}]}'])
def test_what_is_no_results_file_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "results.json"
    path.write_text(content)
    with pytest.raises(UsageError, match="no results of ours"):
        Results.load(path)


def test_another_format_or_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    with pytest.raises(UsageError, match="cannot be read"):
        Results.load(path)
    path.write_text(json.dumps({"format": 9, "environment": {}, "ceilings": {}, "rows": []}))
    with pytest.raises(UsageError, match="format 9"):
        Results.load(path)


def test_the_best_peer_is_the_fastest_right_one(row: Any) -> None:
    rows = mark_best(
        [
            row(peer="a", ratio=1.5, peer_ms=1.5, best=False),
            row(peer="b", ratio=1.2, peer_ms=1.2, best=False),
            row(peer="wrong", ratio=None, peer_ms=None, status="wrong"),
            row(peer="b", source="py", ratio=None, peer_ms=2.0, ours_ms=None, status="error"),
            row(peer="c", source="py", ratio=None, peer_ms=1.0, ours_ms=None, status="error"),
        ]
    )
    assert [r.best for r in rows] == [False, True, False, False, True]


def test_another_bundles_kernels_are_never_the_best_peer(row: Any) -> None:
    rows = [row(peer="old mlir", peer_kind="against", ratio=1.1), row(peer="slow", ratio=3.0)]
    assert [r.best for r in mark_best(rows)] == [False, True]
    assert [r.best for r in mark_best(rows[:1])] == [False]


def test_a_ratio_below_what_was_asked_for_is_slower_if_all_of_its_interval_is(results: Results, row: Any) -> None:
    def of(**fields: Any) -> Results:
        return replace(results, rows=[row(peer_kind="against", **fields)])

    for high, slower in ((0.97, 1), (0.98, 0), (1.1, 0), (None, 1)):
        assert len(of(ratio=0.95, ratio_low=0.9, ratio_high=high).slower(0.98)) == slower
        assert not of(ratio=0.95, ratio_low=0.9, ratio_high=high).slower(0)
    assert not replace(results, rows=[row(ratio_high=0.5)]).slower(0.98)  # PyTorch is another matter


def test_merged_runs_keep_what_they_were_compared_with(results: Results) -> None:
    def beside(**others: str) -> Results:
        found = {name: {"bundle": digest} for name, digest in others.items()}
        return replace(results, environment={**results.environment, "against": found})

    merged = merge([results, beside(old="1"), beside(older="2")], ["a", "b", "c"])
    assert merged.environment["against"] == {"old": {"bundle": "1"}, "older": {"bundle": "2"}}
    assert "against" not in merge([results, results], ["a", "b"]).environment
    with pytest.raises(UsageError, match="b has another bundle called 'old'"):
        merge([beside(old="1"), beside(old="2")], ["a", "b"])


def test_wrong_outputs_and_ours_that_did_not_run_fail_a_run(results: Results, row: Any) -> None:
    assert not results.failures
    wrong = row(status="wrong", ratio=None, detail="F.linear: off")
    ours = row(status="error", ours_ms=None, ratio=None)
    peer = row(status="error", peer_ms=None, ratio=None)
    assert replace(results, rows=[wrong, ours, peer]).failures == [wrong, ours]


def test_merged_runs_hold_all_rows_and_the_last_of_equal_ones(results: Results, row: Any) -> None:
    first = replace(results, rows=[row(peer="a", ratio=1.5), row(peer="b", ratio=1.2)])
    environment = {**results.environment, "date": "2026-01-02", "sm_clock_mhz": [300, 1980]}
    second = replace(results, rows=[row(peer="b", ratio=1.3), row(peer="c", ratio=1.1)], environment=environment)
    merged = merge([first, second], ["1.json", "2.json"])
    assert [(r.peer, r.ratio, r.best) for r in merged.rows] == [("a", 1.5, False), ("b", 1.3, False), ("c", 1.1, True)]
    assert merged.environment["date"] == "2026-01-01, 2026-01-02"
    assert merged.environment["sm_clock_mhz"] == [300, 1980]


def test_merged_floors_are_of_the_highest_rates(results: Results, row: Any) -> None:
    work = {"nbytes": 4 * 10**9, "flops": 10**12, "floor_ms": 1.25, "bound": "compute"}
    slow = replace(results, rows=[row(peer="a", **work)], ceilings={"bytes_per_s": 4e12, "flops_per_s": 8e14})
    fast = replace(
        results, rows=[row(peer="b", **work | {"floor_ms": None})], ceilings={"bytes_per_s": 2e12, "flops_per_s": 2e15}
    )
    merged = merge([slow, fast], ["1.json", "2.json"])
    assert merged.ceilings == {"bytes_per_s": 4e12, "flops_per_s": 2e15}
    assert [(r.floor_ms, r.bound) for r in merged.rows] == [(1.0, "memory"), (None, "compute")]


@pytest.mark.parametrize("key", ["gpu", "driver", "commit", "changes", "bundle"])
def test_runs_that_differ_are_not_merged(results: Results, key: str) -> None:
    other = replace(results, environment={**results.environment, key: "another"})
    with pytest.raises(UsageError, match=rf"2\.json has {key} 'another'"):
        merge([results, other], ["1.json", "2.json"])


def test_runs_beside_another_pytorch_are_not_merged(results: Results) -> None:
    other = replace(results, environment={**results.environment, "packages": {"torch": "2.12.0"}})
    with pytest.raises(UsageError, match=r"2\.json has PyTorch '2\.12\.0', 1\.json '2\.11\.0'"):
        merge([results, other], ["1.json", "2.json"])


@pytest.mark.parametrize("key", ["gpu", "driver", "commit", "bundle"])
@pytest.mark.parametrize("empty", [True, False])
def test_runs_that_do_not_say_what_they_are_of_are_not_merged(results: Results, key: str, empty: bool) -> None:
    """If two runs both leave a key out, that does not make them equal. The parts of one run may leave it out."""
    said = {name: value for name, value in results.environment.items() if name != key}
    silent = replace(results, environment={**said, key: ""} if empty else said)
    with pytest.raises(UsageError, match=rf"1\.json does not say its {key}"):
        merge([silent, silent], ["1.json", "2.json"])
    assert len(join([silent, silent], ["1.json", "2.json"]).rows) == len(results.rows)


def test_every_published_result_can_stand_beside_its_like() -> None:
    for path in sorted((ROOT / "benchmarks/results").glob("nvidia-*.json")):
        run = Results.load(path)
        assert len(merge([run, run], ["1.json", "2.json"]).rows) == len(run.rows), path
