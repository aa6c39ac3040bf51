"""The examples of cute_runtime: kernels run on the CPU behind a driver that stands for NVIDIA's."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from toolchain.compiling.cubin import is_cubin
from toolchain.knobs import ROOT

from .conftest import Driver
from .fake import FakeGPU
from .host_kernel import HostKernel

FOLDER = ROOT / "examples" / "cute_runtime"


class Array:
    """What CuPy's arrays are to a launch."""

    def __init__(self, values: np.ndarray[Any, Any]) -> None:
        self.values, self.size = values, values.size
        self.__cuda_array_interface__ = {"data": (values.ctypes.data, False), "stream": 1}

    def __getitem__(self, index: Any) -> Any:
        return self.values[index]


def run(name: str, monkeypatch: pytest.MonkeyPatch, *words: object) -> None:
    monkeypatch.setattr(sys, "argv", [name, *map(str, words)])
    runpy.run_path(str(FOLDER / name), run_name="__main__")


def loaded(fake: FakeGPU, mlir: str) -> None:
    kernel = HostKernel((FOLDER / mlir).read_text())
    fake.kernel, fake.sizes = kernel, kernel.sizes


@pytest.mark.needs("toolchain")
def test_a_gemm_on_numpy(gpu: FakeGPU, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    loaded(gpu, "gemm.mlir")
    run("gemm.py", monkeypatch)
    said = capsys.readouterr().out
    assert float(said.removeprefix("largest difference from numpy: ")) < 1e-4  # 50 products of numbers around 1, in f32
    assert [form[:4] for form, _ in gpu.launched] == [(5, 7, 1, 256)]


@pytest.mark.needs("toolchain")
def test_a_cubin_is_compiled_and_launched_on_arrays_of_cupy(
    gpu: FakeGPU,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    cubin = tmp_path / "scale.cubin"
    run("compile_mlir.py", monkeypatch, FOLDER / "scale.mlir", "sm_90a", cubin)
    assert is_cubin(cubin.read_bytes())
    arrays: list[Array] = []

    def arange(count: int, dtype: Any) -> Array:
        arrays.append(Array(np.arange(count, dtype=dtype)))
        return arrays[-1]

    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(arange=arange, float32=np.float32))
    loaded(gpu, "scale.mlir")
    run("launch_cubin.py", monkeypatch, cubin)
    assert np.array_equal(arrays[0].values, 2 * np.arange(1000, dtype=np.float32))
    assert capsys.readouterr().out.splitlines()[-1] == "[0. 2. 4. 6.]"


@pytest.mark.needs("g++")
def test_a_program_in_cpp(build: Callable[..., Path], driver: Driver, tmp_path: Path) -> None:
    (tmp_path / "scale.cubin").write_bytes(b"params 8 4 4\0")
    lines = driver.run(build(FOLDER / "scale.cpp"), str(tmp_path / "scale.cubin")).splitlines()
    (launch,) = (line for line in lines if line.startswith("launch"))
    assert launch.startswith("launch scale grid 1,1,1 block 128,1,1 shared 0 with ")
    assert launch.endswith(" 00000003 40000000")  # 3 and 2.0f
    assert [line for line in lines if line in ("Stub, sm_90", "1", "2", "3")] == ["Stub, sm_90", "1", "2", "3"]
