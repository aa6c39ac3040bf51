"""Bundles for the commands that read one."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolchain.bundles.bundle import Compiled, write
from toolchain.contract.artifact import tile_ir
from toolchain.contract.sources import load_source


@pytest.fixture
def bundle(bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """gelu[f32] from one source, bytecode only, for commands as they run on a developer's machine."""
    monkeypatch.setenv("TILESTACK_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    return bundle


@pytest.fixture
def one_cubin(tmp_path: Path) -> str:
    """The folder of a bundle with one cubin, which is none."""
    spec = next(spec for spec in load_source("kernels_py").entries() if spec.symbol == "gelu_1024_f16")
    write(tmp_path / "bundle", [Compiled(spec, tile_ir(b"code", "13.4"), {"sm_90": b"cubin"})], {})
    return str(tmp_path / "bundle")
