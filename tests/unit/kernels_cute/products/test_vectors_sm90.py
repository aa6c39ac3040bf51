"""Scales and biases of a tile in shared memory: each warpgroup holds those of its own tile."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from kernels_cute.products.scaled import SCALED
from kernels_cute.products.tiles_sm90 import WARPGROUP, Tiles
from kernels_cute.products.vectors_sm90 import Vectors
from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch
from toolchain.cute.executor import Race, run

M, N, K = 200, 328, 16
NAMES = ("x_scales", "weight_scales", "bias")


def held(tiles: Tiles, at: tuple[int, int], *, meet: bool = True) -> dict[str, Any]:
    """What each of two warpgroups finds, by name: (warpgroups, 256)."""
    epilogue = SCALED["linear_f8"]
    rng = np.random.default_rng(0)
    x, weight = (np.zeros((rows, K), ml_dtypes.float8_e4m3fn) for rows in (M, N))
    vectors = {name: rng.standard_normal(M if name == "x_scales" else N).astype("f4") for name in NAMES}
    bias = vectors["bias"] = vectors["bias"].astype(ml_dtypes.bfloat16)
    found = {name: np.zeros((2, 256), array.dtype) for name, array in vectors.items()}

    @cute.kernel(*epilogue.parameters("bf16"), *[cute.Array(dtype) for dtype in ("f32", "f32", "bf16")], threads=256)
    def kernel(*arguments: Any) -> None:
        operands = epilogue.operands(arguments)
        thread = arch.thread_idx()[0]
        consumer, worker = thread // WARPGROUP, thread % WARPGROUP
        kept = Vectors(tiles, epilogue.op, operands)
        kept.keep(kept.fetch(at, consumer, worker), consumer, worker)
        if meet:
            arch.sync_threads()
        mine = kept.of(consumer)
        for name, target in zip(NAMES, arguments[-3:], strict=True):
            other = (worker + 64) % WARPGROUP  # that another thread brought
            rows = other % (tiles.m // tiles.groups) + (0 if tiles.apart else consumer * 64)
            for turn in range(1 if name == "x_scales" else tiles.columns_held // WARPGROUP):
                index = rows if name == "x_scales" else other + turn * WARPGROUP
                target[consumer, other + turn * WARPGROUP] = mine[name][index]

    out = np.zeros((M, N), ml_dtypes.bfloat16)
    run(kernel, (x, vectors["x_scales"], weight, vectors["weight_scales"], bias, out, *found.values()))
    return {name: (vectors[name], array) for name, array in found.items()}


@pytest.mark.parametrize("apart", [False, True])
def test_each_warpgroup_finds_those_of_its_rows_and_of_all_columns(apart: bool) -> None:
    tiles = Tiles(128, 192, 128, 2, apart=apart, width=1)
    assert tiles.columns_held == 256
    for name, (array, found) in held(tiles, (1, 1)).items():
        for consumer in range(2):
            begin, count = (128, 128 if apart else 64) if name == "x_scales" else (192, 192)
            begin += 64 * consumer if name == "x_scales" and not apart else 0
            inside = np.arange(begin, begin + count).clip(max=len(array) - 1)
            np.testing.assert_array_equal(found[consumer, :count], array[inside])


def test_a_warpgroup_that_does_not_meet_before_it_reads_is_found() -> None:
    with pytest.raises(Race):
        held(Tiles(128, 192, 128, 2, width=1), (0, 0), meet=False)
