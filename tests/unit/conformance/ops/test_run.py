"""The arguments of a case's launch, and their layout in memory."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformance.cases import CASES, Case
from conformance.jobs.jobs import JobContext
from conformance.ops import run
from conformance.ops.inputs import Inputs, make_inputs
from conformance.ops.run import OpRows, attempt, check_op, launchers, references, run_ops, upload
from conformance.ops.smallest import layouts
from conformance.results.cell import Cell
from conformance.results.result import CellResult
from toolchain.bundles.bundle import Bundle, BundleEntry, FileRef
from toolchain.contract.artifact import tile_ir
from toolchain.contract.entry import EntrySpec
from toolchain.contract.op import ops
from toolchain.contract.targets import targets
from toolchain.errors import NoRoom
from toolchain.runtime import CpuExecutor, DeviceBuffer, Launcher
from toolchain.runtime.layout import NUMPY

CASE = Case("linear_residual", {"M": 5, "K": 16, "N": 24}, "")


def bundle(*specs: EntrySpec) -> Bundle:
    nothing = FileRef(Path(), "")
    return Bundle(Path(), tuple(BundleEntry(spec, nothing, tile_ir(b"", "13.3").form, {}) for spec in specs), {})


def entry(symbol: str, *targets: str, where: Sequence[str] = ()) -> EntrySpec:
    return EntrySpec(symbol, "linear_residual", "py", "f32", targets=targets, where=tuple(where))


@pytest.fixture
def cpu() -> CpuExecutor:
    return CpuExecutor()


@pytest.fixture
def inputs() -> Inputs:
    return make_inputs(CASE, "f32", seed=1)


def test_the_interpreter_runs_what_each_target_would(cpu: CpuExecutor, inputs: Inputs) -> None:
    tuned = [entry("large", "sm_90", where=["M > 64"]), entry("few", "sm_90"), entry("other", "sm_100")]
    with_tuned = bundle(*tuned, entry("fast", where=["M == 1"]), entry("any"))

    def symbols(found: Bundle) -> dict[str, str]:
        arguments = {**upload(CASE, inputs, cpu), **inputs.scalars}
        chosen = dict(launchers(CASE, "f32", inputs, found, "py", cpu))
        assert all(isinstance(each, Launcher) for each in chosen.values())
        return {
            shape: each.select("linear_residual", "f32", **arguments).spec.symbol
            for shape, each in chosen.items()
            if isinstance(each, Launcher)
        }

    assert symbols(with_tuned) == {
        "M=5 K=16 N=24": "any",
        "M=5 K=16 N=24 sm_90": "few",
        "M=5 K=16 N=24 sm_100": "other",
    }
    assert symbols(bundle(entry("any"))) == {"M=5 K=16 N=24": "any"}


def test_a_gpu_runs_its_own(cpu: CpuExecutor, inputs: Inputs) -> None:
    cpu.target = "sm_90"
    ((_, launcher),) = launchers(CASE, "f32", inputs, bundle(entry("few", "sm_90"), entry("any")), "py", cpu)
    assert isinstance(launcher, Launcher)
    assert launcher.target == "sm_90"


def test_a_target_without_a_fitting_entry_has_a_row_that_says_so(cpu: CpuExecutor, inputs: Inputs) -> None:
    """Another target's entry does not stand in for it, and the others keep their rows."""
    found = dict(launchers(CASE, "f32", inputs, bundle(entry("few", "sm_90"), entry("other", "sm_100")), "py", cpu))
    run = {shape: each.target for shape, each in found.items() if isinstance(each, Launcher)}
    refused = {shape: each for shape, each in found.items() if not isinstance(each, Launcher)}
    assert run == {f"{CASE.shape} sm_90": "sm_90", f"{CASE.shape} sm_100": "sm_100"}
    assert set(refused) == {f"{CASE.shape} {target}" for target in targets()} - set(run)
    assert all("no entry fits" in str(error) for error in refused.values())
    rows = {row.shape: row for row in run_rows(bundle(entry("few", "sm_90", where=["M < 3"])), cpu)}
    assert {row.status for row in rows.values()} == {"error"}
    assert "no entry fits" in rows[f"{CASE.shape} sm_90"].detail


