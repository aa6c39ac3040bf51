"""Products, and the rounding of their sums, as the front end traces them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from toolchain.cute import dsl as cute
from toolchain.cute.compile import lower_module
from toolchain.cute.executor import run
from toolchain.cute.layout import Layout
from toolchain.errors import UsageError

WGMMA = cute.make_tiled_mma(cute.find("wgmma.m64n8k16.f32.bf16"), (1, 1, 1))
MMA = cute.make_tiled_mma(cute.find("mma.m16n8k16.f32.bf16"), (1, 1, 1))


def product(mma: cute.TiledMma, depth: int, *, added: bool) -> cute.Kernel:
    """A product with K = depth, whose sums are written."""

    @cute.kernel(cute.Array("f32"), threads=mma.thread_count, name="product")
    def kernel(out: Any) -> None:
        m, n, _ = mma.tile
        thread = cute.arch.thread_idx()[0]
        sides = [
            cute.partition(
                mma, which, cute.shared_tensor("bf16", Layout((rows, depth), (64, 1)), swizzle=swizzle), thread
            )
            for which, rows, swizzle in (("A", m, cute.Swizzle(3, 4, 3)), ("B", n, cute.Swizzle(3, 4, 3)))
        ]
        if mma.atom.threads == 32:
            sides = [cute.make_fragment(side.layout.shape, "bf16") for side in sides]
        sums = cute.make_fragment(mma.partition("c", Layout((m, n)))[1].shape, "f32")
        cute.gemm(mma, sums, *sides, sums if added else None)
        target = cute.partition(mma, "C", cute.local_tile(out, (m, n), (0, 0)), thread)
        for i in range(cute.size(sums.layout)):
            target[i] = sums[i]

    return kernel


@pytest.mark.parametrize(("added", "kept"), [(True, "1"), (False, "0")])
def test_a_product_without_c_overwrites_in_its_first_step_along_k_only(added: bool, kept: str) -> None:
    text = str(lower_module(product(WGMMA, 32, added=added).module))
    said = [line for line in text.splitlines() if "wgmma.mma_async" in line]
    numbers = [re.findall(r"%\w+", line)[-1] for line in said]
    values = [re.search(rf"{number} = arith.constant (\d) : i32", text) for number in numbers]
    assert [found[1] for found in values if found] == [kept, "1"]


def test_the_first_step_of_a_warp_adds_to_zero() -> None:
    assert str(lower_module(product(MMA, 32, added=False).module)).count("llvm.mlir.zero") == 1
    assert "llvm.mlir.zero" not in str(lower_module(product(MMA, 32, added=True).module))


def rounding(layout: Layout) -> cute.Kernel:
    @cute.kernel(threads=32, name="rounding")
    def kernel() -> None:
        cute.convert(cute.make_fragment(4, "f32"), cute.make_fragment(layout, "bf16"))

    return kernel


def test_two_values_of_a_register_are_rounded_at_once() -> None:
    text = str(lower_module(rounding(Layout(4)).module))
    assert text.count("cvt.rn.bf16x2.f32") == 2


def test_four_values_of_8_bits_share_a_register() -> None:
    @cute.kernel(threads=32, name="rounding")
    def kernel() -> None:
        cute.convert(cute.make_fragment(8, "f32"), cute.make_fragment(8, "e4m3"))

    assert str(lower_module(kernel.module)).count("cvt.rn.satfinite.e4m3x2.f32") == 4


def test_values_of_two_registers_are_not_rounded_at_once() -> None:
    with pytest.raises(UsageError, match="keeps values apart"):
        rounding(Layout((2, 2), (2, 1)))
    with pytest.raises(UsageError, match="4 side by side"):
        cute.kernel(threads=32, name="rounding")(
            lambda: cute.convert(cute.make_fragment(4, "f32"), cute.make_fragment(Layout((2, 2), (1, 4)), "e4m3"))
        )


def test_a_choice_and_modes_behind_a_transpose() -> None:
    @cute.kernel(cute.Float32(), threads=32, name="chosen")
    def kernel(x: Any) -> None:
        tensor = cute.transposed(cute.shared_tensor("f32", Layout((2, 4, 3))))
        assert tensor.layout == Layout((4, 2, 3), (2, 1, 8))
        tensor[0] = cute.select(cute.less(cute.arch.thread_idx()[0], 4), x, 0.5)

    assert "arith.select" in str(kernel)


def test_a_product_of_f64() -> None:
    mma = cute.make_tiled_mma(cute.find("mma.m8n8k4.f64.f64"), (2, 1, 1))
    matrix = cute.Array("f64")

    @cute.kernel(matrix, matrix, matrix, threads=64, name="product")
    def kernel(x: Any, y: Any, out: Any) -> None:
        thread = cute.arch.thread_idx()[0]
        sides: list[Any] = []
        for which, tensor, tile in (("A", x, (16, 12)), ("B", y, (8, 12))):
            source = cute.partition(mma, which, cute.local_tile(tensor, tile, (0, 0)), thread)
            held = cute.make_fragment(source.layout.shape, "f64")
            for i in range(cute.size(held.layout)):
                held[i] = source[i]
            sides.append(held)
        target = cute.partition(mma, "C", cute.local_tile(out, (16, 8), (0, 0)), thread)
        sums = cute.make_fragment(target.layout.shape, "f64")
        cute.gemm(mma, sums, *sides)
        for i in range(cute.size(sums.layout)):
            target[i] = sums[i]

    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((16, 12)), rng.standard_normal((8, 12))
    for ptx in ("", kernel.ptx("sm_80")):
        out = np.full((16, 8), np.nan)
        run(kernel, (x, y, out), ptx=ptx)
        assert np.abs(out - x @ y.T).max() < 1e-14
