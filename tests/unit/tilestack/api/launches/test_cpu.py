"""Entries of PTX on a CPU: by the kernel that the PTX was made of. The interpreter's are in test_kernel.py."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import kernels_cute
import tilestack as ts
from toolchain.bundles import bundle


@pytest.mark.needs("toolchain")  # llvmlite makes the PTX
@pytest.mark.parametrize("with_ir", [True, False])
def test_ptx_runs_thread_by_thread_if_its_kernel_is_there(with_ir: bool, tmp_path: Path) -> None:
    spec = next(s for s in kernels_cute.SOURCE.entries() if s.symbol == "layernorm_any_f32")
    artifact = kernels_cute.SOURCE.artifact(spec)
    artifact = artifact if with_ir else replace(artifact, ir=b"")
    root = bundle.write(tmp_path / "bundle", [bundle.Compiled(spec, artifact, {})], {}).root
    kernel = ts.load(root)
    x = np.random.default_rng(0).standard_normal((2, 40), np.float32)
    gain, shift = np.full(40, 2, np.float32), np.full(40, 3, np.float32)
    out = np.zeros((40, 2), np.float32).T
    named = {"x": x, "weight": gain, "bias": shift, "eps": 1e-5, "out": out}
    arguments = [named[p.name] for p in kernel.parameters]
    if not with_ir:
        with pytest.raises(ts.LaunchError, match="layernorm_any_f32 is ptx, and the bundle has no kernel"):
            kernel(*arguments, on="cpu")
        return
    kernel(*arguments, on="cpu")
    exact = x.astype(np.float64) - x.mean(axis=1, keepdims=True, dtype=np.float64)
    exact /= np.sqrt((exact**2).mean(axis=1, keepdims=True) + 1e-5)
    assert np.abs(out - (2 * exact + 3)).max() < 1e-5
