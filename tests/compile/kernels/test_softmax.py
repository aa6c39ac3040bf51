"""Rows that the conformance cases do not draw."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest

from toolchain.bundles.bundle import Compiled, write
from toolchain.caching.cache import Cache
from toolchain.compiling.cubin import inspect
from toolchain.compiling.pipeline import compile_entries
from toolchain.contract.targets import select
from toolchain.knobs import cache_dir
from toolchain.runtime import Launcher, open_executor

REGISTERS = 65536  # of an sm_90 multiprocessor, of 32 bits each


@pytest.mark.parametrize("module", ["kernels_mlir", "kernels_py"])
def test_a_row_far_below_zero_still_adds_up_to_one(module: str, tmp_path: Path) -> None:
    source = importlib.import_module(module).SOURCE
    entries = [e for e in source.entries() if (e.op, e.dtype) == ("softmax", "f32")]
    made = write(tmp_path / "bundle", [Compiled(e, source.artifact(e), {}) for e in entries], {})
    executor = open_executor("cpu")
    for width in (8, 1500):  # a row in registers, and one that is walked, the last of whose tiles is padded
        x, out = executor.from_numpy(np.full((1, width), -3e38, np.float32)), executor.empty((1, width), "f32")
        Launcher(made, source.name, executor)("softmax", "f32", x=x, out=out)
        assert np.allclose(out.numpy(), 1 / width, rtol=1e-6), width


@pytest.mark.needs("toolchain")
@pytest.mark.parametrize("module", ["kernels_mlir", "kernels_py"])
def test_two_blocks_of_wide_rows_fit_a_multiprocessor(module: str) -> None:
    """They keep their rows in registers in 16 bits. A compiler that removed the added 0 would keep the values in
    f32."""
    contiguous = [e for e in importlib.import_module(module).SOURCE.entries() if e.kernel == "softmax_contiguous"]
    made = compile_entries([(module, spec) for spec in contiguous], select(["sm_90"]), Cache(cache_dir()), jobs=2)
    assert not made.failures
    assert len(made.compiled) == 2
    for entry in made.compiled:
        (use,) = inspect(entry.cubins["sm_90"])
        threads = 32 * entry.spec.hints["sm_90"]["num_worker_warps"]
        assert use.spills == 0
        assert 2 * threads * use.registers <= REGISTERS
