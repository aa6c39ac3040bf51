"""wgmma beyond the GEMM: A in registers, and every way in which an operand may lie in shared memory."""

from __future__ import annotations

import dataclasses
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.compile.toolchain.cute.nvgpu.registers import two_products
from tests.unit.toolchain.cute.executor.mutate import without
from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch
from toolchain.cute.executor import DivergentBarrier, MissingFence, MissingWait, NoSemantics, Race, Uninitialised, run
from toolchain.cute.executor.instructions.wgmma import operand_bytes
from toolchain.cute.executor.state.memory import SHARED_BASE
from toolchain.cute.layout import Layout
from toolchain.cute.nvgpu.descriptor import SharedOperand

BF16: Any = ml_dtypes.bfloat16
SWIZZLE = cute.Swizzle(3, 4, 3)
Array = np.ndarray[Any, Any]


def numbers(*shape: int) -> Array:
    return np.random.default_rng(0).integers(-3, 4, shape).astype(BF16)


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_two_products_with_a_in_registers(dtype: str) -> None:
    given = [numbers(64, 64).astype(BF16 if dtype == "bf16" else np.float16) for _ in range(3)]
    out = np.zeros((64, 64), np.float32)
    run(two_products(dtype), (*given, out))
    a, b, c = (array.astype(np.float64) for array in given)
    assert (out == (a @ b.T).astype(given[0].dtype).astype(np.float64) @ c.T).all()


@pytest.mark.parametrize(
    ("name", "which", "wanted"),
    [
        ("fence.proxy_async", 0, MissingFence),
        ("wgmma.fence", 1, MissingFence),
        ("wgmma.wait_group", 0, MissingWait),
        ("wgmma.commit_group", 1, MissingWait),
    ],
)
def test_a_missing_operation(name: str, which: int, wanted: type[Exception]) -> None:
    mistaken = without(two_products(), f"cute_nvgpu.arch.{name}", which)
    with pytest.raises(wanted):
        run(mistaken, (*(numbers(64, 64) for _ in range(3)), np.zeros((64, 64), np.float32)))


