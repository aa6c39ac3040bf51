"""Products of tcgen05 by a pair of blocks: the right sums, and what is wrong is found. Those of one block are in
test_tensor_memory.py."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from kernels_cute.products.gemm_sm100 import gemm
from tests.unit.toolchain.cute.executor.mutate import without
from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch
from toolchain.cute.executor import TensorMap, run
from toolchain.cute.executor.state.findings import (
    Deadlock,
    Finding,
    MissingFence,
    MissingWait,
    NoSemantics,
    Race,
    Uninitialised,
)
from toolchain.cute.layout import Layout

ARCH = "cute_nvgpu.arch."
pair = functools.cache(functools.partial(gemm, pair=True))


def launch(kernel: cute.Kernel, m: int = 256, n: int = 128) -> NDArray[np.float32]:
    """The products that a kernel of pairs computes, which are integers."""
    random = np.random.default_rng(0)
    x, weight = (random.integers(-4, 5, (rows, 128)).astype(ml_dtypes.bfloat16) for rows in (m, n))
    out = np.full((m, n), np.nan, np.float32)
    maps = [TensorMap(x, (128, 64), 128), TensorMap(weight, (64, 64), 128)]
    run(kernel, (*maps, out, 128), (n // 128, m // 128))
    assert (out == x.astype(np.float32) @ weight.astype(np.float32).T).all()
    return out


def test_two_blocks_multiply_together() -> None:
    launch(pair(), 512, 256)


@pytest.mark.parametrize(
    ("name", "which", "kind", "said"),
    [
        ("mbarrier.wait", 0, MissingWait, "tma_load at .* still writes"),  # for the block's own rows
        ("mbarrier.arrive_remote", 0, Deadlock, "arrivals are missing"),
        ("mbarrier.wait", 1, Race, r"of block \(0, 1, 0\), which .*tma_load"),  # for the other's
        ("tcgen05.commit_multicast", 0, Deadlock, "arrivals are missing"),
        ("mbarrier.wait", 2, Uninitialised, "of tensor memory, which nothing has written"),  # for the sums
        ("mbarrier.init_fence", 0, MissingFence, "no fence makes the init"),
        ("tmem.dealloc", 0, Finding, "that no tmem.dealloc has given back"),
    ],
)
def test_what_is_left_out_is_found(name: str, which: int, kind: type[Finding], said: str) -> None:
    with pytest.raises(kind, match=said):
        launch(without(pair(), f"{ARCH}{name}", which))


def launch_body(body: Callable[[Any, Any], None], blocks: int = 2) -> None:
    """Runs `body(address of a slot of shared memory, number of the block)` in the blocks of a cluster."""

    @cute.kernel(threads=32, name="k")
    def made() -> None:
        slot = cute.shared_tensor("i64", Layout(2))
        body(cute.address(slot), arch.block_idx()[0])

    run(made, (), blocks, cluster=blocks)


def allocate(slot: Any, columns: int = 32) -> None:
    arch.instruction("tmem.alloc", slot, atom="pair", n=columns)


def only_one(slot: Any, block: Any) -> None:
    with cute.when(cute.same(block, 0)):
        allocate(slot)


def other_columns(slot: Any, block: Any) -> None:
    for number, columns in enumerate((32, 64)):
        with cute.when(cute.same(block, number)):
            allocate(slot, columns)


def other_group(slot: Any, _block: Any) -> None:
    allocate(slot)
    arch.instruction("tcgen05.commit", slot, atom="single")


def no_such_blocks(slot: Any, _block: Any) -> None:
    arch.instruction("tcgen05.commit_multicast", slot, 0b100, atom="pair")


def few_rows(slot: Any, _block: Any) -> None:
    word = arch.smem_descriptor(slot, "sm_100", stride=1024)
    described = arch.instruction_descriptor("tcgen05_pair.m128n32k16.f32.bf16")
    arch.instruction("tcgen05.mma", 0, word, word, described, 0, atom="f16.pair")


@pytest.mark.parametrize(
    ("body", "kind", "said"),
    [
        (only_one, Deadlock, r"tmem\.alloc by the other block of the pair"),
        (other_columns, Finding, r"do not do the same: tmem\.alloc of \d\d columns and tmem\.alloc of \d\d"),
        (other_group, Finding, "has `single`, and an instruction of tcgen05 before had `pair`"),
        (no_such_blocks, Finding, "the mask 0b100 of a cluster of 2 blocks"),
        (few_rows, NoSemantics, r"M of 128 \(of a pair 256\)"),
    ],
)
def test_what_a_pair_cannot_do(body: Callable[[Any, Any], None], kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        launch_body(body)


def test_a_block_without_another_is_no_pair() -> None:
    with pytest.raises(Finding, match="block 0 of a cluster of 1 has no other to be a pair with"):
        launch_body(lambda slot, _: allocate(slot), 1)
