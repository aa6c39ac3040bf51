"""The conformance cases catch the kernel bugs that people write, and pass the kernels without them.

Both run on the interpreter at the sizes that it does in a moment, in f32, whose bounds are the tightest. Bugs in what
only entries of 16 bits do, a block that makes several tiles, run in bf16.
"""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path
from types import ModuleType

import pytest

from conformance.cases import CASES, Case
from conformance.result import Row
from conformance.run import run_ops
from kernels_mlir import HERE, SOURCE
from toolchain import bundle
from toolchain.artifact import tile_ir
from toolchain.entries import tuned_symbols
from toolchain.entry import EntrySpec, ops
from toolchain.errors import SourceError
from toolchain.runtime import open_executor
from toolchain.targets import BYTECODE
from toolchain.tileir import bytecode, overlap, specialize
from toolchain.tileir.bytecode.writer import parse_version


def _table() -> ModuleType:
    spec = importlib.util.spec_from_file_location("mutations", Path(__file__).with_name("mutations.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["mutations"] = module  # its dataclass looks itself up there
    spec.loader.exec_module(module)
    return module


MUTATIONS = _table().MUTATIONS


def kernel_of(spec: EntrySpec) -> str:
    return spec.kernel or spec.op


TUNED = tuned_symbols(SOURCE.name)  # these come and go
OWN = [spec for spec in SOURCE.entries() if spec.symbol not in TUNED]
OPS = {kernel_of(spec): spec.op for spec in OWN}  # of each kernel
LARGE = {"linear_residual_squares_ones": ("M", 3100)}  # what only such a size chooses


def small(op: str, kernel: str) -> list[Case]:
    """The op's cases that the interpreter runs in a moment, and those that nothing smaller stands for."""
    cases = [c for c in CASES if c.op == op and not c.gpu_only]
    dim, size = LARGE.get(kernel, ("K", 0))
    return [c for c in cases if _products(c) < 40_000_000 or c.dims.get(dim) == size]


def _products(case: Case) -> int:
    return math.prod(case.dims.get(name, 1) for name in "MKN")


def run(op: str, dtype: str, folder: Path, kernel: str = "", text: str = "") -> list[Row]:
    """Every small case of an op in a dtype; the entries of `kernel` made from `text` instead of the committed file."""
    compiled = []
    for spec in OWN:
        if (spec.op, spec.dtype) == (op, dtype):
            if kernel_of(spec) == kernel:
                module = specialize.specialize(text, filename=f"{kernel}.mlir", spec=spec)
                overlap.settle(module.entries[spec.symbol], spec, parse_version(BYTECODE))
                code = bytecode.write(module, BYTECODE)
            else:
                code = SOURCE.bytecode(spec)
            compiled.append(bundle.Compiled(spec, tile_ir(code, BYTECODE), {}))
    made = bundle.write(folder / "bundle", compiled, {})
    return list(run_ops(made, open_executor("cpu"), small(op, kernel), sources=["mlir"], dtypes=[dtype], seed=3))


@pytest.mark.parametrize(
    ("op", "dtype"),
    sorted({*((op, "f32") for op in ops()), *((OPS[m.kernel], m.dtype) for m in MUTATIONS)}),
)
def test_the_committed_kernel_passes(op: str, dtype: str, tmp_path: Path) -> None:
    rows = run(op, dtype, tmp_path)
    assert rows
    assert [row.detail for row in rows if row.status != "passed"] == []


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda m: f"{m.kernel}: {m.bug}")
def test_the_bug_is_caught(mutation, tmp_path: Path) -> None:
    text = mutation.apply((HERE / f"{mutation.kernel}.mlir").read_text())
    try:
        rows = run(OPS[mutation.kernel], mutation.dtype, tmp_path, mutation.kernel, text)
    except SourceError as error:
        pytest.fail(f"the verifier caught it, which tests nothing here: {error}")
    assert any(row.status in ("failed", "error") for row in rows)


def test_there_are_bugs_enough() -> None:
    assert len(MUTATIONS) >= 80
    assert len({(m.kernel, m.bug) for m in MUTATIONS}) == len(MUTATIONS)
    assert {m.kernel for m in MUTATIONS} == {path.stem for path in HERE.glob("*.mlir")} == set(OPS)
    assert {OPS[m.kernel] for m in MUTATIONS} == set(ops())
