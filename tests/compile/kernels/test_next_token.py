"""What the kernels make of logits that are no numbers. The conformance cases have none."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest

from conformance.reference.float64 import PART
from toolchain.bundles.bundle import Compiled, write
from toolchain.runtime import Launcher, open_executor

WIDTH = 2 * PART + 5


@pytest.mark.parametrize("module", ["kernels_mlir", "kernels_py"])
def test_nan_shows_in_its_part_and_the_token_stays_in_the_vocabulary(module: str, tmp_path: Path) -> None:
    source = importlib.import_module(module).SOURCE
    entries = [e for e in source.entries() if e.op in ("argmax_parts", "next_token") and e.dtype == "f32"]
    made = write(tmp_path / "bundle", [Compiled(e, source.artifact(e), {}) for e in entries], {})
    executor = open_executor("cpu")
    launch = Launcher(made, source.name, executor)

    logits = np.linspace(-1, 1, WIDTH, dtype=np.float32) * np.ones((5, 1), np.float32)
    logits[0, 7] = np.nan  # the likeliest is in another part
    logits[1, -1] = np.nan  # where the likeliest would be
    logits[2] = np.nan
    logits[3, PART] = np.inf
    logits[4, PART] = -np.inf  # never the likeliest
    values, indices = executor.empty((5, 3), "f32"), executor.empty((5, 3), "i32")
    tokens, positions = executor.empty((5,), "i32"), executor.from_numpy(np.arange(5, dtype=np.int32))
    launch("argmax_parts", "f32", x=executor.from_numpy(logits), values=values, indices=indices)
    launch("next_token", "f32", values=values, indices=indices, tokens=tokens, positions=positions)

    with np.errstate(invalid="ignore"):
        parts = [logits[:, at : at + PART].max(axis=1) for at in range(0, WIDTH, PART)]  # NaN if one of them is
    assert np.array_equal(values.numpy(), np.stack(parts, axis=1), equal_nan=True)
    assert np.isfinite(values.numpy()).all(axis=1).tolist() == [False, False, False, False, True]
    assert ((tokens.numpy() >= 0) & (tokens.numpy() < WIDTH)).all()
    assert tokens.numpy()[[0, 3, 4]].tolist() == [WIDTH - 1, PART, WIDTH - 1]
    assert positions.numpy().tolist() == [1, 2, 3, 4, 5]
