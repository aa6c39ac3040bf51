"""Ops that move elements, matrix products, reductions and scans, against numpy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from xdsl.ir import Attribute

from toolchain.tileir.dialect import attrs, types

BF16 = ml_dtypes.bfloat16
F32 = types.f32


def on_tiles(builder: Any, body: Any, inputs: list[np.ndarray], result: np.ndarray) -> np.ndarray:
    """Run `body(k, *tiles) -> tile` on whole arrays."""
    element = {"float32": F32, "bfloat16": types.bf16, "int32": types.i32, "int8": types.i8, "float16": types.f16}
    k = builder(*(types.PtrType(element[a.dtype.name]) for a in (*inputs, result)))
    loaded = [k.load(k.view(p, a.shape, a.shape), *[0] * a.ndim)[0] for p, a in zip(k.args[:-1], inputs, strict=True)]
    k.store(k.view(k.args[-1], result.shape, result.shape), body(k, *loaded), *[0] * result.ndim)
    k.run(*inputs, result)
    return result


def tile(shape: tuple[int, ...], element: Attribute = F32) -> types.TileType:
    return types.TileType(shape, element)


X = np.arange(32, dtype=np.float32).reshape(4, 8)


def test_reshape_is_row_major(builder: Any) -> None:
    out = on_tiles(
        builder, lambda _k, x: _k.op("reshape", x, out=[tile((2, 2, 8))]), [X], np.zeros((2, 2, 8), np.float32)
    )
    assert np.array_equal(out, X.reshape(2, 2, 8))


@pytest.mark.parametrize("source", [(4, 1), (1, 8)])
def test_broadcast_then_reshape_repeats(builder: Any, source: tuple[int, int]) -> None:
    x = X[: source[0], : source[1]].copy()

    def body(k: Any, x: Any) -> Any:
        return k.op("reshape", k.op("broadcast", x, out=[tile((4, 8))]), out=[tile((32,))])

    out = on_tiles(builder, body, [x], np.zeros(32, np.float32))
    assert np.array_equal(out, np.broadcast_to(x, (4, 8)).reshape(-1))


def test_a_splat_reduces_over_its_whole_extent(builder: Any) -> None:
    def body(k: Any, _x: Any) -> Any:
        ones = k.constant(np.float32(1), F32, (4, 8))
        return combine(k, "reduce", [ones], 1, [tile((4,))], lambda a, b: k.op("addf", a, b, out=[tile(())], **NEAREST))

    assert on_tiles(builder, body, [X], np.zeros(4, np.float32)).tolist() == [8] * 4


NEAREST = {"rounding_mode": "nearest_even"}


def combine(k: Any, name: str, values: list[Any], dim: int, out: list[Any], body: Any, **fields: Any) -> Any:
    """A reduce or scan whose region is `body(left, right, ...)`, of a scan (accumulated, current)."""
    scalars = [tile((), v.type.element_type) for v in values]

    def region(*arguments: Any) -> None:
        results = body(*arguments)
        k.op("yield", list(results) if isinstance(results, tuple) else [results])

    inner = k.region([t for s in scalars for t in (s, s)], region)
    numbers = attrs.AttrsAttr(tuple(attrs.NumberAttr(0, s.element_type) for s in scalars))
    return k.op(name, values, out=[out], regions=[inner], dim=dim, identities=numbers, **fields)


def test_permute(builder: Any) -> None:
    x = np.arange(64, dtype=np.float32).reshape(2, 4, 8)
    out = on_tiles(
        builder, lambda k, t: k.op("permute", t, out=[tile((8, 2, 4))], permutation=(2, 0, 1)), [x],
        np.zeros((8, 2, 4), np.float32),
    )  # fmt: skip
    assert np.array_equal(out, x.transpose(2, 0, 1))


def test_cat_and_extract(builder: Any) -> None:
    def body(k: Any, a: Any, b: Any) -> Any:
        both = k.op("cat", a, b, out=[tile((4, 16))], dim=1)
        return k.op("extract", both, [k.i32(1), k.i32(2)], out=[tile((2, 4))])

    out = on_tiles(builder, body, [X, -X], np.zeros((2, 4), np.float32))
    assert np.array_equal(out, np.concatenate((X, -X), 1)[2:4, 8:12])


def test_select_and_iota(builder: Any) -> None:
    def body(k: Any, x: Any) -> Any:
        numbers = k.op("iota", out=[tile((8,), types.i32)])
        limit = k.spread(k.i32(3), (8,))
        low = k.op(
            "cmpi", numbers, limit, out=[tile((8,), types.i1)], comparison_predicate="less_than", signedness="signed"
        )
        row = k.op("broadcast", k.op("reshape", low, out=[tile((1, 8), types.i1)]), out=[tile((4, 8), types.i1)])
        return k.op("select", row, x, k.constant(np.float32(-1), F32, (4, 8)), out=[tile((4, 8))])

    out = on_tiles(builder, body, [X], np.zeros((4, 8), np.float32))
    assert np.array_equal(out, np.where(np.arange(8) < 3, X, -1))


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("dtype", [np.float32, BF16])
def test_sum(builder: Any, dim: int, dtype: Any) -> None:
    x = np.random.default_rng(0).standard_normal((16, 8)).astype(dtype)
    element = F32 if dtype is np.float32 else types.bf16
    n = x.shape[1 - dim]

    def body(k: Any, t: Any) -> Any:
        return combine(
            k, "reduce", [t], dim, [tile((n,), element)],
            lambda a, b: k.op("addf", a, b, out=[tile((), element)], **NEAREST),
        )  # fmt: skip

    out = on_tiles(builder, body, [x], np.zeros(n, dtype)).astype(np.float64)
    assert np.allclose(out, x.astype(np.float64).sum(dim), atol=1e-6 if dtype is np.float32 else 0.1)


def test_reduction_of_two_tiles_finds_the_first_largest(builder: Any) -> None:
    x = np.array([[3, 9, 9, 1], [5, 5, 5, 5], [0, 1, 2, 3], [7, 1, 7, 9]], np.float32)
    i32, i1 = types.i32, types.i1

    def body(k: Any, t: Any) -> Any:
        numbers = k.op("reshape", k.op("iota", out=[tile((4,), i32)]), out=[tile((1, 4), i32)])
        numbers = k.op("broadcast", numbers, out=[tile((4, 4), i32)])

        def better(a: Any, b: Any, i: Any, j: Any) -> tuple[Any, Any]:
            fields = {"comparison_ordering": "ordered"}
            above = k.op("cmpf", a, b, out=[tile((), i1)], comparison_predicate="greater_than", **fields)
            same = k.op("cmpf", a, b, out=[tile((), i1)], comparison_predicate="equal", **fields)
            first = k.op("cmpi", i, j, out=[tile((), i1)], comparison_predicate="less_than", signedness="signed")
            left = k.op("ori", above, k.op("andi", same, first, out=[tile((), i1)]), out=[tile((), i1)])
            return k.op("select", left, a, b, out=[tile(())]), k.op("select", left, i, j, out=[tile((), i32)])

        return combine(k, "reduce", [t, numbers], 1, [tile((4,)), tile((4,), i32)], better)[1]

    assert on_tiles(builder, body, [x], np.zeros(4, np.int32)).tolist() == [1, 0, 3, 3]


def test_reduction_to_a_scalar(builder: Any) -> None:
    x = np.arange(8, dtype=np.int32)

    def body(k: Any, t: Any) -> Any:
        total = combine(
            k, "reduce", [t], 0, [tile((), types.i32)],
            lambda a, b: k.op("addi", a, b, out=[tile((), types.i32)], overflow="none"),
        )  # fmt: skip
        doubled = k.op("muli", total, k.i32(2), out=[tile((), types.i32)], overflow="none")
        return k.op("reshape", doubled, out=[tile((1,), types.i32)])

    assert on_tiles(builder, body, [x], np.zeros(1, np.int32)).tolist() == [56]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dim", [0, 1])
def test_scan(builder: Any, dim: int, reverse: bool) -> None:
    def body(k: Any, t: Any) -> Any:
        return combine(
            k, "scan", [t], dim, [tile((4, 8))], lambda a, b: k.op("addf", a, b, out=[tile(())], **NEAREST),
            reverse=reverse,
        )  # fmt: skip

    expected = np.flip(np.cumsum(np.flip(X, dim), dim), dim) if reverse else np.cumsum(X, dim)
    assert np.array_equal(on_tiles(builder, body, [X], np.zeros((4, 8), np.float32)), expected)


def scanned(builder: Any, shape: tuple[int, ...], body: Any, *inputs: Any, reverse: bool = False) -> list[int]:
    """The flat first result of a scan of i32 tiles along the last dimension."""
    kind = tile(shape, types.i32)

    def scan(k: Any, *tiles: Any) -> Any:
        found = combine(
            k, "scan", list(tiles), len(shape) - 1, [kind] * len(tiles), lambda *a: body(k, *a), reverse=reverse
        )
        return found[0] if isinstance(found, tuple) else found

    arrays = [np.array(x, np.int32).reshape(shape) for x in inputs]
    return on_tiles(builder, scan, arrays, np.zeros(shape, np.int32)).reshape(-1).tolist()


def newest(k: Any, condition: Any, value: Any, otherwise: Any) -> Any:
    """`value` where `condition` is not 0."""
    zero = k.constant(np.int32(0), types.i32)
    given = k.op(
        "cmpi", condition, zero, out=[tile((), types.i1)], comparison_predicate="not_equal", signedness="signed"
    )
    return k.op("select", given, value, otherwise, out=[tile((), types.i32)])


GAPS = [0, 5, 0, 0, 7, 0, 9, 0]


@pytest.mark.parametrize(("reverse", "filled"), [(False, [0, 5, 5, 5, 7, 7, 9, 9]), (True, [5, 5, 7, 7, 7, 9, 9, 0])])
@pytest.mark.parametrize("shape", [(8,), (1, 8)])
def test_a_scan_takes_what_is_accumulated_and_then_the_current_element(
    builder: Any, shape: tuple[int, ...], reverse: bool, filled: list[int]
) -> None:
    """Measured on an H100. The newest number that is not 0 is associative, but does not commute."""

    def latest(k: Any, before: Any, current: Any) -> Any:
        return newest(k, current, current, before)

    def earliest(k: Any, before: Any, current: Any) -> Any:
        return newest(k, before, before, current)

    first = [0, 5, 5, 5, 5, 5, 5, 5] if not reverse else [9, 9, 9, 9, 9, 9, 9, 0]
    assert scanned(builder, shape, latest, GAPS, reverse=reverse) == filled
    assert scanned(builder, shape, earliest, GAPS, reverse=reverse) == first


def test_a_scan_of_two_tiles_takes_both_of_one_before_both_of_the_other(builder: Any) -> None:
    def affine(k: Any, a: Any, c: Any, b: Any, d: Any) -> Any:
        """c(a(x)) of x -> a * x + b, which does not commute."""

        def whole(name: str, x: Any, y: Any) -> Any:
            return k.op(name, x, y, out=[tile((), types.i32)], overflow="none")

        return whole("muli", a, c), whole("addi", whole("muli", c, b), d)

    scale, offset = [2, 3, 1, 2], [1, 0, 5, 7]
    at, values = 0, []
    for a, b in zip(scale, offset, strict=True):
        at = a * at + b
        values.append(at)
    assert scanned(builder, (4,), lambda k, b, d, a, c: affine(k, a, c, b, d)[::-1], offset, scale) == values


@pytest.mark.parametrize("name", ["reduce", "scan"])
def test_a_combination_that_is_a_constant(builder: Any, name: str) -> None:
    def body(k: Any, t: Any) -> Any:
        shape = (4, 8) if name == "scan" else (4,)
        order = {"reverse": False} if name == "scan" else {}
        seven = combine(k, name, [t], 1, [tile(shape)], lambda _a, _b: k.constant(np.float32(7), F32), **order)
        return k.op("addf", seven, seven, out=[tile(shape)], **NEAREST)

    out = on_tiles(builder, body, [X], np.zeros((4, 8) if name == "scan" else 4, np.float32))
    first = np.array([[0.0], [16], [32], [48]]) if name == "scan" else np.zeros((4, 0))
    assert np.array_equal(out.reshape(4, -1), np.concatenate((first, np.full((4, 8), 14)), 1)[:, : out.size // 4])


@pytest.mark.parametrize("batch", [(), (3,)])
def test_matrix_product(builder: Any, batch: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    batch = (4,) if batch else ()
    a, b = (rng.standard_normal((*batch, *s)).astype(BF16) for s in ((8, 16), (16, 4)))
    c = rng.standard_normal((*batch, 8, 4)).astype(np.float32)
    out = on_tiles(
        builder, lambda k, *t: k.op("mmaf", *t, out=[tile((*batch, 8, 4))]), [a, b, c],
        np.zeros((*batch, 8, 4), np.float32),
    )  # fmt: skip
    assert np.allclose(out, a.astype(np.float64) @ b.astype(np.float64) + c, atol=1e-5)


def test_a_long_product_is_added_up_in_short_chains(builder: Any) -> None:
    """Behind 2^24 a chain of f32 loses each 1; other chains add up theirs first. The first has 31, or fewer: what
    multiplies may split it."""
    a, b = np.ones((2, 1024), BF16), np.ones((1024, 2), BF16)
    b[0] = 2.0**24
    zero = np.zeros((2, 2), np.float32)
    out = on_tiles(builder, lambda k, *t: k.op("mmaf", *t, out=[tile((2, 2))]), [a, b, zero], zero.copy())
    assert (out >= 2.0**24 + 1024 - 32).all() and (out <= 2.0**24 + 1024).all()


def test_product_into_f16_is_rounded(builder: Any) -> None:
    a, b = np.full((2, 2), 1, np.float16), np.full((2, 2), 2.0**-12, np.float16)
    c = np.ones((2, 2), np.float16)
    body = lambda k, *t: k.op("mmaf", *t, out=[tile((2, 2), types.f16)])  # noqa: E731
    assert on_tiles(builder, body, [a, b, c], np.zeros((2, 2), np.float16)).tolist() == [[1, 1], [1, 1]]


def test_integer_product_by_signedness(builder: Any) -> None:
    a, b = np.full((2, 64), -1, np.int8), np.full((64, 2), -128, np.int8)
    c = np.full((2, 2), 5, np.int32)

    def product(lhs: str, rhs: str) -> int:
        def body(k: Any, *t: Any) -> Any:
            return k.op("mmai", *t, out=[tile((2, 2), types.i32)], signedness_lhs=lhs, signedness_rhs=rhs)

        return int(on_tiles(builder, body, [a, b, c], np.zeros((2, 2), np.int32))[0, 0])

    assert product("signed", "signed") == 64 * 128 + 5
    assert product("unsigned", "signed") == -64 * 255 * 128 + 5
    assert product("unsigned", "unsigned") == 64 * 255 * 128 + 5


def test_pack_and_unpack_are_the_bytes_in_memory(builder: Any) -> None:
    x = np.array([1.5, -2.0, 0.1, 3.0], np.float32)
    packed = on_tiles(builder, lambda k, t: k.op("pack", t, out=[tile((16,), types.i8)]), [x], np.zeros(16, np.int8))
    assert packed.tobytes() == x.tobytes()
    back = on_tiles(builder, lambda k, t: k.op("unpack", t, out=[tile((4,))]), [packed], np.zeros(4, np.float32))
    assert np.array_equal(back, x)


def test_insert(builder: Any) -> None:
    def body(k: Any, x: Any, y: Any) -> Any:
        part = k.op("extract", y, [k.i32(0), k.i32(1)], out=[tile((2, 2))])
        return k.op("insert", part, x, [k.i32(1), k.i32(3)], out=[tile((4, 8))])

    expected = X.copy()
    expected[2:4, 6:8] = -X[0:2, 2:4]
    assert np.array_equal(on_tiles(builder, body, [X, -X], np.zeros((4, 8), np.float32)), expected)


def test_insert_of_what_is_equal_everywhere(builder: Any) -> None:
    """Splats are kept as one element."""

    def body(k: Any, x: Any) -> Any:
        part, rest = (k.constant(np.float32(v), F32, s) for v, s in ((1, (2, 8)), (2, (4, 8))))
        return k.op("addf", x, k.op("insert", part, rest, [k.i32(1), k.i32(0)], out=[tile((4, 8))]),
                    out=[tile((4, 8))], **NEAREST)  # fmt: skip

    expected = X + np.repeat(np.array([[2.0], [1.0]], np.float32), 2, 0)
    assert np.array_equal(on_tiles(builder, body, [X], np.zeros((4, 8), np.float32)), expected)


def test_insert_and_extract_of_a_scalar_are_the_scalar(builder: Any) -> None:
    k = builder(types.PtrType(types.i32))
    scalar = tile((), types.i32)
    part = k.op("extract", k.i32(5), [], out=[scalar])
    k.store_pointer(k.args[0], k.op("insert", part, k.i32(7), [], out=[scalar]))
    out = np.zeros(1, np.int32)
    k.run(out)
    assert out[0] == 5
