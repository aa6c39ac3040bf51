"""The op of docs/add-a-kernel.md: its tables are read, and its kernel in text computes what the page says."""

from __future__ import annotations

import re
from collections.abc import Generator
from pathlib import Path

import numpy as np
import pytest

from toolchain.contract import entries, entry, op
from toolchain.contract.targets import BYTECODE
from toolchain.knobs import ROOT
from toolchain.tileir.bytecode.writer import parse_version
from toolchain.tileir.compose import Library, compose
from toolchain.tileir.dialect.verify import verify
from toolchain.tileir.interpreter import Allocation, Pointer, Prepared
from toolchain.tileir.passes import PASSES
from toolchain.tileir.specialize import COMPOSED

PAGE = (ROOT / "docs/add-a-kernel.md").read_text()
SIGNATURE, GROUP = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(autouse=True)
def relu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Generator[None]:
    """The page's op beside the others."""
    (tmp_path / "ops.toml").write_text(op.OPS.read_text() + "\n" + SIGNATURE)
    monkeypatch.setattr(op, "OPS", tmp_path / "ops.toml")
    op.ops.cache_clear()
    yield
    op.ops.cache_clear()


def test_its_entries_are_read(tmp_path: Path) -> None:
    (tmp_path / "portable.toml").write_text(GROUP)
    table = entries.load_table(tmp_path / "portable.toml")
    assert "relu" in repr(table)


@pytest.mark.parametrize("shape", [(3, 10), (2, 1500)])
def test_the_kernel_computes_relu(shape: tuple[int, int], tmp_path: Path) -> None:
    (tmp_path / "relu.mlir").write_text(re.findall(r"```mlir\n(.*?)```", PAGE, re.DOTALL)[0])
    module = compose(Library.load(tmp_path), "relu", symbol="relu", dtype="f32", constants={"BN": 1024})
    spec = entry.EntrySpec("relu", "relu", "mlir", "f32")
    for name in COMPOSED:
        PASSES[name](module, spec, parse_version(BYTECODE))
    verify(module)
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    out = np.full_like(x, np.nan)
    arrays = [[Pointer(Allocation(array), 0), *shape, shape[1], 1] for array in (x, out)]
    Prepared(module).launch("relu", [*arrays[0], *arrays[1]], (shape[0], -(-shape[1] // 1024), 1))
    assert np.array_equal(out, np.maximum(x, 0))


@pytest.mark.parametrize(
    ("language", "file"), [("mlir", "kernels_mlir/persistent.mlir"), ("python", "kernels_py/products/persistent.py")]
)
def test_what_it_shows_of_our_kernels_is_in_them(language: str, file: str) -> None:
    block = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)[1]
    code = [line.strip() for line in (ROOT / file).read_text().splitlines()]
    assert [line for line in block.splitlines() if line.strip() and line.strip() not in code] == []
