"""The conformance cases catch the kernel bugs that people write, and pass the kernels without them.

Both run on the interpreter in f32, whose bounds are the tightest, at small odd sizes.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from gpt.conformance.cases import CASES, Case
from gpt.conformance.result import Row
from gpt.conformance.run import run_ops
from kernels_mlir import SOURCE
from toolchain import bundle
from toolchain.entry import ops
from toolchain.errors import SourceError
from toolchain.runtime import open_executor
from toolchain.tileir import bytecode, specialize


def _table() -> ModuleType:
    spec = importlib.util.spec_from_file_location("mutations", Path(__file__).with_name("mutations.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["mutations"] = module  # its dataclass looks itself up there
    spec.loader.exec_module(module)
    return module


MUTATIONS = _table().MUTATIONS


def small(op: str) -> list[Case]:
    """The op's cases that the interpreter runs in a moment."""
    return [c for c in CASES if c.op == op and not c.gpu_only and c.dims.get("K", 1) * c.dims.get("N", 1) < 100_000]


def run(op: str, text: str, folder: Path) -> list[Row]:
    """Every small case of an op, its entries made from `text` instead of the committed file."""
    compiled = [
        bundle.Compiled(spec, bytecode.write(specialize.specialize(text, filename=f"{op}.mlir", spec=spec)), "13.3", {})
        for spec in SOURCE.entries()
        if spec.op == op and spec.dtype == "f32"
    ]
    made = bundle.write(folder / "bundle", compiled, {})
    return list(run_ops(made, open_executor("cpu"), small(op), sources=["mlir"], dtypes=["f32"], seed=3))


def committed(op: str) -> str:
    return next(SOURCE.text(spec)[0] for spec in SOURCE.entries() if spec.op == op)


@pytest.mark.parametrize("op", list(ops()))
def test_the_committed_kernel_passes(op: str, tmp_path: Path) -> None:
    rows = run(op, committed(op), tmp_path)
    assert rows
    assert [row.detail for row in rows if row.status != "passed"] == []


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda m: f"{m.op}: {m.bug}")
def test_the_bug_is_caught(mutation, tmp_path: Path) -> None:
    text = committed(mutation.op)
    assert text.count(mutation.old) == 1, "the kernel changed: say the bug anew"
    try:
        rows = run(mutation.op, text.replace(mutation.old, mutation.new), tmp_path)
    except SourceError as error:
        pytest.fail(f"the verifier caught it, which tests nothing here: {error}")
    assert any(row.status in ("failed", "error") for row in rows)


def test_there_are_bugs_enough() -> None:
    assert len(MUTATIONS) >= 20
    assert {m.op for m in MUTATIONS} == set(ops())
