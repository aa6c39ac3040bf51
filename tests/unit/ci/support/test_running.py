"""The run half, on the interpreter."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from ci.support.running import run_all, run_bundle
from ci.support.table import KERNELS, Settings
from toolchain.bundles.bundle import Compiled, write
from toolchain.errors import UsageError

SETTINGS = Settings(["13.1"], ["mlir"], ["kv_append_D32_bf16"], 1)


@pytest.fixture
def bundles(tmp_path: Path) -> Path:
    source = importlib.import_module("kernels_mlir").SOURCE
    chosen = [spec for spec in source.entries() if spec.symbol in SETTINGS.entries]
    write(tmp_path / "13.5.37-13.1", [Compiled(spec, source.artifact(spec), {}) for spec in chosen], {})
    (tmp_path / KERNELS).write_text("abc\n")
    return tmp_path


def test_a_bundle_is_loaded_run_and_checked(bundles: Path) -> None:
    (row,) = run_bundle(bundles / "13.5.37-13.1", SETTINGS, "cpu")
    assert (row.tileiras, row.bytecode, row.source) == ("13.5.37", "13.1", "mlir")
    assert (row.of, row.loaded, row.ran, row.conformed, row.fits, row.why) == (1, 1, 1, 1, 1, "")


def test_a_wrong_number_is_ran_but_not_conformed(bundles: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from toolchain.runtime.cpu import CpuExecutor

    monkeypatch.setattr(CpuExecutor, "prepare", lambda *_: lambda *_: None)
    (row,) = run_bundle(bundles / "13.5.37-13.1", SETTINGS, "cpu")
    assert (row.loaded, row.ran, row.conformed) == (1, 1, 0) and row.why


def test_a_folder_without_bundles_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no bundles"):
        run_all(tmp_path, SETTINGS)
