from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tilestack as ts
from toolchain.tileir import bytecode, text

from ..conftest import SCALED


def test_text_and_bytecode(scaled: Path, tmp_path: Path) -> None:
    (module,) = text.parse_all(SCALED, filename="scaled.mlir")
    (tmp_path / "scaled.tilebc").write_bytes(bytecode.write(module, "13.4"))
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    for path in (scaled, str(tmp_path / "scaled.tilebc")):
        out = np.zeros((3, 4), np.float32)
        ts.load(path)[3](x, 2.0, out, on="cpu")
        assert (out == 2 * x).all()


def test_one_of_several_entries_is_chosen_by_name(tmp_path: Path) -> None:
    path = tmp_path / "two.mlir"
    entry = SCALED[SCALED.index("entry") :]
    path.write_text(SCALED + entry.replace("@scaled", "@other"))
    with pytest.raises(ts.UsageError, match=r"two.mlir has 2 entries\n.*entry= one of scaled, other"):
        ts.load(path)
    with pytest.raises(ts.UsageError, match=r"no entries 'third'\n.*one of scaled, other"):
        ts.load(path, entry="third")
    assert ts.load(path, entry="other").name == "other"


def test_a_bundles_entry_knows_its_grid(gelu_bundle: Path) -> None:
    kernel = ts.load(gelu_bundle, entry="mlir/gelu_any_f32")
    assert repr(kernel) == "<kernel gelu_any_f32(x: f32[?, ?], out: f32[?, ?] written)>"
    x = np.linspace(-3, 3, 3000, dtype=np.float32).reshape(2, 1500)
    out = np.zeros_like(x)
    kernel(x, out, on="cpu")
    exact = x.astype(np.float64)
    exact *= 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi) * (exact + 0.044715 * exact**3)))
    assert np.abs(out - exact).max() < 1e-6
    kernel[2, 2](x, out, on="cpu")
    with pytest.raises(ts.LaunchError, match=r"the grid is \(1, 1, 1\), but these arguments need \(2, 2, 1\)"):
        kernel[1](x, out, on="cpu")


def test_an_entry_refuses_what_its_conditions_exclude(gelu_bundle: Path) -> None:
    kernel = ts.load(gelu_bundle, entry="gelu_1024_f32")
    x = np.zeros((2, 1001), np.float32)
    with pytest.raises(ts.LaunchError, match="gelu_1024_f32: x must be aligned to 16 bytes"):
        kernel(x, np.zeros_like(x), on="cpu")
    with pytest.raises(ts.LaunchError, match="M is 2 in x but 3 in out"):
        kernel(x, np.zeros((3, 1001), np.float32), on="cpu")
    with pytest.raises(ts.LaunchError, match="out and x are the same array"):
        kernel(x[:, :8], x[:, :8], on="cpu")


def test_a_bundle_of_several_lists_them(gelu_bundle: Path) -> None:
    with pytest.raises(ts.UsageError, match=r"has 2 entries\n.*one of mlir/gelu_1024_f32, mlir/gelu_any_f32"):
        ts.load(gelu_bundle)
    with pytest.raises(ts.UsageError, match="no entries 'py/gelu_any_f32'"):
        ts.load(gelu_bundle, entry="py/gelu_any_f32")


def test_bytecode_alone_has_no_cubin(gelu_bundle: Path) -> None:
    with pytest.raises(ts.BundleError, match=r"no cubin of gelu_any_f32 for sm_90; it has bytecode alone"):
        ts.load(gelu_bundle, entry="gelu_any_f32").inspect("sm_90")


def test_what_cannot_be_loaded(tmp_path: Path) -> None:
    with pytest.raises(ts.UsageError, match=r"missing.mlir cannot be read"):
        ts.load(tmp_path / "missing.mlir")
    with pytest.raises(ts.UsageError, match=r"loaded as a function"):
        ts.load("kernels.py")
    with pytest.raises(ts.UsageError, match=r"cute_runtime.Kernel"):
        ts.load("kernel.cubin")
    with pytest.raises(ts.BundleError, match="no bundle in"):
        ts.load(tmp_path)
    with pytest.raises(ts.UsageError, match="a function has no entries"):
        ts.load(test_text_and_bytecode, entry="one")
    (tmp_path / "wrong.mlir").write_text("entry @k() { %x = nothing }")
    with pytest.raises(ts.SourceError, match=r"wrong.mlir:1:19"):
        ts.load(tmp_path / "wrong.mlir")
    (tmp_path / "empty.mlir").write_text("cuda_tile.module @m {\n}")
    with pytest.raises(ts.UsageError, match="no entries, so there is nothing to launch"):
        ts.load(tmp_path / "empty.mlir")
