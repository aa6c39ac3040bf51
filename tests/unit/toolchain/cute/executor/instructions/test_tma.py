"""TMA: boxes, their edges, and what waits for them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.unit.toolchain.cute.executor.mutate import without
from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch
from toolchain.cute.dsl.ring import Barriers
from toolchain.cute.executor import Finding, Misaligned, MissingFence, MissingWait, Race, TensorMap, run
from toolchain.cute.layout import Layout
from toolchain.errors import UsageError

BOX = (8, 32)
BYTES = 8 * 32 * 4
Array = np.ndarray[Any, Any]


def load(*, waits: bool = True, offset: int = 0, mask: int = 0) -> cute.Kernel:
    """The box at (-2, 24) to an array of the same size."""

    @cute.kernel(cute.TensorMap(), cute.Array("f32"), threads=32)
    def made(source: Any, target: Any) -> None:
        thread = arch.thread_idx()[0]
        room = cute.shared_tensor("f32", Layout(BYTES // 4 + offset), align=128)
        start = cute.address(cute.local_tile(room, (max(offset, 1),), (1 if offset else 0,)))
        tile = cute.view(cute.pointer(start, "f32", "smem", 16), Layout(BOX, (32, 1)))
        full = Barriers(1, 1)
        with cute.when(cute.same(thread, 0)):
            full.init()
            arch.instruction("fence.proxy_async")
            full.expect(0, BYTES)
            more = [mask] if mask else []
            name = "copy.tma_load_multicast" if mask else "copy.tma_load"
            row = cute.scalar(-2, "i32")
            arch.instruction(name, cute.address(tile), source, full.at(0), *more, 24, row)
        arch.instruction("warp_sync")
        if waits:
            full.wait(0)
        for row in range(8):
            target[row, thread] = tile[row, thread]

    return made


@pytest.mark.parametrize("fill", ["zero", "nan"])
@pytest.mark.parametrize("mask", [0, 1])
def test_a_box_over_the_edges(fill: str, mask: int) -> None:
    source = np.arange(20 * 48, dtype=np.float32).reshape(20, 48)
    target = np.zeros(BOX, np.float32)
    run(load(mask=mask), (TensorMap(source, BOX, fill=fill), target))
    wanted = np.full(BOX, np.nan if fill == "nan" else 0, np.float32)
    wanted[2:, :24] = source[:6, 24:]
    np.testing.assert_array_equal(target, wanted)


def test_a_box_that_is_not_waited_for() -> None:
    with pytest.raises(MissingWait, match=r"copy.tma_load at .* \(TMA for the mbarrier at .*\) still writes"):
        run(load(waits=False), (TensorMap(np.zeros((20, 48), np.float32), BOX), np.zeros(BOX, np.float32)))


def test_a_box_at_a_wrong_address() -> None:
    with pytest.raises(Misaligned, match="an address that is no multiple of 128"):
        run(load(offset=4), (TensorMap(np.zeros((20, 48), np.float32), BOX), np.zeros(BOX, np.float32)))


@pytest.mark.parametrize("mask", [2, 3, -1])
def test_a_mask_of_blocks_that_the_cluster_does_not_have(mask: int) -> None:
    with pytest.raises(Finding, match=f"the mask {mask:#b} of a cluster of 1 blocks"):
        run(load(mask=mask), (TensorMap(np.zeros((20, 48), np.float32), BOX), np.zeros(BOX, np.float32)))


def test_a_descriptor_follows_the_drivers_rules() -> None:
    with pytest.raises(UsageError, match="the box is 132 bytes wide"):
        run(load(), (TensorMap(np.zeros((20, 48), np.float32), (8, 33)), np.zeros(BOX, np.float32)))


def write(name: str, atom: str = "", *, fence: bool = True, waits: bool = True) -> cute.Kernel:
    """Writes thread + row to a box at (4, 8), and then overwrites the source."""

    @cute.kernel(cute.TensorMap(), cute.Array("f32", rank=1), threads=32)
    def made(target: Any, numbers: Any) -> None:
        thread = arch.thread_idx()[0]
        tile = cute.shared_tensor("f32", Layout(BOX, (32, 1)))
        for row in range(8):
            tile[row, thread] = numbers[thread] + float(row)
        if fence:
            arch.instruction("fence.proxy_async")
        arch.sync_threads()
        with cute.when(cute.same(thread, 0)):
            arch.instruction(name, cute.address(tile), target, 8, 4, atom=atom)
            arch.instruction("copy.bulk_commit_group")
            if waits:
                arch.instruction("copy.bulk_wait_group", n=0)
        arch.sync_threads()
        tile[0, thread] = 0.0

    return made


NUMBERS = np.arange(32, dtype=np.float32)
VALUES = NUMBERS + np.arange(8, dtype=np.float32)[:, None]


def test_a_store_over_the_edge() -> None:
    target = np.full((10, 36), -1, np.float32)
    run(write("copy.tma_store"), (TensorMap(target, BOX), NUMBERS))
    wanted = np.full((10, 36), -1, np.float32)
    wanted[4:, 8:] = VALUES[:6, :28]
    np.testing.assert_array_equal(target, wanted)


@pytest.mark.parametrize(("atom", "function"), [("add", np.add), ("max", np.maximum), ("min", np.minimum)])
def test_a_reduction_of_two_blocks(atom: str, function: Any) -> None:
    target = np.full((16, 64), 7, np.float32)
    run(write("copy.tma_reduce", atom), (TensorMap(target, BOX), NUMBERS), 2)
    wanted = np.full((16, 64), 7, np.float32)
    for _ in range(2):
        wanted[4:12, 8:40] = function(wanted[4:12, 8:40], VALUES)
    np.testing.assert_array_equal(target, wanted)


def test_a_store_of_what_no_fence_made_visible() -> None:
    with pytest.raises(MissingFence, match="without a proxy fence"):
        run(write("copy.tma_store", fence=False), (TensorMap(np.zeros((16, 64), np.float32), BOX), NUMBERS))


def test_a_source_that_is_overwritten_too_early() -> None:
    with pytest.raises(MissingWait, match=r"\(TMA stores of warp 0\) still reads"):
        run(write("copy.tma_store", waits=False), (TensorMap(np.zeros((16, 64), np.float32), BOX), NUMBERS))


@cute.kernel(cute.Array("bf16", rank=1), cute.Array("bf16", rank=1), threads=32)
def by_bulk(source: Any, target: Any) -> None:
    thread = arch.thread_idx()[0]
    line = cute.shared_tensor("bf16", Layout(64))
    full = Barriers(1, 1)
    with cute.when(cute.same(thread, 0)):
        full.init()
        arch.instruction("mbarrier.init_fence")
        full.expect(0, 128)
        arch.instruction("copy.bulk_load", cute.address(line), cute.address(source), full.at(0), n=128)
        full.wait(0)
        arch.instruction("copy.bulk_store", cute.address(line), cute.address(target), n=128)
        arch.instruction("copy.bulk_commit_group")
        arch.instruction("copy.bulk_wait_group_all", n=0)


def taken_in_turn(order: str = "warp_sync", *, last: bool = True) -> cute.Kernel:
    """Lane 0 brings 32 numbers, each lane reads one, and lane 0 brings the next. `order`: what is between a reading and
    the next filling, `warp_sync`, or an mbarrier at which `all` lanes or `one` of them arrive."""

    @cute.kernel(cute.Array("f32", rank=1), cute.Array("f32", rank=1), threads=32)
    def made(source: Any, target: Any) -> None:
        thread = arch.thread_idx()[0]
        line = cute.shared_tensor("f32", Layout(32), align=128)
        full, free = Barriers(1, 1), Barriers(1, 1 if order == "one" else 32)

        def bring(number: int) -> None:
            with cute.when(cute.same(thread, 0)):
                if number and order in ("all", "one"):
                    free.wait(number - 1)
                full.expect(number, 128)
                arch.instruction("copy.bulk_load", cute.address(line), cute.address(source), full.at(0), n=128)

        with cute.when(cute.same(thread, 0)):
            full.init()
            free.init()
            arch.instruction("mbarrier.init_fence")
        arch.instruction("warp_sync")
        for number in range(2):
            bring(number)
            full.wait(number)
            target[thread] = line[31 - thread]
            if order == "warp_sync":
                arch.instruction("warp_sync")
            elif order == "all":
                free.arrive(number)
            elif order == "one":
                with cute.when(cute.same(thread, 0)):
                    free.arrive(number)
        if last:
            return
        bring(2)

    return made


@pytest.mark.parametrize("order", ["warp_sync", "all"])
def test_bytes_that_lanes_have_read_may_be_overwritten(order: str) -> None:
    source, target = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    run(taken_in_turn(order), (source, target))
    assert (target == source[::-1]).all()


@pytest.mark.parametrize("order", ["none", "one"])
def test_bytes_that_other_lanes_may_still_read(order: str) -> None:
    with pytest.raises(
        Race, match=r"bulk_load at .* read in thread 31 of the same warp: the warp has not synchronised"
    ):
        run(taken_in_turn(order), (np.ones(32, np.float32), np.zeros(32, np.float32)))


def test_bytes_that_still_come_when_the_block_ends() -> None:
    with pytest.raises(MissingWait, match=r"bulk_load at .* still writes shared memory when the block ends"):
        run(taken_in_turn(last=False), (np.ones(32, np.float32), np.zeros(32, np.float32)))


def test_bytes_side_by_side() -> None:
    source = np.arange(64).astype(ml_dtypes.bfloat16)
    target = np.zeros_like(source)
    run(by_bulk, (source, target))
    assert (target == source).all()


def two_boxes(waits: tuple[int, ...], *, again: bool = False) -> cute.Kernel:
    """Two boxes with an mbarrier for each; both are read after some of the waits. `again`: both go through the second
    mbarrier, which is made anew between the two."""

    @cute.kernel(cute.TensorMap(), cute.Array("f32"), threads=32)
    def made(source: Any, target: Any) -> None:
        thread = arch.thread_idx()[0]
        rings = [Barriers(1, 1) for _ in range(2)]
        tiles = [cute.shared_tensor("f32", Layout(BOX, (32, 1)), align=128) for _ in range(2)]

        def bring(number: int, ring: Barriers) -> None:
            with cute.when(cute.same(thread, 0)):
                ring.expect(0, BYTES)
                arch.instruction("copy.tma_load", cute.address(tiles[number]), source, ring.at(0), 0, 0)
            arch.instruction("warp_sync")

        for ring in rings:
            with cute.when(cute.same(thread, 0)):
                ring.init()
                arch.instruction("fence.proxy_async")
        bring(0, rings[1 if again else 0])
        if again:
            rings[1].wait(0)
            with cute.when(cute.same(thread, 0)):
                arch.instruction("mbarrier.inval", rings[1].at(0))
                rings[1].init()
                arch.instruction("fence.proxy_async")
        bring(1, rings[1])
        for number in waits:
            rings[number].wait(0)
        for tile in tiles:
            target[0, thread] = tile[0, thread]

    return made


def boxes() -> tuple[TensorMap, Array]:
    return TensorMap(np.ones(BOX, np.float32), BOX), np.zeros(BOX, np.float32)


@pytest.mark.parametrize("waits", [(0,), (1,)])
def test_a_wait_for_one_mbarrier_is_none_for_another_of_the_same_line(waits: tuple[int, ...]) -> None:
    run(two_boxes((0, 1)), boxes())
    with pytest.raises(MissingWait, match=r"still writes: nothing has waited for it"):
        run(two_boxes(waits), boxes())


def test_a_wait_for_an_mbarrier_is_none_for_the_one_after_it() -> None:
    run(two_boxes((1,), again=True), boxes())
    with pytest.raises(MissingWait, match="of the shared tensor 2 of"):
        run(two_boxes((), again=True), boxes())


def stored(wait: str) -> cute.Kernel:
    """A box is stored, and a thread reads it from the array."""

    @cute.kernel(cute.TensorMap(), cute.Array("f32"), threads=32)
    def made(target: Any, same: Any) -> None:
        thread = arch.thread_idx()[0]
        tile = cute.shared_tensor("f32", Layout(BOX, (32, 1)))
        for row in range(8):
            tile[row, thread] = 2.0
        arch.instruction("fence.proxy_async")
        arch.instruction("warp_sync")
        with cute.when(cute.same(thread, 0)):
            arch.instruction("copy.tma_store", cute.address(tile), target, 0, 0)
            arch.instruction("copy.bulk_commit_group")
            arch.instruction(wait, n=0)
            tile[0, 0] = same[0, 0]

    return made


def test_a_target_that_is_read_before_it_is_written() -> None:
    target = np.zeros(BOX, np.float32)
    run(stored("copy.bulk_wait_group_all"), (TensorMap(target, BOX), target))
    assert (target == 2).all()
    with pytest.raises(MissingWait, match=r"copy.tma_store at .* \(TMA writes of warp 0\) still writes"):
        run(stored("copy.bulk_wait_group"), (TensorMap(target, BOX), target))


@cute.kernel(cute.TensorMap(), cute.Array("f32"), threads=32)
def added_and_read(target: Any, same: Any) -> None:
    thread = arch.thread_idx()[0]
    tile = cute.shared_tensor("f32", Layout(BOX, (32, 1)))
    for row in range(8):
        tile[row, thread] = 1.0
    arch.instruction("fence.proxy_async")
    arch.instruction("warp_sync")
    with cute.when(cute.same(thread, 0)):
        arch.instruction("copy.tma_reduce", cute.address(tile), target, 0, 0, atom="add")
        arch.instruction("copy.bulk_commit_group")
        arch.instruction("copy.bulk_wait_group_all", n=0)
        tile[0, 0] = same[0, 0]


def test_what_several_blocks_add_to_is_read_by_none() -> None:
    target = np.zeros(BOX, np.float32)
    run(added_and_read, (TensorMap(target, BOX), target), 1)
    assert (target == 1).all()
    with pytest.raises(Race, match=r"adds to target\[0, 0\], which another block read") as found:
        run(added_and_read, (TensorMap(target, BOX), target), 2)
    assert found.value.site.block == (1, 0, 0)


@pytest.mark.parametrize("missing", ["copy.bulk_wait_group", "copy.bulk_commit_group"])
def test_a_warp_that_ends_before_its_store_has_read_shared_memory(missing: str) -> None:
    @cute.kernel(cute.TensorMap(), threads=32)
    def made(target: Any) -> None:
        thread = arch.thread_idx()[0]
        tile = cute.shared_tensor("f32", Layout(BOX, (32, 1)))
        for row in range(8):
            tile[row, thread] = 2.0
        arch.instruction("fence.proxy_async")
        arch.instruction("warp_sync")
        with cute.when(cute.same(thread, 0)):
            arch.instruction("copy.tma_store", cute.address(tile), target, 0, 0)
            arch.instruction("copy.bulk_commit_group")
            arch.instruction("copy.bulk_wait_group", n=0)

    target = np.zeros(BOX, np.float32)
    run(made, (TensorMap(target, BOX),))
    assert (target == 2).all()
    with pytest.raises(MissingWait, match=r"the warp ends while .*copy.tma_store at .* may still read shared memory"):
        run(without(made, f"cute_nvgpu.arch.{missing}"), (TensorMap(target, BOX),))


@pytest.mark.parametrize("columns", [8, 32])
def test_a_box_narrower_than_its_swizzle_keeps_the_swizzles_rows(columns: int) -> None:
    @cute.kernel(cute.TensorMap(), cute.Array("bf16"), threads=32)
    def made(source: Any, target: Any) -> None:
        thread = arch.thread_idx()[0]
        swizzle = cute.Swizzle(3, 4, 3)
        tile = cute.shared_tensor("bf16", Layout((16, 64), (64, 1)), align=1024, swizzle=swizzle)
        full = Barriers(1, 1)
        with cute.when(cute.same(thread, 0)):
            full.init()
            arch.instruction("mbarrier.init_fence")
            full.expect(0, 16 * columns * 2)
            arch.instruction("copy.tma_load", cute.address(tile), source, full.at(0), 0, 0)
        arch.sync_threads()
        full.wait(0)
        for row in range(16):
            for column in range(columns):
                target[row, column] = tile[row, column]

    source = np.arange(16 * columns, dtype=np.float32).reshape(16, columns).astype(ml_dtypes.bfloat16)
    target = np.zeros_like(source)
    run(made, (TensorMap(source, (16, columns), 128), target))
    assert (target == source).all()
