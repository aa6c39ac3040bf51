"""A residual that TMA brings to where the result goes: results, and what is said of a mistake."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from conformance.reference import float64
from kernels_cute.products.epilogues import EPILOGUES
from kernels_cute.products.linear_sm90 import linear, maps
from kernels_cute.products.tiles_sm90 import Tiles
from tests.unit.toolchain.cute.executor.mutate import without
from toolchain.cute import dsl as cute
from toolchain.cute.executor import Deadlock, Finding, MissingFence, MissingWait, Race, TensorMap, run

BF16: Any = ml_dtypes.bfloat16
EPILOGUE = EPILOGUES["linear_residual"]
TILES = Tiles(64, 128, 64, 2, 2)
ARCH = "cute_nvgpu.arch."


def operands(m: int, n: int, k: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    sizes = {"x": (m, k), "weight": (k, n), "bias": (n,), "residual": (m, n)}
    made: dict[str, Any] = {name: rng.standard_normal(size).astype(BF16) for name, size in sizes.items()}
    return {**made, "out": np.full((m, n), np.nan, BF16)}


def launch(kernel: cute.Kernel, given: dict[str, Any], tiles: Tiles, blocks: int = 1, ptx: str = "") -> None:
    made = [TensorMap(given[said.array], said.box, said.swizzle) for said in maps(tiles, EPILOGUE)]
    assert not run(kernel, (*given.values(), *made), blocks, ptx=ptx).conflicts


def check(out: Any, given: dict[str, Any]) -> None:
    exact = float64.linear_residual(given["x"], given["weight"], given["bias"], given["residual"])
    assert np.abs(out.astype(np.float64) - exact).max() <= 2.0**-8 * np.abs(exact).max()


@pytest.mark.parametrize(
    "tiles",
    [
        Tiles(64, 64, 64, 2, 1),
        TILES,
        Tiles(64, 192, 64, 2, 2),  # a part is elsewhere in each tile
        Tiles(128, 128, 64, 2, 1),  # two warpgroups free a part together
        Tiles(64, 192, 64, 2, 2, apart=True),  # two rings
        Tiles(64, 64, 64, 2, 3, apart=True),  # more parts than a tile has: of several tiles at once
        Tiles(64, 128, 64, 2, 2, apart=True, paired=True),
        Tiles(64, 96, 64, 2, 2),  # parts of 32 columns
    ],
)
@pytest.mark.parametrize("as_ptx", [False, True])
def test_it_agrees_with_float64(tiles: Tiles, as_ptx: bool) -> None:
    kernel, given = linear("bf16", tiles, epilogue=EPILOGUE), operands(200, 200, 72)
    launch(kernel, given, tiles, tiles.blocks, kernel.ptx("sm_90a") if as_ptx else "")
    check(given["out"], given)


@pytest.mark.parametrize("tiles", [TILES, Tiles(64, 64, 64, 2, 2, apart=True)])
def test_the_output_may_be_the_residual(tiles: Tiles) -> None:
    given = operands(200, 136, 72)
    aliased = {**given, "residual": given["residual"].copy()}
    aliased["out"] = aliased["residual"]
    launch(linear("bf16", tiles, epilogue=EPILOGUE), aliased, tiles, 2)
    check(aliased["out"], given)


@pytest.fixture(scope="module")
def kernel() -> cute.Kernel:
    return linear("bf16", TILES, epilogue=EPILOGUE)


@pytest.mark.parametrize(
    ("name", "which", "wanted"),
    [
        (f"{ARCH}mbarrier.wait", 1, (Finding, Race)),  # of the thread that loads: the part is still being stored
        (f"{ARCH}mbarrier.wait", -2, MissingWait),  # the residual may not be there
        (f"{ARCH}mbarrier.arrive", -1, Deadlock),  # a part is never given back
        (f"{ARCH}mbarrier.arrive", -2, Deadlock),  # nor is the last of a tile
        (f"{ARCH}copy.bulk_wait_group", 0, (MissingWait, Race)),
        (f"{ARCH}fence.proxy_async", 0, MissingFence),
        (f"{ARCH}barrier", 0, (MissingWait, Race)),  # TMA stores what other warps have not written
    ],
)
def test_a_missing_operation_is_named(kernel: cute.Kernel, name: str, which: int, wanted: Any) -> None:
    with pytest.raises(wanted) as found:
        launch(without(kernel, name, which), operands(330, 256, 136), TILES)
    assert "kernels_cute/" in found.value.site.location


@pytest.mark.parametrize("tiles", [Tiles(64, 192, 64, 2, 2), Tiles(64, 160, 64, 2, 2, apart=True)])
def test_a_tile_of_a_plain_store_may_begin_with_any_part(tiles: Tiles) -> None:
    given = {name: array for name, array in operands(200, 384, 72).items() if name != "residual"}
    made = [TensorMap(given[said.array], said.box, said.swizzle) for said in maps(tiles)]
    assert not run(linear("bf16", tiles), (*given.values(), *made), 1).conflicts
    check(given["out"], {**given, "residual": np.zeros((200, 384), BF16)})
