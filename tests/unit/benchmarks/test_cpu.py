from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import cpu
from benchmarks.harness import compile_time, interpreter
from benchmarks.harness.measurement import Measurement
from benchmarks.studies import turns
from toolchain.bundles.bundle import Compiled
from toolchain.compiling.stages import Stage
from toolchain.contract.artifact import tile_ir
from toolchain.contract.entry import EntrySpec


def test_operations_are_measured_with_their_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = {name: interpreter.OPERATIONS[name] for name in ("addi, scalar", "store_view 64x64 f32")}
    monkeypatch.setattr(interpreter, "OPERATIONS", chosen)
    monkeypatch.setattr(interpreter, "STEPS", 50)
    found = list(interpreter.operations(3))
    names = [m.name for m in found]
    assert names == [
        "addi, scalar", "addi, scalar, sanitized", "store_view 64x64 f32", "store_view 64x64 f32, sanitized",
        "store_view 64x64 f32, numpy's own",
    ]  # fmt: skip
    assert all(m.low <= m.median <= m.high and m.samples == 3 and m.unit == "us" for m in found)


def test_a_start_is_measured_in_a_new_process() -> None:
    *imports, prepare = interpreter.starting(1)
    assert [m.name for m in imports] == ["import of tilestack", "import of the interpreter"]
    assert prepare.name.startswith("prepare layernorm.mlir, ")
    assert all(m.unit == "ms" and m.median > 0 for m in (*imports, prepare))


def test_the_forward_is_the_public_path() -> None:
    plain, sanitized = sorted(interpreter.forward("kernels_mlir", "nano", "f32", 4, 1), key=lambda m: m.name)
    assert plain.name == "forward nano mlir f32 B=1 T=4"
    assert sanitized.name.endswith(", sanitized")
    assert plain.unit == "s"


def test_assembling_is_summed_up_first(monkeypatch: pytest.MonkeyPatch) -> None:
    as_if = Stage(("tileiras",), lambda code, target: code * 200_000 + target.encode())
    monkeypatch.setattr(compile_time, "STAGES", {"tile-ir": as_if})
    of = [(), ("sm_80", "sm_90"), ("sm_90",), ("sm_100",)]  # the last is never compiled for this target
    specs = [EntrySpec(f"gelu_{n}", "gelu", "mlir", "f32", targets=names) for n, names in enumerate(of)]
    compiled = [Compiled(spec, tile_ir(bytes([n]) * (n + 1), "13.3"), {}) for n, spec in enumerate(specs)]
    total, slowest, *each = compile_time.assemble_times(compiled, "sm_90", 2)
    assert total.name == "assemble for sm_90, median of 3 kernels"
    assert slowest.median == max(m.median for m in each)
    assert all(m.detail for m in each)
    assert [m.name for m in each] == [f"assemble mlir/gelu_{n} sm_90" for n in range(3)]


def test_what_is_measured_is_printed_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = [Measurement.of("one", "us", [1.0, 3.0, 2.0]), Measurement.of("two", "s", [4.0], detail=True)]
    monkeypatch.setattr(cpu, "measurements", lambda _: iter(made))
    monkeypatch.setenv("TILESTACK_JOBS", "77")  # says how many compiles run at once, not what runs them
    assert cpu.run(cpu.Options(tmp_path / "new")) == 0
    document = json.loads((tmp_path / "new" / cpu.FILE).read_text())
    assert document["measurements"] == [
        {"name": "one", "unit": "us", "median": 2, "low": 1, "high": 3, "samples": 3, "detail": False},
        {"name": "two", "unit": "s", "median": 4, "low": 4, "high": 4, "samples": 1, "detail": True},
    ]
    assert document["environment"]["processor"].endswith(f", {len(os.sched_getaffinity(0))} cores")
    first, last = capsys.readouterr().out.splitlines()
    assert first.split() == ["one", "2", "us", "1..3", "of", "3"]
    assert last.startswith("wrote")


def test_a_run_that_is_ended_leaves_what_it_last_wrote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(_: cpu.Options) -> Iterator[Measurement]:
        yield Measurement.of("one", "us", [1.0])
        yield Measurement.of("two", "us", [2.0])

    def full(self: Path, target: Path) -> Path:
        if "two" in self.read_text():
            raise OSError(errno.ENOSPC, "No space left on device", str(target))
        return replace(self, target)

    replace = Path.replace
    monkeypatch.setattr(Path, "replace", full)
    monkeypatch.setattr(cpu, "measurements", measured)
    with pytest.raises(OSError, match="No space"):
        cpu.run(cpu.Options(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == [cpu.FILE]
    assert [one["name"] for one in json.loads((tmp_path / cpu.FILE).read_text())["measurements"]] == ["one"]


def test_what_measured_nothing_wrote_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cpu, "measurements", lambda _: iter(()))
    assert cpu.run(cpu.Options(tmp_path)) == 0
    assert capsys.readouterr().out == ""
    assert not list(tmp_path.iterdir())


def test_only_what_is_asked_for_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(interpreter, "operations", lambda repeats: asked.append(f"operations {repeats}") or iter(()))
    monkeypatch.setattr(interpreter, "starting", lambda repeats: asked.append(f"start {repeats}") or iter(()))
    monkeypatch.setattr(interpreter, "forward", lambda *_: asked.append("forward") or iter(()))
    monkeypatch.setattr(turns, "turns", lambda *args: asked.append(f"turns {args[-1]}") or iter(()))
    monkeypatch.setattr(compile_time, "compile_times", lambda _, n: asked.append(f"compile {n}") or ([], []))
    monkeypatch.setattr(compile_time, "assemble_times", lambda *args: asked.append(f"assemble {args[1]}") or iter(()))
    list(cpu.measurements(cpu.Options(Path(), only=("operations",))))
    list(cpu.measurements(cpu.Options(Path(), only=("assemble",), targets=("sm_90",))))
    list(cpu.measurements(cpu.Options(Path(), only=("start",))))
    list(cpu.measurements(cpu.Options(Path(), only=("turns",))))
    assert asked == ["operations 6", "compile 1", "assemble sm_90", "start 3", "turns 12"]
