"""Recordings of kernels that nothing compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformance.ops.compare import bound_for
from tests.unit.cubins import cubin
from tilestack.own.new import TEMPLATE
from tilestack.own.problem import Problem
from tilestack.own.recording import Cell, Expected, Files, Kept, Launch, Recording, drawn, write
from tilestack.own.sampled import sample
from tilestack.own.table import load
from toolchain.contract.artifact import Form

MakeRecording = Callable[..., Recording]


@pytest.fixture
def recorded(tmp_path: Path) -> MakeRecording:
    """Writes a recording of the template's op in f32, f16 and bf16. `codes`: of a dtype the machine code, where it is
    not its name. `changed`: of a launch. `dtypes`: that are in it."""
    (op,) = load(TEMPLATE / "matrix.toml")

    def make(
        name: str, codes: Mapping[str, bytes] | None = None, changed: Callable[[Launch], Launch] = lambda one: one,
        dtypes: tuple[str, ...] = ("f32", "f16", "bf16"), targets: tuple[str, ...] = ("sm_90",),
    ) -> Recording:  # fmt: skip
        files, cells = Files(), list[Cell]()
        for dtype in dtypes:
            problem = Problem(replace(op, sizes=[{"M": 2, "N": 3}]), dtype, {"M": 2, "N": 3}, 1)
            made = files.add(cubin((codes or {}).get(dtype, dtype.encode()), note=name))
            cubins = dict.fromkeys(targets, made)
            parameters: list[Mapping[str, Any]] = [{"array": 0}, {"array": 2}, {"number": ["f32", 0.75]}]
            launch = Launch("axpy", Form(version="13.4"), (2, 1, 1), files.add(name.encode()), cubins,
                            parameters)  # fmt: skip
            known = {**problem.inputs, **problem.outputs()}
            arrays = [Kept(key, array.shape, array.dtype.name, "", key == "out") for key, array in known.items()]
            exact = 0.75 * problem.inputs["x"].astype(np.float64) + problem.inputs["y"].astype(np.float64)
            bound = bound_for("axpy", dtype, exact, exact, row=problem.tolerance("out")[1])
            kept = Expected(files.add(exact.reshape(-1)[sample(exact.size)].tobytes()), bound)
            cells.append(Cell("axpy", dtype, problem.sizes, True, True, drawn(problem), arrays, [changed(launch)],
                              {"out": kept}))  # fmt: skip
        note = {"commit": f"{name} commit", "changes": ""}
        return write(tmp_path / name, TEMPLATE / "matrix.toml", 1, targets, {}, cells, files, note)

    return make
