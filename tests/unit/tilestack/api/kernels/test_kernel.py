from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tilestack as ts
from tilestack.api.arguments.arrays import Array
from tilestack.api.kernels.kernel import place


def test_what_a_kernel_says_of_itself(scaled: Path) -> None:
    kernel = ts.load(scaled)
    assert repr(kernel) == "<kernel scaled(x: f32[?, ?], factor: f32, out: f32[?, ?] written)>"
    kernel.verify()
    assert "entry @scaled(" in kernel.disassemble() and "mulf" in kernel.disassemble()
    assert [p.name for p in kernel.parameters if p.written] == ["out"]


def test_only_what_is_written_is_copied_back(scaled: Path) -> None:
    """Arrays with gaps are copied; a read-only input may have them too."""
    x = np.arange(24, dtype=np.float32).reshape(3, 8)[:, ::2]
    x.flags.writeable = False
    out = np.zeros((4, 3), np.float32).T
    ts.load(scaled)[3](x, 0.5, out, on="cpu")
    assert (out == x / 2).all()


def test_in_place(scaled: Path) -> None:
    x = np.ones((3, 4), np.float32)
    ts.load(scaled)[3](x, 2.0, x, on="cpu")
    assert (x == 2).all()


SUMS = """\
  %sum = reduce %row dim=1 identities=[0.0 : f32] : !row -> tile<1xf32> (%a: tile<f32>, %b: tile<f32>) {
    %both = addf %a, %b : tile<f32>
    yield %both : tile<f32>
  }
  %column = reshape %sum : tile<1xf32> -> tile<1x1xf32>
  %sums = broadcast %column : tile<1x1xf32> -> !row
  %one ="""


def test_undefined_behaviour_is_an_error_with_its_place(scaled: Path) -> None:
    out = np.zeros((2, 4), np.float32)
    scaled.write_text(scaled.read_text().replace("mulf %row", "mulf %sums").replace("  %one =", SUMS))
    scaled.write_text(scaled.read_text().replace(", padding_value = zero", ""))
    with pytest.raises(ts.SanitizerError, match=r"scaled.mlir:\d+:\d+"):
        ts.load(scaled)[2](np.ones((2, 3), np.float32), 2.0, out, on="cpu")


def test_a_kernel_of_a_file_has_no_grid_of_its_own(scaled: Path) -> None:
    kernel, x = ts.load(scaled), np.ones((2, 4), np.float32)
    with pytest.raises(ts.LaunchError, match="over how many blocks"):
        kernel(x, 1.0, x, on="cpu")
    with pytest.raises(ts.LaunchError, match="takes no arguments by name, and it was given TILE"):
        kernel[2](x, 1.0, x, on="cpu", TILE=4)
    with pytest.raises(ts.UsageError, match="no launch runs on 'gpu'"):
        kernel[2](x, 1.0, x, on="gpu")
    with pytest.raises(ts.UsageError, match="sm_1"):
        kernel.inspect("sm_1")


def test_arrays_on_a_gpu_are_no_arguments_of_the_interpreter(scaled: Path) -> None:
    class OnGPU:
        device = type("Device", (), {"id": 0})
        __cuda_array_interface__ = {"typestr": "<f4", "shape": (2, 4), "data": (4096, False), "version": 3}

    with pytest.raises(ts.LaunchError, match="x is on cuda:0, and the launch on the CPU"):
        ts.load(scaled)[2](OnGPU(), 1.0, np.ones((2, 4), np.float32), on="cpu")


def test_where_a_launch_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    host, device = Array("float32", (1,), (1,), 0, None), Array("float32", (1,), (1,), 0, 2)
    monkeypatch.setattr("toolchain.runtime.gpus", lambda: ("a GPU",))
    assert place("auto", [host, None]) == 0
    assert place("auto", [host, device]) == 2
    assert place("cpu", [host]) is None
    assert (place("cuda", [host]), place("cuda", [device]), place("cuda:1", [host])) == (0, 2, 1)
    monkeypatch.setattr("toolchain.runtime.gpus", tuple)
    assert place("auto", [host]) is None
