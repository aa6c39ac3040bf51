"""Kernels written in cuTile Python, exported to bytecode and run on the interpreter, against numpy in f64."""

# ruff: noqa: N803 (constants of a kernel are written in capitals)

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import cuda.tile as ct
import ml_dtypes
import numpy as np
import pytest
from cuda.tile.compilation import ArrayConstraint, CallingConvention, KernelSignature, ScalarConstraint, export_kernel

from toolchain.errors import SanitizerError
from toolchain.tileir.interpreter import Allocation, Argument, Grid, Pointer, prepare

Array = np.ndarray[Any, np.dtype[Any]]
C = ct.Constant[int]
ZERO = ct.PaddingMode.ZERO
DTYPES = {"f32": (np.float32, ct.float32), "f16": (np.float16, ct.float16), "bf16": (ml_dtypes.bfloat16, ct.bfloat16)}


def array(dtype: Any, rank: int) -> ArrayConstraint:
    return ArrayConstraint(
        dtype, rank, index_dtype=ct.int32, stride_lower_bound_incl=0, alias_groups=[], may_alias_internally=False,
        stride_constant=[None] * (rank - 1) + [1], base_addr_divisible_by=16,
    )  # fmt: skip


def export(kernel: Any, parameters: Sequence[Any], version: str = "13.3") -> bytes:
    signature = KernelSignature(list(parameters), CallingConvention.cutile_python_v2(), symbol="k")
    file = io.BytesIO()
    target = None if version == "13.3" else "sm_100"  # older bytecode is for one target
    export_kernel(
        kernel, [signature], file, gpu_code=target, output_format="tileir_bytecode", bytecode_version=version
    )  # fmt: skip
    return file.getvalue()