def test_a_whole_step_without_a_fitting_entry_is_an_error_where_it_was_compiled(cpu: CpuExecutor) -> None:
    """Nobody else's row stands for it."""
    (step, *_) = (case for case in CASES if case.op == "decode_step")
    made = layouts(step, "bf16", cpu)
    arrays = {
        name: np.zeros((1,) * len(a.shape), NUMPY[a.dtype]) for name, a in made.items() if isinstance(a, DeviceBuffer)
    }
    names = {param.name for param in ops()["decode_step"].outputs}
    given = Inputs(
        {n: a for n, a in arrays.items() if n not in names},
        {n: a for n, a in arrays.items() if n in names},
        {"eps": 1e-5, "visible": 1},
    )
    small = Case("decode_step", dict.fromkeys(step.dims, 1), "")
    found = bundle(EntrySpec("step", "decode_step", "cute", "bf16", where=("L == 12",), targets=("sm_90",)))
    for target, rows in (("sm_90", 1), ("sm_80", 0)):
        cpu.target = target
        launched = list(launchers(small, "bf16", given, found, "cute", cpu))
        assert len(launched) == rows
        for _, launcher in launched:
            assert isinstance(launcher, Launcher)
            cell = Cell.on("decode_step", "cute", "bf16", cpu)
            row = attempt(cell, small.shape, check_op, small, "bf16", given, dict, launcher, cpu)
            assert row.status == "error" and "L == 12 does not hold" in row.detail


def test_a_kernel_without_room_is_not_run(cpu: CpuExecutor) -> None:
    def check() -> Any:
        raise NoRoom("its 12 clusters must run at the same time")

    row = attempt(Cell.on("decode_step", "cute", "bf16", cpu), "", check)
    assert (row.status, row.detail) == ("not run", "its 12 clusters must run at the same time")


def test_a_source_that_borrows_has_no_row_where_no_entry_fits(cpu: CpuExecutor, inputs: Inputs) -> None:
    few = bundle(replace(entry("few", "sm_90", where=["M < 3"]), source="cute"))
    here = bundle(replace(entry("here", "sm_90"), source="cute"))
    assert list(launchers(CASE, "f32", inputs, few, "cute", cpu)) == []
    assert [shape for shape, _ in launchers(CASE, "f32", inputs, here, "cute", cpu)] == [f"{CASE.shape} sm_90"]
    cpu.target = "sm_90"
    assert list(launchers(CASE, "f32", inputs, few, "cute", cpu)) == []
    assert [shape for shape, _ in launchers(CASE, "f32", inputs, here, "cute", cpu)] == [CASE.shape]


def run_rows(found: Bundle, cpu: CpuExecutor) -> list[CellResult]:
    return list(run_ops(found, cpu, [CASE], sources=["py"], dtypes=["f32"], seed=1))


def test_a_target_that_the_bundle_was_not_compiled_for_needs_no_entry(cpu: CpuExecutor, inputs: Inputs) -> None:
    nothing = FileRef(Path(), "")
    only = Bundle(
        Path(), (BundleEntry(entry("few", "sm_90"), nothing, tile_ir(b"", "13.3").form, {"sm_90": nothing}),), {}
    )
    assert [shape for shape, _ in launchers(CASE, "f32", inputs, only, "py", cpu)] == [f"{CASE.shape} sm_90"]


def test_a_dtype_that_the_bundle_lacks_is_one_row(cpu: CpuExecutor) -> None:
    (row,) = run_ops(bundle(entry("any")), cpu, [CASE], sources=["py"], dtypes=["f16"], seed=1)
    assert (row.shape, row.status) == (CASE.shape, "error")
    assert "no entry for py/linear_residual[f16]" in row.detail


