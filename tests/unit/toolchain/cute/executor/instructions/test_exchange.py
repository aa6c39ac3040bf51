"""Instructions from registers to registers."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.builtin import f32, i32

from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch
from toolchain.cute.executor import DivergentBarrier, NoSemantics, OutOfBounds, Uninitialised, run
from toolchain.cute.executor.instructions.exchange import permuted

VECTOR = cute.Array("f32", rank=1)
LANES = np.arange(32)
Array = np.ndarray[Any, Any]


def mapped(name: str, *, n: int | None = None, lane: bool = False) -> cute.Kernel:
    """target = the instruction of source, for each thread."""

    @cute.kernel(VECTOR, VECTOR, threads=32)
    def made(source: Any, target: Any) -> None:
        thread = arch.thread_idx()[0]
        more = [(thread + 5) % 32] if lane else []
        target[thread] = cute.Scalar(arch.instruction(name, source[thread], *more, results=[f32], n=n)[0])

    return made


def result(kernel: cute.Kernel, source: Array) -> Array:
    target = np.zeros_like(source)
    run(kernel, (source, target))
    return target


@pytest.mark.parametrize(
    ("kernel", "wanted"),
    [
        (mapped("shuffle.idx", lane=True), (LANES + 5) % 32),
        (mapped("shuffle.xor", n=3), LANES ^ 3),
        (mapped("shuffle.down", n=4), np.where(LANES < 28, LANES + 4, LANES)),
        (mapped("shuffle.up", n=4), np.where(LANES >= 4, LANES - 4, LANES)),
    ],
)
def test_shuffles(kernel: cute.Kernel, wanted: Array) -> None:
    source = np.linspace(-1, 1, 32, dtype=np.float32)
    assert (result(kernel, source) == source[wanted]).all()


def _rsqrt(value: Array) -> Array:
    return value**-0.5


@pytest.mark.parametrize(
    ("name", "function"),
    [("exp2", np.exp2), ("log2", np.log2), ("reciprocal", np.reciprocal), ("rsqrt", _rsqrt),
     ("sin", np.sin), ("cos", np.cos), ("tanh", np.tanh)],
)  # fmt: skip
def test_functions(name: str, function: Any) -> None:
    source = np.linspace(0.1, 4, 32, dtype=np.float32)
    assert (result(mapped(name), source) == function(source.astype(np.float64)).astype(np.float32)).all()


WORD = cute.Array("i32", rank=1)


@cute.kernel(WORD, WORD, threads=32)
def vote(source: Any, target: Any) -> None:
    thread = arch.thread_idx()[0]
    target[thread] = cute.Scalar(arch.instruction("vote_ballot", source[thread], results=[i32])[0])


def test_a_vote() -> None:
    source = (LANES % 3 == 0).astype(np.int32)
    target = np.zeros(32, np.int32)
    run(vote, (source, target))
    assert (target.view(np.uint32) == sum(1 << lane for lane in range(0, 32, 3))).all()


@cute.kernel(WORD, threads=64)
def elected(target: Any) -> None:
    target[arch.thread_idx()[0]] = cute.Scalar(arch.instruction("elect", results=[i32])[0])


def test_one_thread_of_each_warp_is_elected() -> None:
    target = np.zeros(64, np.int32)
    run(elected, (target,))
    assert target.tolist() == ([1] + [0] * 31) * 2


@cute.kernel(VECTOR, WORD, threads=32)
def pairs(source: Any, target: Any) -> None:
    thread = arch.thread_idx()[0]
    value = source[thread]
    made = arch.instruction("convert.pair", value, value + 1.0, results=[i32], atom="bf16")
    target[thread] = cute.Scalar(made[0])


def test_a_pair_of_floats_in_one_register() -> None:
    source, target = np.linspace(-3, 3, 32, dtype=np.float32), np.zeros(32, np.int32)
    run(pairs, (source, target))
    halves = target.view(ml_dtypes.bfloat16).reshape(32, 2)
    assert (halves == np.stack([source, source + 1], axis=1).astype(ml_dtypes.bfloat16)).all()


@pytest.mark.parametrize(("atom", "dtype"), [("e4m3", "float8_e4m3fn"), ("e5m2", "float8_e5m2")])
@pytest.mark.parametrize("as_ptx", [False, True])
def test_four_floats_of_8_bits_in_one_register_saturate(atom: str, dtype: str, as_ptx: bool) -> None:
    @cute.kernel(VECTOR, WORD, threads=32)
    def quads(source: Any, target: Any) -> None:
        thread = arch.thread_idx()[0]
        value = source[thread]
        four = [value, value * 2.0, value * 1000.0, value * -1.0]
        target[thread] = cute.Scalar(arch.instruction("convert.quad", *four, results=[i32], atom=atom)[0])

    source, target = np.linspace(-300, 300, 32, dtype=np.float32), np.zeros(32, np.int32)
    source[:3] = 17, 19, np.nan  # the first two are ties of e4m3: 16 and 20 are even
    run(quads, (source, target), ptx=quads.ptx("sm_90a") if as_ptx else "")
    narrow = np.dtype(getattr(ml_dtypes, dtype))
    largest = float(ml_dtypes.finfo(narrow).max)
    found = target.view(narrow).reshape(32, 4).astype(np.float32)
    wanted = np.stack([source, source * 2, source * 1000, -source], axis=1)
    assert np.array_equal(found, np.clip(wanted, -largest, largest).astype(narrow).astype(np.float32), equal_nan=True)
    assert np.isnan(found[2]).all() and np.abs(found[3:]).max() == largest


@pytest.mark.parametrize(("atom", "dtype"), [("e4m3", "float8_e4m3fn"), ("e5m2", "float8_e5m2")])
def test_four_floats_of_8_bits_become_two_pairs_of_f16(atom: str, dtype: str) -> None:
    @cute.kernel(WORD, VECTOR, threads=64)
    def widened(source: Any, target: Any) -> None:
        thread = arch.thread_idx()[0]
        pairs = arch.instruction("unpack.quad", source[thread], results=[i32, i32], atom=atom)
        for i, pair in enumerate(pairs):
            for j, value in enumerate(arch.instruction("unpack.pair", pair, results=[f32, f32], atom="f16")):
                target[thread * 4 + 2 * i + j] = cute.Scalar(value)

    every, target = np.arange(256, dtype=np.uint8), np.zeros(256, np.float32)
    run(widened, (every.view(np.int32), target))
    assert np.array_equal(target, every.view(getattr(ml_dtypes, dtype)).astype(np.float32), equal_nan=True)


@pytest.mark.parametrize(("atom", "dtype"), [("e4m3", "float8_e4m3fn"), ("e5m2", "float8_e5m2")])
@pytest.mark.parametrize("as_ptx", [False, True])
def test_every_float_of_8_bits_as_f16(atom: str, dtype: str, as_ptx: bool) -> None:
    @cute.kernel(WORD, WORD, threads=32)
    def unpacked(source: Any, target: Any) -> None:
        thread = arch.thread_idx()[0]
        for i in range(2):
            pairs = arch.instruction("unpack.quad", source[thread + 32 * i], results=[i32, i32], atom=atom)
            for j, pair in enumerate(pairs):
                target[thread * 2 + 64 * i + j] = cute.Scalar(pair)

    every, target = np.arange(256, dtype=np.uint8), np.zeros(128, np.int32)
    run(unpacked, (every.view(np.int32), target), ptx=unpacked.ptx("sm_90a") if as_ptx else "")
    wanted = every.view(getattr(ml_dtypes, dtype)).astype(np.float16)
    assert np.array_equal(target.view(np.float16), wanted, equal_nan=True)


@pytest.mark.parametrize("as_ptx", [False, True])
def test_bytes_of_two_registers(as_ptx: bool) -> None:
    @cute.kernel(WORD, WORD, threads=32)
    def mixed(source: Any, target: Any) -> None:
        thread = arch.thread_idx()[0]
        made = arch.instruction("permute", source[thread], source[thread + 32], results=[i32], n=0x7052)
        target[thread] = cute.Scalar(made[0])

    source, target = np.arange(256, dtype=np.uint8).view(np.int32), np.zeros(32, np.int32)
    run(mixed, (source, target), ptx=mixed.ptx("sm_80") if as_ptx else "")
    first, second = source.view(np.uint8).reshape(2, 32, 4)
    wanted = np.stack([first[:, 2], second[:, 1], first[:, 0], second[:, 3]], axis=1)
    assert (target.view(np.uint8).reshape(32, 4) == wanted).all()


@pytest.mark.parametrize("size", [4, 8, 16])
@pytest.mark.parametrize("as_ptx", [False, True])
def test_bytes_that_are_read_once(size: int, as_ptx: bool) -> None:
    count = size // 4

    @cute.kernel(WORD, WORD, threads=32)
    def read(source: Any, target: Any) -> None:
        thread = arch.thread_idx()[0]
        start = cute.address(cute.local_tile(source, (count,), (thread,)))
        words = arch.instruction("copy.load_once", start, results=[i32] * count, n=size)
        for i, word in enumerate(words):
            target[thread * count + i] = cute.Scalar(word)

    source = np.arange(32 * count, dtype=np.int32)
    target = np.zeros_like(source)
    run(read, (source, target), ptx=read.ptx("sm_80") if as_ptx else "")
    assert (target == source).all()
    with pytest.raises(OutOfBounds):
        run(read, (source[:-1].copy(), target))


def test_a_byte_that_repeats_a_sign_is_not_known() -> None:
    with pytest.raises(NoSemantics, match="repeats a byte's sign"):
        permuted(np.zeros(32, np.int32), np.zeros(32, np.int32), np.array([0x8000]))


@pytest.mark.parametrize("as_ptx", [False, True])
def test_a_warps_matrix_is_transposed(as_ptx: bool) -> None:
    @cute.kernel(WORD, WORD, threads=32)
    def turned(source: Any, target: Any) -> None:
        thread = arch.thread_idx()[0]
        target[thread] = cute.Scalar(arch.instruction("transpose", source[thread], results=[i32])[0])

    matrix, target = np.arange(64, dtype=np.int16).reshape(8, 8), np.zeros(32, np.int32)
    run(turned, (matrix.view(np.int32).reshape(-1), target), ptx=turned.ptx("sm_80") if as_ptx else "")
    assert (target.view(np.int16).reshape(8, 8) == matrix.T).all()


@cute.kernel(VECTOR, threads=32)
def divergent(target: Any) -> None:
    thread = arch.thread_idx()[0]
    with cute.when(cute.less(thread, 7)):
        target[thread] = cute.Scalar(arch.instruction("shuffle.xor", cute.scalar(1.0), results=[f32], n=1)[0])


def test_a_shuffle_in_a_branch_of_some_threads() -> None:
    with pytest.raises(DivergentBarrier, match="thread 7: all threads of a warp do this together"):
        run(divergent, (np.zeros(32, np.float32),))


@cute.kernel(VECTOR, threads=40)
def reduced(target: Any) -> None:
    thread = arch.thread_idx()[0]
    target[thread] = cute.Scalar(arch.instruction("shuffle.down", cute.scalar(1.0), results=[f32], n=8)[0])


def test_a_shuffle_from_a_lane_that_the_block_does_not_have() -> None:
    with pytest.raises(Uninitialised, match="thread 32: takes the value of lane 8 of the warp, which the"):
        run(reduced, (np.zeros(40, np.float32),))


@cute.kernel(VECTOR, VECTOR, threads=32)
def split(source: Any, target: Any) -> None:
    """Rounded to bf16 in pairs of one value and its square, and back."""
    thread = arch.thread_idx()[0]
    pair = arch.instruction("convert.pair", source[thread], source[thread] * source[thread], results=[i32], atom="bf16")
    for i, value in enumerate(arch.instruction("unpack.pair", pair[0], results=[f32, f32], atom="bf16")):
        target[thread + 32 * i] = cute.Scalar(value)


def test_a_pair_of_bf16_is_unpacked_as_it_was_packed() -> None:
    source, target = np.linspace(-3, 2, 32, dtype=np.float32), np.zeros(64, np.float32)
    run(split, (source, target))
    assert (target == np.concatenate([source, source * source]).astype(ml_dtypes.bfloat16).astype(np.float32)).all()
