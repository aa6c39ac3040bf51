"""Entries of a bundle whose PTX has its IR beside it: on the executor, with the arguments of a launch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformance.cases import Case
from conformance.ops.inputs import make_inputs
from conformance.ops.run import check_op, launchers, references
from toolchain.bundles.bundle import Bundle, Compiled, write
from toolchain.contract.artifact import ptx
from toolchain.contract.entry import EntrySpec
from toolchain.contract.op import ops
from toolchain.cute.executor import Finding, Misaligned, OutOfBounds
from toolchain.cute.executor.launches.entry import EntryLaunch
from toolchain.errors import NotInterpretable
from toolchain.runtime import Launcher
from toolchain.runtime.cpu import CpuExecutor

# gelu(x) = x, of 32 columns at most: enough to see what arrives.
ARRAY = "{name}: !llvm.ptr<1>, {name}_m: i32, {name}_n: i32, {name}_s: i32, {name}_t: i32"
COPY = f"""
gpu.module @kernels {{
  llvm.func @gelu_f32({", ".join(ARRAY.format(name=name) for name in ("%x", "%y"))}) attributes {{nvvm.kernel}} {{
    %i = nvvm.read.ptx.sreg.tid.x : i32
    %j = nvvm.read.ptx.sreg.ctaid.x : i32
    %in = arith.cmpi ult, %i, %x_n : i32
    scf.if %in {{
      %a = arith.muli %j, %x_s : i32
      %b = arith.addi %a, %i : i32
      %c = arith.muli %j, %y_s : i32
      %d = arith.addi %c, %i : i32
      %p = llvm.getelementptr %x[%b] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
      %q = llvm.getelementptr %y[%d] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
      %v = llvm.load %p : !llvm.ptr<1> -> f32
      llvm.store %v, %q : f32, !llvm.ptr<1>
    }}
    llvm.return
  }}
}}
"""
SPEC = EntrySpec("gelu_f32", "gelu", "cute", "f32", grid=("M", "1", "1"))
FORM = ptx("", block=(32, 1, 1)).form
X = np.arange(3 * 7, dtype=np.float32).reshape(3, 7)
CASE = Case("gelu", {"M": 3, "N": 7}, "small")


def launched(text: str, spec: EntrySpec = SPEC, x: Any = X) -> np.ndarray[Any, Any]:
    out = np.zeros(x.shape, x.dtype)
    EntryLaunch(text, spec, FORM, {"x": x, "out": out}, {}, (len(x), 1, 1)).run()
    return out


def test_arrays_arrive_as_a_launch_passes_them() -> None:
    assert (launched(COPY) == X).all()
    assert (launched(COPY, x=X[:, ::2]) == X[:, ::2]).all()
    with pytest.raises(OutOfBounds, match=r"from x\[0, 7\] on"):
        launched(COPY.replace("%in = arith.cmpi ult, %i, %x_n", "%in = arith.cmpi ule, %i, %x_n"))


def test_an_entry_gets_the_alignment_and_the_rows_that_it_asks_for() -> None:
    wide = COPY.replace(
        "%v = llvm.load %p", "%u = llvm.load %p {alignment = 16} : !llvm.ptr<1> -> f32\n%v = llvm.load %p"
    )
    with pytest.raises(Misaligned):
        launched(wide)
    dense = COPY.replace("arith.muli %j, %x_s", "arith.muli %j, %x_n")  # rows side by side
    with pytest.raises(Finding):
        launched(dense)
    assert (launched(dense, replace(SPEC, contiguous=("x",), aligned=("x",))) == X).all()


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    artifact = ptx(".target sm_80", block=(32, 1, 1), ir=COPY)
    return write(tmp_path / "b", [Compiled(SPEC, artifact, {})], {})


def test_the_cpu_runs_it_where_somebody_asks_for_it(bundle: Bundle) -> None:
    executor = CpuExecutor()
    x, out = executor.from_numpy(X), executor.empty((3, 7), "f32")
    with pytest.raises(NotInterpretable, match="run it on a GPU"):
        Launcher(bundle, "cute", executor)("gelu", "f32", x=x, out=out)
    executor.by_threads = True
    Launcher(bundle, "cute", executor)("gelu", "f32", x=x, out=out)
    assert (out.numpy() == X).all()
    assert [(loaded.target, loaded.sha256) for loaded in executor.ran] == [("cpu", bundle.entries[0].ir.sha256)]  # pyright: ignore[reportOptionalMemberAccess]


def test_the_matrix_runs_the_cases_that_were_picked(bundle: Bundle) -> None:
    executor, inputs = CpuExecutor(), make_inputs(CASE, "f32", 0)
    (shape, every), *_ = launchers(CASE, "f32", inputs, bundle, "cute", executor)
    assert isinstance(every, NotInterpretable) and "a CPU runs its smallest case alone" in str(every)
    (_, picked), *_ = launchers(CASE, "f32", inputs, bundle, "cute", executor, frozenset({"gelu_f32"}))
    assert shape == CASE.shape and isinstance(picked, Launcher)
    with pytest.raises(Exception, match="gelu"):  # it ran, and is no gelu
        check_op(CASE, "f32", inputs, lambda: references(CASE, "f32", inputs), picked, executor)
    assert executor.ran and not executor.by_threads


def meeting(op: str, grid: int = 1, constants: dict[str, int] | None = None, **sizes: int) -> str:
    """Of a launch over arrays of 1 in each dimension that has no other size."""
    arrays = {p.name: np.zeros([sizes.get(dim, 1) for dim in p.dims], np.int8) for p in ops()[op].params if p.dims}
    return EntryLaunch("", EntrySpec(op, op, "cute", "bf16", constants or {}), FORM, arrays, {}, (grid, 1, 1)).meeting


def test_ranks_meet_in_entries_for_their_own_parts() -> None:
    """Of a step each may have other heads in another number of clusters; not another number of layers."""
    step = "decode_step_of_ranks"
    one = meeting(step, 8, {"CLUSTERS": 28}, L=2, H=12, E=2304)
    assert one == meeting(step, 9, {"CLUSTERS": 29}, L=2, H=13, E=2496) != meeting(step, 8, L=3, H=12, E=2304)
    assert one.startswith(f"{step} bf16 ") and " L=2" in one and "H=" not in one


def test_blocks_that_meet_are_as_many_and_have_the_same_tiles() -> None:
    tiles = {"BM": 64, "BN": 64}
    one = meeting("linear_to_ranks", 4, tiles, K=64)
    assert one == meeting("linear_to_ranks", 4, tiles, K=128)
    assert len({one, meeting("linear_to_ranks", 8, tiles), meeting("linear_to_ranks", 4, {**tiles, "BN": 128})}) == 3
