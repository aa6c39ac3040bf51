"""The source of docs/add-a-source.md, as it stands there: from its text to a cubin, and on a GPU to right numbers."""

from __future__ import annotations

import re
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from conformance.cases import CASES
from conformance.ops.run import run_ops
from conformance.results.result import CellResult
from toolchain.bundles.bundle import Bundle, write
from toolchain.caching.cache import Cache
from toolchain.compiling.cubin import inspect
from toolchain.compiling.pipeline import compile_entries, tools_used
from toolchain.contract.sources import load_source
from toolchain.contract.targets import select, targets
from toolchain.knobs import ROOT
from toolchain.runtime import Executor, open_executor

pytestmark = pytest.mark.needs("toolchain")
PAGE = ROOT / "docs" / "add-a-source.md"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[str]:
    """The page's source as a package, by its name."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    folder = tmp_path / "kernels_ptx"
    folder.mkdir()
    (folder / "__init__.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    yield folder.name
    load_source.cache_clear()
    sys.modules.pop(folder.name, None)


def compiled(package: str, folder: Path, *names: str) -> Bundle:
    chosen = select(names)
    entries = [(package, spec) for spec in load_source(package).entries()]
    outcome = compile_entries(entries, chosen, Cache(folder / "cache"), jobs=1)
    assert outcome.failures == []
    return write(folder / "bundle", outcome.compiled, tools_used(chosen, {"ptx"}))


def run(bundle: Bundle, executor: Executor) -> list[CellResult]:
    cases = [case for case in CASES if case.op == "gelu"]
    return list(run_ops(bundle, executor, cases, sources=["ptx"], dtypes=["f32"], seed=1))


def test_it_compiles_for_every_target(package: str, tmp_path: Path) -> None:
    bundle = compiled(package, tmp_path, *targets())
    (entry,) = bundle.entries
    assert (entry.form.kind, entry.form.block, entry.form.waits) == ("ptx", (128, 1, 1), False)
    assert list(bundle.tools) == ["ptxas"]
    for target in targets():
        (usage,) = inspect(bundle.read(entry.cubins[target]))
        assert (usage.symbol, usage.spills) == ("gelu_f32", 0)


def test_the_interpreter_says_that_it_cannot_run_it(package: str, tmp_path: Path) -> None:
    rows = run(compiled(package, tmp_path, "sm_80"), open_executor("cpu"))
    assert {row.status for row in rows} == {"not run"}
    assert {row.detail for row in rows} == {
        "ptx/gelu_f32 is ptx, without Tile IR bytecode: the interpreter cannot run it"
    }


@pytest.mark.needs("gpu")
def test_its_numbers_are_right(package: str, tmp_path: Path) -> None:
    executor = open_executor("cuda")
    assert executor.target is not None
    rows = run(compiled(package, tmp_path, executor.target), executor)
    assert rows
    assert [(row.shape, row.detail) for row in rows if row.status != "passed"] == []