def launch(code: bytes, args: Sequence[Array | float | int], grid: Grid, sanitize: bool = True) -> None:
    flat: list[Argument] = []
    for arg in args:
        if isinstance(arg, np.ndarray):
            flat += [Pointer(Allocation(arg)), *arg.shape, *(s // arg.itemsize for s in arg.strides)]
        else:
            flat.append(arg)
    prepare(code).launch("k", flat, grid, sanitize)


def cdiv(a: int, b: int) -> int:
    return -(-a // b)


def normal(rng: np.random.Generator, dtype: Any, *shape: int) -> Array:
    return rng.standard_normal(shape).astype(dtype)


@ct.kernel
def layernorm(x: Any, weight: Any, bias: Any, out: Any, eps: float, BN: C):
    i = ct.bid(0)
    n = x.shape[1]
    total = ct.zeros((1, BN), ct.float32)
    for j in range(ct.cdiv(n, BN)):
        total += ct.load(x, index=(i, j), shape=(1, BN), padding_mode=ZERO).astype(ct.float32)
    mean = ct.sum(total, axis=1, keepdims=True) / n
    squares = ct.zeros((1, BN), ct.float32)
    for j in range(ct.cdiv(n, BN)):
        t = ct.load(x, index=(i, j), shape=(1, BN), padding_mode=ZERO).astype(ct.float32)
        inside = (j * BN + ct.arange(BN, dtype=ct.int32))[None, :] < n
        d = ct.where(inside, t - mean, 0.0)
        squares += d * d
    scale = ct.rsqrt(ct.sum(squares, axis=1, keepdims=True) / n + eps)
    for j in range(ct.cdiv(n, BN)):
        t = ct.load(x, index=(i, j), shape=(1, BN), padding_mode=ZERO).astype(ct.float32)
        w = ct.load(weight, index=(j,), shape=(BN,), padding_mode=ZERO).astype(ct.float32)
        b = ct.load(bias, index=(j,), shape=(BN,), padding_mode=ZERO).astype(ct.float32)
        ct.store(out, index=(i, j), tile=((t - mean) * scale * w + b).astype(out.dtype))


@pytest.mark.parametrize("width", [48, 256, 300])
@pytest.mark.parametrize("dtype", DTYPES)
def test_layernorm(dtype: str, width: int) -> None:
    host, tile = DTYPES[dtype]
    rng = np.random.default_rng(width)
    x, w, b = normal(rng, host, 3, width), normal(rng, host, width), normal(rng, host, width)
    out = np.full_like(x, np.nan)
    code = export(
        layernorm, [array(tile, 2), array(tile, 1), array(tile, 1), array(tile, 2), ScalarConstraint(ct.float32), 128]
    )
    launch(code, (x, w, b, out, 1e-5), (3, 1, 1))
    x64 = x.astype(np.float64)
    centred = x64 - x64.mean(1, keepdims=True)
    expected = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5) * w.astype(np.float64) + b.astype(
        np.float64
    )
    assert np.abs(out.astype(np.float64) - expected).max() < {"f32": 4e-6, "f16": 4e-3, "bf16": 3e-2}[dtype]


@ct.kernel
def linear(x: Any, weight: Any, bias: Any, out: Any, BM: C, BN: C, BK: C):
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((BM, BN), ct.float32)
    for k in range(ct.cdiv(x.shape[1], BK)):
        a = ct.load(x, index=(i, k), shape=(BM, BK), padding_mode=ZERO)
        b = ct.load(weight, index=(k, j), shape=(BK, BN), padding_mode=ZERO)
        acc = ct.mma(a, b, acc)
    shift = ct.load(bias, index=(j,), shape=(BN,), padding_mode=ZERO).astype(ct.float32)
    ct.store(out, index=(i, j), tile=(acc + shift).astype(out.dtype))


@pytest.mark.parametrize(("m", "k", "n"), [(1, 48, 50), (100, 96, 130)])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("version", ["13.1", "13.3"])
def test_linear(dtype: str, m: int, k: int, n: int, version: str) -> None:
    host, tile = DTYPES[dtype]
    rng = np.random.default_rng(m)
    x, w, b = normal(rng, host, m, k), normal(rng, host, k, n), normal(rng, host, n)
    out = np.full((m, n), np.nan, host)
    code = export(linear, [array(tile, 2), array(tile, 2), array(tile, 1), array(tile, 2), 64, 64, 32], version)
    launch(code, (x, w, b, out), (cdiv(m, 64), cdiv(n, 64), 1))
    expected = x.astype(np.float64) @ w.astype(np.float64) + b.astype(np.float64)
    assert np.abs(out.astype(np.float64) - expected).max() < {"f32": 2e-5, "f16": 3e-2, "bf16": 0.2}[dtype]


@ct.kernel
def attention(q: Any, k: Any, v: Any, out: Any, scale: float, BT: C, BS: C, D: C):
    b, h, t = ct.bid(0), ct.bid(1), ct.bid(2)
    T, S = q.shape[1], k.shape[1]
    queries = ct.load(q, index=(b, t, h, 0), shape=(1, BT, 1, D), padding_mode=ZERO).reshape((BT, D))
    top = ct.full((BT, 1), -float("inf"), ct.float32)
    total = ct.zeros((BT, 1), ct.float32)
    acc = ct.zeros((BT, D), ct.float32)
    rows = t * BT + ct.arange(BT, dtype=ct.int32)[:, None] + (S - T)
    for s in range(ct.cdiv(S, BS)):
        keys = ct.load(k, index=(b, s, h, 0), shape=(1, BS, 1, D), padding_mode=ZERO).reshape((BS, D))
        values = ct.load(v, index=(b, s, h, 0), shape=(1, BS, 1, D), padding_mode=ZERO).reshape((BS, D))
        x = ct.mma(queries, ct.permute(keys, (1, 0)), ct.zeros((BT, BS), ct.float32)) * scale
        columns = s * BS + ct.arange(BS, dtype=ct.int32)[None, :]
        x = ct.where((columns <= rows) & (columns < S), x, -float("inf"))
        higher = ct.maximum(top, ct.max(x, axis=1, keepdims=True))
        p = ct.exp(x - higher)
        shrink = ct.exp(top - higher)
        total = total * shrink + ct.sum(p, axis=1, keepdims=True)
        acc = ct.mma(p.astype(v.dtype), values, acc * shrink)
        top = higher
    ct.store(out, index=(b, t, h, 0), tile=(acc / total).astype(out.dtype).reshape((1, BT, 1, D)))


@pytest.mark.parametrize(("t", "s"), [(1, 70), (100, 100)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_flash_attention(dtype: str, t: int, s: int) -> None:
    host, tile = DTYPES[dtype]
    rng = np.random.default_rng(t)
    q, k, v = normal(rng, host, 2, t, 3, 32), normal(rng, host, 2, s, 3, 32), normal(rng, host, 2, s, 3, 32)
    out = np.full_like(q, np.nan)
    code = export(attention, [*[array(tile, 4)] * 4, ScalarConstraint(ct.float32), 32, 32, 32])
    launch(code, (q, k, v, out, 32**-0.5), (2, 3, cdiv(t, 32)))
    scores = np.einsum("bthd,bshd->bhts", q.astype(np.float64), k.astype(np.float64)) * 32**-0.5
    scores[..., np.arange(s) > np.arange(t)[:, None] + s - t] = -np.inf
    p = np.exp(scores - scores.max(-1, keepdims=True))
    expected = np.einsum("bhts,bshd->bthd", p / p.sum(-1, keepdims=True), v.astype(np.float64))
    assert np.abs(out.astype(np.float64) - expected).max() < {"f32": 2e-6, "f16": 2e-3, "bf16": 2e-2}[dtype]


@ct.kernel
def gather_rows(tokens: Any, table: Any, out: Any, BC: C):
    n, c = ct.bid(0), ct.bid(1)
    token = ct.load(tokens, index=(n,), shape=(1,))
    columns = c * BC + ct.arange(BC, dtype=ct.int32)
    row = ct.gather(table, (token[:, None], columns[None, :]), padding_value=0.0)
    ct.scatter(out, (ct.full((1, 1), n, ct.int32), columns[None, :]), row)


def test_gather_and_scatter() -> None:
    rng = np.random.default_rng(0)
    tokens, table = rng.integers(0, 20, 5).astype(np.int32), normal(rng, np.float32, 20, 48)
    out = np.full((5, 48), np.nan, np.float32)
    code = export(gather_rows, [array(ct.int32, 1), array(ct.float32, 2), array(ct.float32, 2), 32])
    launch(code, (tokens, table, out), (5, 2, 1))
    assert np.array_equal(out, table[tokens])


@ct.kernel
def argmax(x: Any, out: Any, BN: C):
    m = ct.bid(0)
    best = ct.full((1, BN), -float("inf"), ct.float32)
    where = ct.zeros((1, BN), ct.int32)
    for j in range(ct.cdiv(x.shape[1], BN)):
        t = ct.load(x, index=(m, j), shape=(1, BN), padding_mode=ct.PaddingMode.NEG_INF)
        better = t > best
        best = ct.where(better, t, best)
        where = ct.where(better, (j * BN + ct.arange(BN, dtype=ct.int32))[None, :], where)
    top = ct.max(best, axis=1, keepdims=True)
    first = ct.min(ct.where(best == top, where, 2**31 - 1), axis=1)
    ct.store(out, index=(m,), tile=first)


def test_argmax_takes_the_first_of_equals() -> None:
    x = np.random.default_rng(0).standard_normal((4, 100)).astype(np.float32)
    x[1, [17, 70, 81]] = x[2, [99, 3]] = 9
    out = np.zeros(4, np.int32)
    launch(export(argmax, [array(ct.float32, 2), array(ct.int32, 1), 32]), (x, out), (4, 1, 1))
    assert out.tolist() == x.argmax(1).tolist()


@ct.kernel
def highest(x: Any, out: Any, BN: C):
    t = ct.load(x, index=(0,), shape=(BN,))
    ct.store(out, index=(0,), tile=ct.max(t).reshape((1,)))


@pytest.mark.parametrize("dtype", [(np.float64, ct.float64), *DTYPES.values()])
def test_the_largest_of_negative_numbers(dtype: Any) -> None:
    x, out = -np.arange(3, 11).astype(dtype[0]), np.zeros(1, dtype[0])
    launch(export(highest, [array(dtype[1], 1), array(dtype[1], 1), 8]), (x, out), (1, 1, 1))
    assert out == [-3]


@ct.kernel
def unpadded_scale(x: Any, out: Any, BN: C, WIDE: C):
    j = ct.bid(0)
    t = ct.load(x, index=(j,), shape=(BN,))
    if WIDE:
        t = t - ct.max(t)
    ct.store(out, index=(j,), tile=t * 2)


def test_unpadded_rows_may_be_loaded_but_not_used() -> None:
    x, out = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
    parameters = [array(ct.float32, 1), array(ct.float32, 1), 64]
    launch(export(unpadded_scale, [*parameters, 0]), (x, out), (2, 1, 1))
    assert np.array_equal(out, x * 2)
    with pytest.raises(
        SanitizerError, match=r"k: store_view_tko .*block \(1, 0, 0\): a stored element is an unspecified"
    ):
        launch(export(unpadded_scale, [*parameters, 1]), (x, out), (2, 1, 1))


@ct.kernel
def split_sum(x: Any, out: Any, BN: C):
    j = ct.bid(0)
    part = ct.sum(ct.load(x, index=(j,), shape=(BN,), padding_mode=ZERO))
    ct.atomic_add(out, (0,), part)


@ct.kernel
def racing_sum(x: Any, out: Any, BN: C):
    j = ct.bid(0)
    part = ct.sum(ct.load(x, index=(j,), shape=(BN,), padding_mode=ZERO))
    before = ct.load(out, index=(0,), shape=(1,))
    ct.store(out, index=(0,), tile=before + part)


def test_atomics_order_blocks_and_plain_accesses_race() -> None:
    x = np.arange(100, dtype=np.float32)
    parameters = [array(ct.float32, 1), array(ct.float32, 1), 32]
    out = np.zeros(1, np.float32)
    launch(export(split_sum, parameters), (x, out), (4, 1, 1))
    assert out[0] == x.sum()
    with pytest.raises(SanitizerError, match="no token or atomic orders the two"):
        launch(export(racing_sum, parameters), (x, out), (4, 1, 1))


def test_a_broken_promise_of_the_signature() -> None:
    """The kernel was exported for arrays at multiples of 16 bytes."""
    code = export(unpadded_scale, [array(ct.float32, 1), array(ct.float32, 1), 64, 0])
    memory = Allocation(np.zeros(200, np.float32))
    out = Pointer(Allocation(np.zeros(100, np.float32)))
    with pytest.raises(SanitizerError, match=r"assume .*assumed div_by<16>, but the address is"):
        prepare(code).launch("k", [Pointer(memory, 4), 100, 1, out, 100, 1], (2, 1, 1))
