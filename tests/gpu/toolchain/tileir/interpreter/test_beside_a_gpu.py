"""What the interpreter gives beside a GPU, for what is no operation on single elements: docs/agreement.md has those."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tilestack as ts
from cute_runtime.device import executor

pytestmark = pytest.mark.needs("gpu", "interpreter", "toolchain")

SCAN = """\
cuda_tile.module @m {
  entry @k(%out: tile<ptr<f32>>) {
    %values = constant <f32: [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0]> : tile<8xf32>
    %scanned = scan %values dim=0 reverse=REVERSE identities=[0.0 : f32] : tile<8xf32> -> tile<8xf32>
    (%before: tile<f32>, %current: tile<f32>) {
      %half = constant <f32: 0.5> : tile<f32>
      %less = mulf %before, %half : tile<f32>
      %sum = addf %less, %current : tile<f32>
      yield %sum : tile<f32>
    }
    %i = iota : tile<8xi32>
    %out_1 = reshape %out : tile<ptr<f32>> -> tile<1xptr<f32>>
    %outs = broadcast %out_1 : tile<1xptr<f32>> -> tile<8xptr<f32>>
    %at = offset %outs, %i : tile<8xptr<f32>>, tile<8xi32> -> tile<8xptr<f32>>
    %t = store_ptr_tko weak %at, %scanned : tile<8xptr<f32>>, tile<8xf32> -> token
    return
  }
}
"""
PRINT = """\
cuda_tile.module @m {
  entry @k() {
    %i8 = constant <i8: [-5, 7]> : tile<2xi8>
    %i16 = constant <i16: [-5, 7]> : tile<2xi16>
    %i32 = constant <i32: [[-5, 7], [1, 2]]> : tile<2x2xi32>
    %i1 = constant <i1: [1, 0]> : tile<2xi1>
    %f32 = constant <f32: [1.5, -0.0]> : tile<2xf32>
    %nan = constant <f32: 0x7FC00000> : tile<f32>
    %f16 = constant <f16: [1.5, -2.0]> : tile<2xf16>
    %t0 = print_tko "%d %u|", %i8, %i8 : tile<2xi8>, tile<2xi8> -> token
    %t1 = print_tko "%d %u %x|", %i16, %i16, %i16 token=%t0 : tile<2xi16>, tile<2xi16>, tile<2xi16> -> token
    %t2 = print_tko "%5d %.3d|", %i32, %i32 token=%t1 : tile<2x2xi32>, tile<2x2xi32> -> token
    %t3 = print_tko "%d %f %g %e %a|", %i1, %f32, %f32, %f32, %f32 token=%t2
      : tile<2xi1>, tile<2xf32>, tile<2xf32>, tile<2xf32>, tile<2xf32> -> token
    %t4 = print_tko "%05.1f %f %g 100%%\\0A", %nan, %f16, %f16 token=%t3 : tile<f32>, tile<2xf16>, tile<2xf16> -> token
    return
  }
}
"""


def scanned(folder: Path, reverse: str, on: str) -> list[float]:
    """What `k` of SCAN leaves, on that device."""
    path = folder / f"scan-{reverse}.mlir"
    path.write_text(SCAN.replace("REVERSE", reverse))
    out = np.zeros(8, np.float32)
    ts.load(path)[(1,)](out, on=on)
    return out.tolist()


def printed(folder: Path, on: str) -> None:
    """Prints what PRINT prints, on that device."""
    path = folder / "print.mlir"
    path.write_text(PRINT)
    ts.load(path)[(1,)](on=on)
    if on == "cuda":
        executor().synchronize()  # then a GPU's prints are written


@pytest.mark.parametrize("reverse", ["false", "true"])
def test_a_scan_that_does_not_commute(reverse: str, tmp_path: Path) -> None:
    assert scanned(tmp_path, reverse, "cuda") == scanned(tmp_path, reverse, "cpu")


def test_what_is_printed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    printed(tmp_path, "cpu")
    here = capfd.readouterr().out
    printed(tmp_path, "cuda")
    assert capfd.readouterr().out == here
