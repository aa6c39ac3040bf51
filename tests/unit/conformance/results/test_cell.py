"""The one spelling of a cell's name."""

from __future__ import annotations

import re

from conformance.results.cell import CPU, Cell
from toolchain.contract.entry import EntrySpec
from toolchain.contract.op import cell_name
from toolchain.knobs import ROOT
from toolchain.runtime import CpuExecutor


def test_a_cell_has_one_name_wherever_it_is_spelt() -> None:
    cell = Cell.on("layernorm", "mlir", "bf16", CpuExecutor())
    assert (str(cell), cell.name, cell.target) == ("layernorm-mlir-bf16-cpu",) * 2 + (CPU,)
    assert cell == Cell("layernorm", "mlir", "bf16", CPU), "whoever runs it"
    row = cell.row("M=1", status="passed")
    assert (row.cell, row.target, row.executor) == (cell.name, CPU, CpuExecutor().name)
    assert EntrySpec("x", "layernorm", "mlir", "bf16").cell == "layernorm-mlir-bf16"
    assert cell_name("gelu", "py", "f32", "sm_90") == str(Cell("gelu", "py", "f32", "sm_90"))


def test_nothing_else_spells_it() -> None:
    parts = r"\{[\w.]*op\}-\{[\w.]*source\}-\{[\w.]*dtype\}"
    folders = ("benchmarks", "ci", "conformance", "gpt", "tilestack", "toolchain", "tune")
    found = [path for folder in folders for path in (ROOT / folder).rglob("*.py") if re.search(parts, path.read_text())]
    assert not found
