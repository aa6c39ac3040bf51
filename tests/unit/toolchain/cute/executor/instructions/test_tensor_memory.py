"""Tensor memory: the GEMM for sm_100a computes its product, and what is wrong is found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects.builtin import f32

from kernels_cute.products.gemm_sm100 import gemm
from tests.unit.toolchain.cute.executor.mutate import without
from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch
from toolchain.cute.dsl.ring import Barriers
from toolchain.cute.executor import TensorMap, run
from toolchain.cute.executor.state.findings import Finding, MissingWait, NoSemantics, OutOfBounds, Race, Uninitialised
from toolchain.cute.layout import Layout

DTYPES: dict[str, Any] = {"bf16": ml_dtypes.bfloat16, "f16": np.float16}


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_gemm_in_tensor_memory_is_the_product(dtype: str) -> None:
    random = np.random.default_rng(0)
    x, weight = (random.standard_normal((128, 128)).astype(DTYPES[dtype]) for _ in range(2))
    out = np.full((128, 128), np.nan, np.float32)
    maps = [TensorMap(array, (128, 64), swizzle=128) for array in (x, weight)]
    run(gemm(dtype), [*maps, out, 128])
    wanted = x.astype(np.float64) @ weight.astype(np.float64).T
    assert np.abs(out - wanted).max() <= 128 * np.finfo(np.float32).eps * np.abs(wanted).max()


def kernel(body: Callable[[Any, Any, Any], None], *, columns: int = 32) -> cute.Kernel:
    """A kernel of four warps in which `body(thread, address, out)` stands between alloc and dealloc of columns."""

    @cute.kernel(cute.Array("f32"), threads=128, name="k")
    def made(out: Any) -> None:
        thread = arch.thread_idx()[0]
        slot = cute.shared_tensor("i32", Layout(1))
        with cute.when(cute.less(thread, 32)):
            arch.instruction("tmem.alloc", cute.address(slot), atom="single", n=columns)
        arch.sync_threads()
        address = slot[0].value
        body(thread, address, out)
        arch.sync_threads()
        with cute.when(cute.less(thread, 32)):
            arch.instruction("tmem.dealloc", address, atom="single", n=columns)

    return made


def lane(thread: Any, address: Any) -> Any:
    return cute.ssa(cute.number(address) + thread // 32 * (32 << 16))


def launch(made: cute.Kernel) -> NDArray[np.float32]:
    out = np.full((128, 2), np.nan, np.float32)
    run(made, [out])
    return out


def test_what_is_stored_is_loaded_by_the_same_lanes() -> None:
    def body(thread: Any, address: Any, out: Any) -> None:
        value = cute.scalar(1.5)
        arch.instruction("tmem.store", lane(thread, address), value, value + 1.0, atom="32x32b.x2")
        arch.instruction("tmem.wait_store")
        read = arch.instruction("tmem.load", lane(thread, address), results=[f32] * 2, atom="32x32b.x2")
        arch.instruction("tmem.wait_load")
        for i, one in enumerate(read):
            out[thread, i] = cute.Scalar(one)

    assert (launch(kernel(body)) == [1.5, 2.5]).all()


def stored_and_loaded(thread: Any, address: Any, out: Any, *, missing: str) -> None:
    """A column is stored and loaded again, with one of the two waits only."""
    arch.instruction("tmem.store", lane(thread, address), cute.scalar(1.5), atom="32x32b.x1")
    if missing != "store":
        arch.instruction("tmem.wait_store")
    value = arch.instruction("tmem.load", lane(thread, address), results=[f32], atom="32x32b.x1")[0]
    if missing != "load":
        arch.instruction("tmem.wait_load")
    out[thread, 0] = cute.Scalar(value)


def read(thread: Any, address: Any, atom: str = "32x32b.x1") -> None:
    arch.instruction("tmem.load", lane(thread, address), results=[f32], atom=atom)


def product(thread: Any, address: Any, *, wait: bool, adds: int = 0, atom: str = "tcgen05.m128n32k16.f32.bf16") -> None:
    """One product of zeros, and a load of its sums."""
    side = cute.shared_tensor("bf16", Layout((128, 64), (64, 1)), swizzle=cute.Swizzle(3, 4, 3))
    done = Barriers(1, 1)
    for i in range(64):
        side[thread, i] = cute.scalar(0.0, "bf16")
    with cute.when(cute.same(thread, 0)):
        done.init()
    arch.instruction("fence.proxy_async")
    arch.sync_threads()
    with cute.when(cute.same(thread, 0)):
        word = arch.smem_descriptor(cute.address(side), "sm_100", stride=1024)
        described = arch.instruction_descriptor(atom)
        arch.instruction("tcgen05.mma", address, word, word, described, adds, atom="f16")
        arch.instruction("tcgen05.commit", done.at(0), atom="single")
    if wait:
        done.wait(0)
    read(thread, address)


def _no_wait_for(missing: str) -> Callable[[Any, Any, Any], None]:
    return lambda thread, address, out: stored_and_loaded(thread, address, out, missing=missing)


CASES: list[tuple[Callable[[Any, Any, Any], None], type[Exception], str]] = [
    (lambda thread, address, _: product(thread, address, wait=False), Race, "no mbarrier orders this"),
    (lambda _thread, address, _: read(0, address), OutOfBounds, r"warp \d reaches lanes \d+ to \d+, not 0"),
    (lambda thread, address, _: read(thread, cute.ssa(cute.number(address) + 32)), OutOfBounds, "not allocated"),
    (
        lambda thread, address, _: read(thread, address),
        Uninitialised,
        r"lane \d+, column 0 of tensor memory, which nothing",
    ),
    (_no_wait_for("store"), MissingWait, "which tmem.store still writes: no tmem.wait_store has ended it"),
    (_no_wait_for("load"), MissingWait, "a register is used that cute_nvgpu.arch.tmem.load at .* still writes"),
    (
        lambda thread, address, _: product(thread, address, wait=True, adds=1),
        Uninitialised,
        "lane 0, column 0 of tensor memory, which nothing",
    ),
    (
        lambda thread, address, _: product(thread, address, wait=True, atom="tcgen05.m128n32k16.f16.f16"),
        NoSemantics,
        "with sums of f32",
    ),
    (
        lambda thread, address, _: read(thread, address, "16x64b.x1"),
        NoSemantics,
        "32x32b only",
    ),
]


@pytest.mark.parametrize(
    ("body", "kind", "said"),
    CASES,
    ids=["race", "lanes", "columns", "unwritten", "store", "load", "sums", "f16", "shape"],
)
def test_what_is_wrong_is_found(body: Callable[[Any, Any, Any], None], kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        launch(kernel(body))


def test_sums_that_were_waited_for_are_read() -> None:
    launch(kernel(lambda thread, address, _: product(thread, address, wait=True)))


def test_more_columns_than_there_are_is_an_error() -> None:
    def body(thread: Any, address: Any, out: Any) -> None:  # noqa: ARG001
        slot = cute.shared_tensor("i32", Layout(1))
        with cute.when(cute.less(thread, 32)):
            arch.instruction("tmem.alloc", cute.address(slot), atom="single", n=512)

    with pytest.raises(OutOfBounds, match="512 columns are asked for, and 480 are free"):
        launch(kernel(body))


def test_columns_that_are_not_given_back() -> None:
    out = np.zeros((128, 2), np.float32)
    made = kernel(lambda _thread, _address, _out: None)
    run(made, [out])
    with pytest.raises(Finding, match=r"ends with 32 columns of tensor memory that no tmem.dealloc has"):
        run(without(made, "cute_nvgpu.arch.tmem.dealloc"), [out])
