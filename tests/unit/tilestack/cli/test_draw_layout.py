"""`tilestack draw-layout`: the command; tests/unit/toolchain/cute/test_draw.py has the pictures."""

from __future__ import annotations

from pathlib import Path

from ..conftest import Run


def test_text_to_standard_output_and_svg_to_a_file(run: Run, tmp_path: Path) -> None:
    shown = run("draw-layout", "(2,2):(1,2)")
    assert (shown.code, shown.out.splitlines()[-1]) == (0, "1 1 3")
    assert run("draw-layout", "mma.m16n8k8.f32.tf32", "--operand", "a", "--svg", tmp_path / "a.svg").code == 0
    assert "T31V1" in run("draw-layout", "ldmatrix.x1").out
    assert "T31V3" in (tmp_path / "a.svg").read_text()


def test_bad_input_is_said_with_what_is_right(run: Run) -> None:
    odd = run("draw-layout", "(2,2:(1,2)")
    assert odd.code == 2 and "written as (4,8):(8,1)" in odd.err
    assert "no MMA atom 'mma.m1'" in run("draw-layout", "mma.m1").err
