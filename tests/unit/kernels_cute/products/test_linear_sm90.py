"""The GEMM for sm_90a on the executor: its results, and what is said of it with a mistake."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import kernels_cute.products.linear_sm90 as module
from kernels_cute.products.epilogues import EPILOGUES
from kernels_cute.products.linear_sm90 import Tiles, linear
from kernels_cute.products.linear_sm90 import maps as maps_of
from tests.unit.kernels_cute.heads import run_head
from tests.unit.kernels_cute.products.test_linear import error, operands
from tests.unit.toolchain.cute.executor.mutate import without
from tests.unit.toolchain.cute.executor.ptx import mutate
from toolchain.cute import dsl as cute
from toolchain.cute.executor import (
    Deadlock,
    Finding,
    MissingFence,
    MissingWait,
    Race,
    Report,
    TensorMap,
    Uninitialised,
    run,
)
from toolchain.errors import UsageError

TILES = Tiles(64, 64, 64, 2, 1)
ARCH = "cute_nvgpu.arch."


@pytest.fixture(scope="module")
def kernel() -> cute.Kernel:
    return linear("bf16", TILES)


def launch(kernel: cute.Kernel, given: list[Any], tiles: Tiles = TILES, blocks: int = 1, ptx: str = "") -> Report:
    arrays: dict[str, Any] = dict(zip(("x", "weight", "bias", "out"), given, strict=True))
    maps = [TensorMap(arrays[said.array], said.box, said.swizzle) for said in maps_of(tiles)]
    return run(kernel, (*given, *maps), blocks, ptx=ptx)


@pytest.mark.parametrize("blocks", [1, 3])
def test_it_agrees_with_float64(kernel: cute.Kernel, blocks: int) -> None:
    # Remainders in all three, four tiles for one or three blocks, and the ring goes round.
    given = operands(70, 72, 200)
    report = launch(kernel, given, blocks=blocks)
    assert error(*given) <= 1
    assert not report.conflicts


@pytest.mark.parametrize(
    ("tiles", "shape"),
    [
        (Tiles(128, 128, 64, 3, 1), (100, 128, 64)),
        (Tiles(128, 64, 64, 2, 1, True), (130, 72, 72)),  # a warpgroup has two atoms along M, and each its own tile
        (Tiles(64, 128, 64, 3, 2, True), (70, 136, 200)),
    ],
)
def test_two_warpgroups_compute(tiles: Tiles, shape: tuple[int, int, int]) -> None:
    given = operands(*shape)
    launch(linear("bf16", tiles), given, tiles)
    assert error(*given) <= 1


@pytest.mark.parametrize("group", [1, 2])
def test_blocks_walk_some_rows_of_tiles_together(kernel: cute.Kernel, group: int) -> None:
    """Of three rows of tiles a group may have one left over."""
    tiles = Tiles(64, 64, 64, 2, 1, group=group)
    made, given = linear("bf16", tiles), operands(140, 136, 64)
    launch(made, given, tiles, blocks=2)
    assert error(*given) <= 1
    assert made.ptx("sm_90a") != kernel.ptx("sm_90a")


def test_a_weight_whose_columns_lie_apart_has_no_tile_that_begins_within_64() -> None:
    with pytest.raises(UsageError, match="is no tile of logits"):
        linear("bf16", Tiles(64, 160, 64, 2), epilogue=EPILOGUES["logits"])


@pytest.fixture(scope="module")
def ptx(kernel: cute.Kernel) -> str:
    return kernel.ptx("sm_90a")


def test_its_ptx_computes_the_same(kernel: cute.Kernel, ptx: str) -> None:
    ir, given = operands(70, 72, 200), operands(70, 72, 200)
    launch(kernel, ir)
    assert not launch(kernel, given, ptx=ptx).conflicts
    assert (ir[-1].view(np.uint16) == given[-1].view(np.uint16)).all()


@pytest.mark.parametrize(
    ("opcode", "which", "wanted"),
    [
        ("bar.sync", 0, Race),
        ("mbarrier.init.", 1, Uninitialised),
        ("fence.mbarrier_init", 0, MissingFence),
        ("mbarrier.try_wait", 0, MissingWait),
        ("mbarrier.try_wait", 1, MissingWait),
        ("mbarrier.arrive.release", 0, Deadlock),
        ("wgmma.fence", 0, MissingFence),
        ("wgmma.wait_group", 0, MissingWait),  # registers are read
        ("wgmma.wait_group", 1, MissingWait),  # shared memory is written
        ("wgmma.commit_group", 0, MissingWait),
        ("fence.proxy", 0, MissingFence),
        ("cp.async.bulk.wait_group", 1, MissingWait),
    ],
)
def test_what_its_ptx_lacks_is_named(kernel: cute.Kernel, ptx: str, opcode: str, which: int, wanted: Any) -> None:
    lines = 2 if opcode.endswith("_wait") else 1  # the branch back too
    with pytest.raises(wanted) as found:
        launch(kernel, operands(70, 72, 200), ptx=mutate.without(ptx, opcode, which, lines))
    assert "linear_sm90.ptx:" in found.value.site.location


MISTAKES = [
    ("nvvm.barrier0", 0, Race),
    (f"{ARCH}mbarrier.init", 1, Uninitialised),
    (f"{ARCH}mbarrier.init_fence", 0, MissingFence),
    (f"{ARCH}mbarrier.wait", 0, MissingWait),  # of the loader: it overwrites
    (f"{ARCH}mbarrier.wait", 1, MissingWait),  # of the computing warps: they read
    (f"{ARCH}mbarrier.arrive", 0, Deadlock),
    (f"{ARCH}mbarrier.arrive_expect_tx", 0, Deadlock),
    (f"{ARCH}copy.tma_load", 1, Deadlock),
    (f"{ARCH}wgmma.commit_group", 0, MissingWait),
    (f"{ARCH}wgmma.wait_group", 0, MissingWait),
    (f"{ARCH}barrier", 0, MissingWait),  # TMA may still read what is written anew
    (f"{ARCH}copy.bulk_wait_group", 0, MissingWait),
    (f"{ARCH}copy.bulk_wait_group_all", 0, MissingWait),  # the last tile leaves shared memory
    (f"{ARCH}fence.proxy_async", 0, MissingFence),
    (f"{ARCH}barrier", 1, (Uninitialised, Race)),  # TMA reads what other threads have not written yet
]


@pytest.mark.parametrize(("name", "which", "wanted"), MISTAKES)
def test_a_missing_operation_is_named(kernel: cute.Kernel, name: str, which: int, wanted: Any) -> None:
    with pytest.raises(wanted) as found:
        launch(without(kernel, name, which), operands(128, 64, 256))
    assert "kernels_cute/" in found.value.site.location


def test_a_result_that_is_used_before_its_wait(kernel: cute.Kernel) -> None:
    """With one step of K nobody overwrites an operand: the sums themselves are too early."""
    with pytest.raises(MissingWait, match=r"a register is used that cute_nvgpu.arch.mma.wgmma at \S+ still writes"):
        launch(without(kernel, f"{ARCH}wgmma.wait_group", 1), operands(64, 64, 64))


def test_the_head_of_the_module_runs_it() -> None:
    given = operands(64, 64, 40)
    run_head(module, **dict(zip(("x", "weight", "bias", "out"), given, strict=True)))
    assert error(*given) <= 1


PAIRED = Tiles(64, 64, 64, 2, paired=True)


@pytest.fixture(scope="module")
def pairs() -> cute.Kernel:
    return linear("bf16", PAIRED)


@pytest.mark.parametrize(
    ("tiles", "rows"),
    [
        (PAIRED, 200),  # four rows of tiles, of which the last two blocks share one that is there and one that is not
        (Tiles(64, 192, 64, 2, apart=True, paired=True), 70),
    ],
)
@pytest.mark.parametrize("blocks", [2, 4])
def test_blocks_share_the_weight(tiles: Tiles, rows: int, blocks: int) -> None:
    made, (ir, ptx) = linear("bf16", tiles), (operands(rows, 72, 200) for _ in range(2))
    assert not launch(made, ir, tiles, blocks).conflicts
    launch(made, ptx, tiles, blocks, made.ptx("sm_90a"))
    assert error(*ir) <= 1
    assert (ir[-1].view(np.uint16) == ptx[-1].view(np.uint16)).all()


def test_blocks_share_a_weight_of_rows() -> None:
    """The weight (V, C) of logits lies side by side along C, so a block loads half of its rows."""
    x, weight, _, out = operands(70, 72, 200)
    rows, epilogue = np.ascontiguousarray(weight.T), EPILOGUES["logits"]
    arrays = {"x": x, "weight": rows, "out": out}
    maps = [TensorMap(arrays[said.array], said.box, said.swizzle) for said in maps_of(PAIRED, epilogue)]
    run(linear("bf16", PAIRED, epilogue=epilogue), (x, rows, out, *maps), 2)
    assert error(x, weight, np.zeros(72, x.dtype), out) <= 1


@pytest.mark.parametrize(
    ("name", "which", "wanted"),
    [
        (f"{ARCH}cluster.wait", 0, (Race, Finding)),  # an mbarrier of the other block may not be made yet
        (f"{ARCH}copy.tma_load_multicast", 0, Deadlock),
        (f"{ARCH}mbarrier.arrive_remote_read", 0, Deadlock),
        (f"{ARCH}mbarrier.wait", 0, Finding),  # of the loader: its phase has not ended
        (f"{ARCH}cluster.wait", 1, Finding),  # the other block may have ended
    ],
)
def test_what_a_pair_lacks_is_named(pairs: cute.Kernel, name: str, which: int, wanted: Any) -> None:
    with pytest.raises(wanted):
        launch(without(pairs, name, which), operands(128, 64, 256), PAIRED, 2)
