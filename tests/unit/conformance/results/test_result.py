"""results.json, as its published schema describes it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.report import result as times
from conformance.results import origin
from conformance.results.origin import Origin
from conformance.results.result import CellResult, Results
from toolchain.bundles.bundle import write
from toolchain.knobs import ROOT
from toolchain.runtime import CpuExecutor
from toolchain.runtime.executor import Loaded

if TYPE_CHECKING:
    import jsonschema

ROW = CellResult("gelu-py-f32-cpu", "py", "gelu", "f32", "cpu", "cpu interpreter", "M=1", "passed", 0.1, 0.2,
                 worst="out[0] is 1, wants 1.1", time_us=3.0, entries=("gelu_f32",))  # fmt: skip
GPU = {"executor": "cuda:0 NVIDIA H200 sm_90", "kind": "cuda", "gpu": "NVIDIA H200", "address": "00000000:0F:00.0",
       "target": "sm_90", "sms": 132, "driver": "580.159.04", "before": {"sm_clock_mhz": "1980"},
       "after": {}}  # fmt: skip


@pytest.fixture(scope="session")
def schema() -> jsonschema.Draft202012Validator:
    import jsonschema  # takes seconds, which every process that collects the tests would spend

    table = json.loads((ROOT / "conformance/results.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(table)
    return jsonschema.Draft202012Validator(table)


@pytest.fixture
def made(tmp_path: Path) -> Origin:
    found = origin.describe(write(tmp_path / "bundle", [], {}), [CpuExecutor()], ["tilestack", "matrix", "run"])
    kernels = [Loaded("py", "gelu_f32", "cpu", "ab" * 32)]
    return replace(found, devices=(*found.devices, GPU)).with_kernels(kernels)


def time(**changes: Any) -> times.BenchmarkRow:
    row = times.BenchmarkRow(
        "ops", "gelu M=8", "py", "bf16", "M=8", {"M": 8}, "ok", ours_ms=1.0, ours_low=0.9, ours_high=1.1,
        ours_error={"worst": 0.5}, gpu_before={"sm_clock_mhz": "1980"}, peer_ms=2.0,
    )  # fmt: skip
    return replace(row, **changes)


def test_what_a_matrix_writes_fits_the_schema(schema: Any, made: Origin, tmp_path: Path) -> None:
    results = Results({"seed": "1"}, [ROW, replace(ROW, status="not run", error=None)], made)
    path = tmp_path / "results.json"
    path.write_text(results.to_json())
    schema.validate(json.loads(path.read_text()))
    assert Results.load(path) == results


def test_what_the_benchmarks_write_fits_the_schema(schema: Any, made: Origin, tmp_path: Path) -> None:
    results = times.Results({"gpu": "H200", "sm_clock_mhz": [1, 2]}, {"bytes_per_s": 1e12}, [time()], made)
    path = tmp_path / "h200.json"
    results.save(path)
    schema.validate(json.loads(path.read_text()))
    assert times.Results.load(path) == results


def test_the_schema_has_the_fields_that_are_written(schema: Any) -> None:
    """All of them and no others, so that a new field cannot be forgotten there."""
    written = {"cell": ROW, "time": time()}
    for name, row in written.items():
        assert set(schema.schema["$defs"][name]["properties"]) == set(vars(row))
    assert {*schema.schema["properties"]["origin"]["properties"]} == {
        *vars(Origin("", "", (), "", {}, {}, {})),
        "dirty",
    }


@pytest.mark.parametrize(
    "change",
    [
        {"format": 1},
        {"kind": "other"},
        {"kind": "benchmarks"},
        {"origin": {}},
        {"rows": [{}]},
        {"ceilings": {}},
    ],
)
def test_the_schema_refuses_what_is_no_file_of_results(schema: Any, made: Origin, change: dict[str, Any]) -> None:
    document = json.loads(Results({}, [ROW], made).to_json())
    schema.validate(document)
    assert not schema.is_valid({**document, **change})


@pytest.mark.parametrize("field", ["sha256", "target", "symbol"])
def test_the_schema_wants_the_hash_of_each_kernel(schema: Any, made: Origin, field: str) -> None:
    document = json.loads(Results({}, [ROW], made).to_json())
    document["origin"]["kernels"][0].pop(field)
    assert not schema.is_valid(document)


def test_files_of_format_1_are_read_and_say_no_origin(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    old = {key: value for key, value in vars(ROW).items() if key not in ("worst", "entries")}
    path.write_text(json.dumps({"format": 1, "environment": {}, "rows": [old]}))
    found = Results.load(path)
    assert found.origin is None
    assert [row.cell for row in found.rows] == [ROW.cell]
    assert times.Results.load(ROOT / "benchmarks/results/nvidia-h200.json").origin is None


def test_a_file_of_the_other_kind_is_named(made: Origin, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(Results({}, [ROW], made).to_json())
    with pytest.raises(times.UsageError, match="results of matrix, not of the benchmarks"):
        times.Results.load(path)
    times.Results({}, {}, [], made).save(path)
    with pytest.raises(times.UsageError, match="results of benchmarks, not of the matrix"):
        Results.load(path)
