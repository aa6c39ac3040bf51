"""The GEMM of the examples, on a GPU."""

from __future__ import annotations

import runpy

import pytest

from toolchain.knobs import ROOT


@pytest.mark.needs("gpu", "toolchain")
def test_the_gemm_is_numpys(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / "cute_runtime" / "gemm.py"), run_name="__main__")
    said = capsys.readouterr().out
    assert float(said.removeprefix("largest difference from numpy: ")) < 1e-4  # 50 products of numbers around 1, in f32