def arrays(cpu: CpuExecutor, **where: str | bool) -> dict[str, DeviceBuffer]:
    case = Case(CASE.op, CASE.dims, "", **where)  # type: ignore[arg-type]
    inputs = make_inputs(case, "f32", seed=1)
    found = upload(case, inputs, cpu)
    for name, array in {**inputs.arrays, **inputs.outputs}.items():
        assert np.array_equal(found[name].numpy(), array, equal_nan=True)
    return found


def test_arrays_are_aligned_unless_the_case_says_not(cpu: CpuExecutor) -> None:
    assert all(buffer.layout.aligned for buffer in arrays(cpu).values())
    assert not any(buffer.layout.aligned for buffer in arrays(cpu, misaligned=True).values())


def test_an_output_in_place_of_an_input(cpu: CpuExecutor) -> None:
    apart, same = arrays(cpu), arrays(cpu, in_place="residual")
    assert np.isnan(apart["out"].numpy()).all()
    assert same["out"] is same["residual"]
    assert (
        Case(CASE.op, CASE.dims, "", in_place="residual", misaligned=True).shape == "M=5 K=16 N=24 in place misaligned"
    )


def test_an_exact_output_does_not_hide_the_error_of_another(cpu: CpuExecutor) -> None:
    case = Case("decode_attention", {"B": 2, "P": 65, "H": 1, "D": 32, "Z": 1, "TWO": 2}, "")
    inputs = make_inputs(case, "f32", seed=1)
    expected = references(case, "f32", inputs)

    def launch(_op: str, _dtype: str, **buffers: DeviceBuffer) -> None:
        for name, (_, rounded) in expected.items():  # the caches are exact
            buffers[name].copy_from(rounded)

    verdict, _ = check_op(case, "f32", inputs, lambda: expected, launch, cpu)  # type: ignore[arg-type]
    assert 0 < verdict.error < verdict.bound


def test_what_was_computed_ahead_is_not_computed_again(cpu: CpuExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, made = OpRows(CASE, ("f32",)), list[int]()
    monkeypatch.setattr(run, "make_inputs", lambda *given: made.append(given[2]) or make_inputs(*given))
    rows.ahead(3)
    for seed in (3, 3, 4):
        list(rows(JobContext(bundle(entry("any")), cpu, ["py"], seed, nullcontext())))
    assert made == [3, 3, 4], "it is kept for one call"


class GPU(CpuExecutor):
    """One whose work is the processor's. `held`: whether the gate is."""

    kind = "cuda"
    held = False

    def __enter__(self) -> GPU:
        self.held = True
        return self

    def __exit__(self, *_: object) -> None:
        self.held = False

    def read(self, source: DeviceBuffer) -> Any:
        assert not self.held
        return super().read(source)


class Once:
    """Is right in its first launch alone."""

    def __init__(self, gpu: GPU, right: np.ndarray[Any, Any]) -> None:
        self.gpu, self.right, self.told = gpu, right, list[str]()

    def prepare(self, _op: str, _dtype: str, **_: object) -> None:
        assert not self.gpu.held
        self.told.append("prepare")

    def __call__(self, _op: str, _dtype: str, *, out: DeviceBuffer, **_: object) -> None:
        assert self.gpu.held
        self.told.append("launch")
        out.copy_from(self.right if len(self.told) == 2 else 0 * self.right)


@pytest.mark.parametrize("more", [{}, {"in_place": "residual"}, {"misaligned": True}])
def test_a_gpus_first_launch_is_compared_and_its_gate_held_for_launches_alone(more: dict[str, Any]) -> None:
    case, gpu = Case(CASE.op, CASE.dims, "", **more), GPU()
    given = make_inputs(case, "f32", seed=1)
    expected = references(case, "f32", given)
    launch = Once(gpu, expected["out"][1])
    verdict, times = check_op(case, "f32", given, lambda: expected, launch, gpu, gate=gpu)  # type: ignore[arg-type]
    assert verdict.error <= verdict.bound
    assert launch.told == ["prepare", *["launch"] * 22] and len(times) == 20
