"""The data of the page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ci.report import load
from ci.report.data import chosen, page_data

from .conftest import bench_row, make_origin, make_row, two_machines

Save = Callable[..., Path]


def test_a_column_for_each_machine_and_for_each_target_that_was_only_compiled_for(save: Save) -> None:
    data = page_data(two_machines(save))
    assert data["columns"] == [
        {"name": "NVIDIA H100", "target": "sm_90"},
        {"name": "NVIDIA H200", "target": "sm_90"},
        {"name": "", "target": "sm_100"},
    ]
    assert data["cells"] == [["gelu", "mlir", "bf16"], ["gelu", "py", "bf16"], ["softmax", "mlir", "bf16"]]
    assert data["compiled"] == {"0": {"sm_90": 3, "sm_100": 2}}


def test_a_row_keeps_what_its_result_says(save: Save) -> None:
    row = make_row(error=0.012345678, bound=0.04, time_us=12.5, time_low_us=12.0, time_high_us=13.0,
                   worst="out[1] is 2, wants 3", entries=("gelu_bf16", "gelu_any"))  # fmt: skip
    data = page_data(load([save("r.json", row)]))
    (found,) = data["rows"]
    assert found[4:10] == ["passed", 0.0123457, 0.04, 12.5, 12.0, 13.0]
    assert [data["texts"][n] for n in (found[3], *found[10:])] == [
        "M=7 N=65", "", "out[1] is 2, wants 3", "gelu_bf16 gelu_any",
    ]  # fmt: skip


def test_the_runs_are_in_the_order_of_their_dates(save: Save) -> None:
    new = save("new.json", make_row(), origin=make_origin(date="2026-11-24T04:00:00Z"))
    old = save("old.json", make_row(), origin=make_origin(date="2026-11-20T04:00:00Z"))
    undated = save("undated.json", make_row())
    assert [Path(run.name).name for run in load([new, undated, old])] == ["undated.json", "old.json", "new.json"]


def test_a_kernel_keeps_its_hash(save: Save) -> None:
    (run, _) = [run for run in page_data(two_machines(save))["runs"] if "origin" in run] * 2
    assert run["origin"]["kernels"] == [["mlir", "gelu_bf16", "sm_90", "ab" * 32]]


def test_times_beside_the_fastest_peer_and_beside_another_bundle(save_times: Save) -> None:
    other = bench_row(peer="base mlir", peer_kind="against", ratio=0.99, best=False)
    slower = bench_row(peer="F.gelu, eager", ratio=2.0, best=False)
    ((row, beside),) = chosen([slower, bench_row(), other])
    assert (row["peer"], beside) == ("F.gelu", other)
    data = page_data(load([save_times("b.json", slower, bench_row(), other)]))
    (found,) = data["times"]
    assert found[14] == 1.5
    assert (data["texts"][found[19]], found[20]) == ("base mlir", 0.99)
    (alone,) = page_data(load([save_times("c.json", other)]))["times"]
    assert (alone[14], alone[20]) == (None, 0.99)  # another bundle is no peer


def test_resources_belong_to_their_cell_and_target(save: Save) -> None:
    found: dict[str, Any] = {"gelu-mlir-bf16": {"sm_80": [{"symbol": "gelu", "registers": 40}]}}
    data = page_data(load([save("r.json", make_row())]), found)
    assert data["resources"] == {"0": found["gelu-mlir-bf16"]}
    assert {"name": "", "target": "sm_80"} in data["columns"]


def test_each_compile_is_a_row_of_the_cache(save: Save) -> None:
    runs = load([save("r.json", make_row())])
    assert page_data(runs)["cache"] is None
    found = page_data(runs, cache=[{"time": 1_750_000_000, "hits": 3, "saved": 1.5}])["cache"]
    assert found == [{"compile": "2025-06-15 15:06", "hits": 3, "saved": 1.5}]
