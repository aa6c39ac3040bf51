"""The GEMM in CuTe for sm_90a: the instructions that its layouts ask for."""

from __future__ import annotations

import re

import pytest

from kernels_cute.products.linear_sm90 import Tiles, linear
from toolchain.cute.dsl import Kernel
from toolchain.cute.passes import PASSES


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    return linear("bf16", Tiles(64, 128, 64, 2))


@pytest.fixture(scope="module")
def ptx(kernel: Kernel) -> str:
    return kernel.ptx("sm_90a")


def test_a_stage_is_one_box_of_x_and_a_box_for_each_64_columns_of_the_weight(kernel: Kernel) -> None:
    assert str(kernel).count("cute_nvgpu.arch.copy.tma_load") == 1 + 128 // 64


def test_a_stage_is_four_products_of_a_warpgroup(kernel: Kernel, ptx: str) -> None:
    expanded = kernel.module.clone()
    PASSES["cute-expand-atoms"](expanded)
    assert str(expanded).count("cute.mma_atom_call") == 2 * 64 // 16  # the first stage of a tile, and the others
    assert "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16" in ptx
    assert ", p, 1, 1, 0, 1;" in ptx  # K lies side by side in x, N in the weight
    assert ".local" not in ptx


def test_the_bytes_of_a_stage_are_those_that_tma_brings(ptx: str) -> None:
    assert f"[%r{_register(ptx, 'expect_tx')}], {(64 + 128) * 64 * 2};" in ptx


def test_it_waits_for_the_launch_before_once_its_barriers_are_made(ptx: str) -> None:
    wait = ptx.index("griddepcontrol.wait")
    assert ptx.index("mbarrier.init") < wait < ptx.index("cp.async.bulk.tensor.2d.shared")
    assert "griddepcontrol.launch_dependents" not in ptx


def test_early_it_fetches_only_the_weight_before_that_and_lets_the_next_launch_in_behind_its_loads() -> None:
    ptx = linear("bf16", Tiles(64, 128, 64, 2, early=1)).ptx("sm_90a")
    wait, let = ptx.index("griddepcontrol.wait"), ptx.index("griddepcontrol.launch_dependents")
    loads = [found.start() for found in re.finditer(r"cp\.async\.bulk\.tensor\.2d\.shared", ptx)]
    assert [load < wait for load in loads] == [True] * 2 + [False] * 3  # a box for each 64 columns, and one of x
    assert max(loads) < let < ptx.index("wgmma.mma_async")


def _register(ptx: str, instruction: str) -> str:
    found = re.search(rf"{instruction}\S* _, \[%r(\d+)\]", ptx)
    assert found is not None
    return found[1]