def product(
    major_a: str, major_b: str, columns: int, *, filled: bool = True, held: bool = False, late: bool = False
) -> cute.Kernel:
    """out (64, columns) = A x B with K = 64; each operand with K or with M (N) side by side in shared memory."""
    mma = cute.make_tiled_mma(cute.find(f"wgmma.m64n{columns}k16.f32.bf16"), (1, 1, 1))

    @cute.kernel(cute.Array("bf16"), cute.Array("bf16"), cute.Array("f32"), threads=128)
    def made(a: Any, b: Any, out: Any) -> None:
        thread = arch.thread_idx()[0]
        shared: list[Any] = []
        for source, rows, major in ((a, 64, major_a), (b, columns, major_b)):
            layout = Layout((rows, 64), (64, 1)) if major == "k" else Layout(((64, rows // 64), 64), ((1, 4096), 64))
            tile = cute.shared_tensor("bf16", layout, swizzle=SWIZZLE)
            for step in range(rows * 64 // 128):
                number = thread + step * 128
                row, k = number // 64, number % 64
                place = (row, k) if major == "k" else ((row % 64, row // 64), k)
                tile[place] = source[row, k]
            shared.append(tile)
        arch.instruction("fence.proxy_async")
        arch.sync_threads()
        sums = cute.make_fragment(mma.partition("c", Layout((64, columns)))[1].shape, "f32")
        if filled:
            cute.fill(sums, 0.0)
        if late:
            sums[0] = a[thread % 64, 0].to("f32") * 0.0
        if held:
            cute.hold(sums)
        arch.instruction("wgmma.fence")
        left, right = (cute.partition(mma, o, t, thread) for o, t in zip("AB", shared, strict=True))
        cute.gemm(mma, sums, left, right, sums)
        arch.instruction("wgmma.commit_group")
        arch.instruction("wgmma.wait_group", n=0)
        target = cute.partition(mma, "C", cute.local_tile(out, (64, columns), (0, 0)), thread)
        for i in range(cute.size(sums.layout)):
            target[i] = sums[i]

    return made


@pytest.mark.parametrize(
    ("major_a", "major_b", "columns"), [("k", "k", 64), ("m", "k", 64), ("k", "m", 128), ("m", "m", 64)]
)
def test_operands_in_shared_memory(major_a: str, major_b: str, columns: int) -> None:
    a, b, out = numbers(64, 64), numbers(columns, 64), np.zeros((64, columns), np.float32)
    run(product(major_a, major_b, columns), (a, b, out))
    assert (out == a.astype(np.float64) @ b.astype(np.float64).T).all()


def test_a_missing_barrier_before_the_product() -> None:
    mistaken = without(product("k", "k", 64), "nvvm.barrier0")
    with pytest.raises((Race, MissingFence)):
        run(mistaken, (numbers(64, 64), numbers(64, 64), np.zeros((64, 64), np.float32)))


@cute.kernel(threads=128)
def lonely() -> None:
    with cute.when(cute.less(arch.thread_idx()[0], 16)):
        arch.instruction("wgmma.fence")


def test_an_instruction_of_a_warpgroup_in_a_branch() -> None:
    with pytest.raises(DivergentBarrier):
        run(lonely, ())


def test_a_descriptor_of_an_operation_is_that_of_a_layout() -> None:
    text = """
gpu.module @kernels {
  llvm.mlir.global internal @tile() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<4096 x i8>
  llvm.func @word(%x: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 1>} {
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %at = llvm.getelementptr %tile[32] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %d = cute_nvgpu.smem_descriptor(%at) {generation = "sm_90", leading = 16 : i32, stride = 1024 : i32,
           swizzle = 128 : i32} : !llvm.ptr<3> -> i64
    llvm.store %d, %x : i64, !llvm.ptr<1>
    llvm.return
  }
}
"""
    found = np.zeros(1, np.int64)
    run(text, (found,))
    assert found[0] == SharedOperand("k", 16, 1024).fields | (SHARED_BASE + 32) >> 4


def test_sums_that_nothing_has_written() -> None:
    mistaken = product("k", "k", 64, filled=False)
    with pytest.raises(Uninitialised, match=r"mma.wgmma at .*a register is used that nothing has written"):
        run(mistaken, (numbers(64, 64), numbers(64, 64), np.zeros((64, 64), np.float32)))


def test_a_descriptor_with_a_base_offset() -> None:
    with pytest.raises(NoSemantics, match="base offset of 0"):
        operand_bytes(1 << 62 | 1 << 49, 8, 16, 2, "k")


def test_registers_that_are_only_held_after_the_fence_count_as_written_before() -> None:
    given = (numbers(64, 64), numbers(64, 64), np.zeros((64, 64), np.float32))
    run(product("k", "k", 64, held=True), given)
    with pytest.raises(MissingFence, match="a register of the product was written"):
        run(without(product("k", "k", 64, held=True), "cute_nvgpu.arch.wgmma.fence"), given)


@pytest.mark.parametrize("kernel", [product("k", "k", 64, late=True), two_products()], ids=["sums", "a"])
def test_a_fence_that_comes_before_registers_are_written(kernel: cute.Kernel) -> None:
    module = kernel.module.clone()
    fence = [op for op in module.walk() if op.name == "cute_nvgpu.arch.wgmma.fence"][-1]
    written = next(op for op in module.walk() if op.name in ("arith.truncf", "arith.mulf"))
    block = written.parent
    assert block is not None and block is fence.parent
    fence.detach()
    block.insert_op_before(fence, written)
    given = [numbers(64, 64) for _ in range(len(kernel.names) - 1)]
    run(kernel, (*given, np.zeros((64, 64), np.float32)))
    with pytest.raises(MissingFence):
        run(dataclasses.replace(kernel, module=module), (*given, np.zeros((64, 64), np.float32)))
