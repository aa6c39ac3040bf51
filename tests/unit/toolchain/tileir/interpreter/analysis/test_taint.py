"""Uses of unspecified elements: one kernel for each trap, and the most similar kernel that is right and must run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toolchain.tileir import interpreter, text
from toolchain.tileir.dialect import attrs, types

F32, I32, I1 = types.f32, types.i32, types.i1
FLOATS, INTS = types.PtrType(F32), types.PtrType(I32)
NEAREST = {"rounding_mode": "nearest_even"}
X, OUT = np.arange(6, dtype=np.float32), np.zeros(8, np.float32)


def tile(shape: tuple[int, ...] = (), element: Any = F32) -> types.TileType:
    return types.TileType(shape, element)


def check(k: Any, value: Any, wanted: list[int] | None, trapped: Any) -> None:
    """`value` is `wanted` for the input X. None: some of its elements are unspecified, so that its sum is trapped."""
    if wanted is None:
        k.store_pointer(k.args[1], total(k, value))
        trapped(k, "a stored element is an unspecified value", X, OUT)
    else:
        out = OUT.copy()
        k.store(k.view(k.args[1], (8,), (8,)), value, 0)
        k.run(X, out)
        assert out.tolist() == wanted


def edge_load(k: Any, size: int = 8) -> Any:
    """Eight elements of a tensor of six, without padding: the last two are unspecified."""
    return k.load(k.view(k.args[0], (6,), (size,), padding=None), 0)[0]


def total(k: Any, value: Any, dim: int = 0) -> Any:
    def region(a: Any, b: Any) -> None:
        k.op("yield", [k.op("addf", a, b, out=[tile()], **NEAREST)])

    shape = tuple(n for d, n in enumerate(value.type.shape) if d != dim)
    numbers = attrs.AttrsAttr((attrs.NumberAttr(0, F32),))
    body = k.region([tile(), tile()], region)
    return k.op("reduce", [value], out=[[tile(shape)]], regions=[body], dim=dim, identities=numbers)


def masked(k: Any, padded: bool = False) -> Any:
    """A masked-off scalar load."""
    off = k.constant(np.bool_(False), I1)
    return k.load_pointer(k.args[0], off, k.i32(0) if padded else None)[0]


def test_padding_may_be_stored(builder: Any) -> None:
    """What is made of it one by one too: rows beyond the end of an array, in a workspace that has room for them."""
    k = builder(FLOATS, FLOATS)
    value = edge_load(k)
    k.store(k.view(k.args[1], (8,), (8,)), k.op("addf", value, value, out=[tile((8,))], **NEAREST), 0)
    out = OUT.copy()
    k.run(X, out)
    assert np.array_equal(out, [0, 2, 4, 6, 8, 10, np.nan, np.nan], equal_nan=True)


@pytest.mark.parametrize("through", ["view", "pointers"])
@pytest.mark.parametrize("kept", [6, 7])
def test_memory_that_holds_padding_is_unspecified(builder: Any, trapped: Any, through: str, kept: int) -> None:
    """Stored padding that is loaded again is still padding: a sum of it with other elements is a trap."""
    k = builder(FLOATS, FLOATS)
    edge, whole = edge_load(k), (8,)
    numbers = k.op("iota", out=[tile(whole, I32)])
    places = k.op("offset", k.spread(k.args[1], whole), numbers, out=[tile(whole, FLOATS)])
    view = k.view(k.args[1], whole, whole)
    stored = k.store(view, edge, 0) if through == "view" else k.store_pointer(places, edge)
    if through == "view":
        loaded, token = k.load_pointer(places, token=stored)
    else:
        loaded, token = k.load(view, 0, token=stored)
    limit = k.spread(k.i32(kept), whole)
    inside = k.op("cmpi", numbers, limit, out=[tile(whole, I1)], comparison_predicate="less_than", signedness="signed")
    value = k.op("select", inside, loaded, k.constant(np.float32(1), F32, whole), out=[tile(whole)])
    k.store_pointer(k.args[1], total(k, value), token=token)
    if kept == 7:
        trapped(k, "a stored element is an unspecified value", X, OUT)
    else:
        out = OUT.copy()
        k.run(X, out)
        assert out[0] == 17


def test_a_later_store_makes_memory_specified_again(builder: Any) -> None:
    k = builder(FLOATS, FLOATS)
    view = k.view(k.args[1], (8,), (8,))
    token = k.store(view, edge_load(k), 0)
    token = k.store(view, k.constant(np.float32(2), F32, (8,)), 0, token=token)
    loaded, token = k.load(view, 0, token=token)
    k.store_pointer(k.args[1], total(k, loaded), token=token)
    out = OUT.copy()
    k.run(X, out)
    assert out[0] == 16


@pytest.mark.parametrize("shape", [(2, 4), (2, 3)])
def test_what_is_made_of_padding_alone_is_padding(builder: Any, trapped: Any, shape: tuple[int, int]) -> None:
    """The sum of a row that is not there may be stored; the sum over a row that ends too early may not."""
    k = builder(FLOATS, FLOATS)
    value = k.load(k.view(k.args[0], shape, (4, 4), padding=None), 0, 0)[0]
    k.store(k.view(k.args[1], (4,), (4,)), total(k, value, dim=1), 0)
    if shape == (2, 3):
        trapped(k, "a stored element is an unspecified value", np.ones(8, np.float32), OUT)
    else:
        out = OUT.copy()
        k.run(np.ones(8, np.float32), out)
        assert np.array_equal(out[:4], [4, 4, np.nan, np.nan], equal_nan=True)


def test_unspecified_elements_that_no_store_keeps(builder: Any) -> None:
    k = builder(FLOATS, FLOATS)
    value = edge_load(k)
    k.store(k.view(k.args[1], (6,), (8,)), k.op("addf", value, value, out=[tile((8,))], **NEAREST), 0)
    out = OUT.copy()
    k.run(X, out)
    assert out.tolist() == [0, 2, 4, 6, 8, 10, 0, 0]


@pytest.mark.parametrize("guarded", [True, False])
def test_select_takes_unspecified_elements_out(builder: Any, trapped: Any, guarded: bool) -> None:
    k = builder(FLOATS, FLOATS)
    value = edge_load(k)
    limit = k.spread(k.i32(6 if guarded else 7), (8,))
    numbers = k.op("iota", out=[tile((8,), I32)])
    inside = k.op("cmpi", numbers, limit, out=[tile((8,), I1)], comparison_predicate="less_than", signedness="signed")
    kept = k.op("select", inside, value, k.constant(np.float32(0), F32, (8,)), out=[tile((8,))])
    check(k, kept, [0, 1, 2, 3, 4, 5, 0, 0] if guarded else None, trapped)


def test_a_sum_over_an_unspecified_element(builder: Any, trapped: Any) -> None:
    k = builder(FLOATS, FLOATS)
    k.store_pointer(k.args[1], total(k, edge_load(k)))
    trapped(k, "store_ptr_tko at .*a stored element is an unspecified value", X, OUT)


def test_a_sum_over_unpacked_elements(builder: Any) -> None:
    """Unpacking traps unspecified elements, so its result has none."""
    k = builder(types.PtrType(types.i8), FLOATS)
    raw = k.load(k.view(k.args[0], (16,), (16,), padding=None), 0)[0]
    k.store_pointer(k.args[1], total(k, k.op("unpack", raw, out=[tile((4,))])))
    out = np.zeros(1, np.float32)
    k.run(X[:4].view(np.int8), out)
    assert out[0] == 6


@pytest.mark.parametrize("name", ["divi", "remi"])
@pytest.mark.parametrize("shape", [(), (2,)])
def test_dividing_by_an_unspecified_zero_is_unspecified(builder: Any, name: str, shape: tuple[int, ...]) -> None:
    k = builder(INTS, INTS)
    rounding = {"rounding": "zero"} if name == "divi" else {}
    value = k.op("xori", masked(k), k.i32(-1), out=[tile((), I32)])  # what is unspecified has all bits set
    five, zero = (k.spread(v, shape) if shape else v for v in (k.i32(5), value))
    k.op(name, five, zero, out=[tile(shape, I32)], signedness="signed", **rounding)
    k.run(np.zeros(1, np.int32), np.zeros(1, np.int32))


def test_poison_stays_in_its_rows_and_columns_of_a_product(builder: Any, trapped: Any) -> None:
    """Rows beyond M are unspecified and never stored; K beyond the end reaches every element."""

    def kernel(rows: int, inner: int) -> Any:
        k = builder(FLOATS, FLOATS, FLOATS)
        a = k.load(k.view(k.args[0], (rows, inner), (4, 4), padding=None), 0, 0)[0]
        b = k.load(k.view(k.args[1], (inner, 4), (4, 4), padding=None), 0, 0)[0]
        product = k.op("mmaf", a, b, k.constant(np.float32(0), F32, (4, 4)), out=[tile((4, 4))])
        k.store(k.view(k.args[2], (rows, 4), (4, 4)), product, 0, 0)
        return k

    arrays = [np.ones(16, np.float32) for _ in range(3)]
    kernel(3, 4).run(*arrays)
    assert arrays[2].tolist() == [4] * 12 + [1] * 4
    trapped(kernel(4, 3), "a stored element", *arrays)


@pytest.mark.parametrize("side", ["lhs", "rhs"])
def test_one_poisoned_operand_poisons_a_product(builder: Any, trapped: Any, side: str) -> None:
    k = builder(FLOATS, FLOATS)
    edge = k.load(k.view(k.args[0], (4, 3) if side == "lhs" else (3, 4), (4, 4), padding=None), 0, 0)[0]
    whole = k.constant(np.float32(1), F32, (4, 4))
    operands = (edge, whole) if side == "lhs" else (whole, edge)
    product = k.op("mmaf", *operands, k.constant(np.float32(0), F32, (4, 4)), out=[tile((4, 4))])
    k.store(k.view(k.args[1], (4, 4), (4, 4)), product, 0, 0)
    trapped(k, "a stored element", np.ones(12, np.float32), np.ones(16, np.float32))


def test_poison_goes_round_a_loop(builder: Any, trapped: Any) -> None:
    k = builder(FLOATS, FLOATS)
    zero = k.constant(np.float32(0), F32, (8,))
    view = k.view(k.args[0], (6,), (8,), padding=None)

    def body(i: Any, sum_: Any) -> None:
        k.op("continue", [k.op("addf", sum_, k.load(view, i)[0], out=[tile((8,))], **NEAREST)])

    loop = k.region([tile((), I32), tile((8,))], body)
    result = k.op("for", k.i32(0), k.i32(1), k.i32(1), [zero], out=[[tile((8,))]], regions=[loop])
    check(k, result, None, trapped)


@pytest.mark.parametrize("poisoned", [True, False])
def test_a_loop_gives_what_it_breaks_with_not_what_it_carries(builder: Any, trapped: Any, poisoned: bool) -> None:
    k = builder(FLOATS, FLOATS)
    clean = k.constant(np.float32(5), F32, (8,))

    def body(carried: Any, _count: Any) -> None:
        k.op("break", [carried if poisoned else clean])

    loop = k.region([tile((8,)), tile((), I32)], body)
    result = k.op("loop", [edge_load(k), k.i32(0)], out=[[tile((8,))]], regions=[loop])
    check(k, result, None if poisoned else [5] * 8, trapped)


def test_a_loop_may_give_fewer_values_than_it_carries() -> None:
    source = Path(__file__).parents[2] / "text" / "corpus" / "collatz.mlir"
    module = text.parse(source.read_text(), filename=source.name)
    numbers = np.array([1, 2, 3, 6, 7, 27], np.int32)
    steps = np.zeros_like(numbers)
    prepared = interpreter.Prepared(module)
    pointers = [interpreter.Pointer(interpreter.Allocation(array)) for array in (numbers, steps)]
    prepared.launch("collatz", pointers, (len(numbers), 1, 1))
    assert steps.tolist() == [0, 1, 7, 8, 16, 111]


@pytest.mark.parametrize("use", ["branch", "address", "index", "bound", "mask", "assert", "print", "atomic"])
def test_depending_on_an_unspecified_value(builder: Any, trapped: Any, use: str) -> None:
    k = builder(INTS, INTS)
    value = masked(k)
    condition = k.op("cmpi", value, k.i32(0), out=[tile((), I1)], comparison_predicate="equal", signedness="signed")
    if use == "branch":
        empty = [k.region([], lambda: k.op("yield", [])) for _ in range(2)]
        k.op("if", condition, out=[[]], regions=empty)
    elif use == "address":
        k.load_pointer(k.op("offset", k.args[1], value, out=[k.args[1].type]))
    elif use == "index":
        k.load(k.view(k.args[1], (8,), (8,)), value)
    elif use == "bound":
        k.op(
            "for",
            k.i32(0),
            value,
            k.i32(1),
            [],
            out=[[]],
            regions=[k.region([tile((), I32)], lambda _i: k.op("continue", []))],
        )
    elif use == "mask":
        k.store_pointer(k.args[1], k.i32(0), condition)
    elif use == "assert":
        k.op("assert", condition, message="")
    elif use == "print":
        k.op("print_tko", [value], [], out=[types.token], str="%d")
    else:
        fields = {"memory_ordering_semantics": "relaxed", "memory_scope": "device", "mode": "add"}
        k.op("atomic_rmw_tko", k.args[1], value, [], [], out=[tile((), I32), types.token], **fields)
    trapped(k, "unspecified value", np.zeros(8, np.int32), np.zeros(8, np.int32), runs_unchecked=False)


def test_a_masked_load_with_padding_is_no_poison(builder: Any) -> None:
    k = builder(INTS, INTS)
    k.store_pointer(k.args[1], masked(k, padded=True))
    out = np.full(1, 9, np.int32)
    k.run(np.ones(1, np.int32), out)
    assert out[0] == 0


@pytest.mark.parametrize(("index", "kept"), [(3, False), (0, True)])
def test_insert_over_unspecified_elements(builder: Any, trapped: Any, index: int, kept: bool) -> None:
    k = builder(FLOATS, FLOATS)
    part = k.constant(np.float32(9), F32, (2,))
    value = k.op("insert", part, edge_load(k), [k.i32(index)], out=[tile((8,))])
    check(k, value, None if kept else [0, 1, 2, 3, 4, 5, 9, 9], trapped)


@pytest.mark.parametrize("kept", [False, True])
def test_insert_of_unspecified_elements(builder: Any, trapped: Any, kept: bool) -> None:
    k = builder(FLOATS, FLOATS)
    part = k.load(k.view(k.args[0], (6,), (4,), padding=None), 1)[0]  # 4, 5 and two that are not there
    value = k.op("insert", part, k.constant(np.float32(9), F32, (8,)), [k.i32(1)], out=[tile((8,))])
    if kept:
        check(k, value, None, trapped)
    else:
        k.store(k.view(k.args[1], (6,), (8,)), value, 0)
        out = OUT.copy()
        k.run(X, out)
        assert out.tolist() == [9, 9, 9, 9, 4, 5, 0, 0]


def scan(k: Any, value: Any) -> Any:
    def region(a: Any, b: Any) -> None:
        k.op("yield", [k.op("addf", a, b, out=[tile()], **NEAREST)])

    numbers = attrs.AttrsAttr((attrs.NumberAttr(0, F32),))
    body = k.region([tile(), tile()], region)
    return k.op("scan", [value], out=[[value.type]], regions=[body], dim=0, reverse=False, identities=numbers)


@pytest.mark.parametrize("first_missing", [False, True])
def test_a_scan_spreads_padding_to_the_elements_behind_it(builder: Any, trapped: Any, first_missing: bool) -> None:
    k = builder(FLOATS, FLOATS)
    part = k.op("extract", edge_load(k), [k.i32(3)], out=[tile((2,))])  # both are not there
    ones = k.constant(np.float32(1), F32, (2,))
    value = k.op("cat", *((part, ones) if first_missing else (ones, part)), out=[tile((4,))], dim=0)
    k.store(k.view(k.args[1], (4,), (4,)), scan(k, value), 0)
    if first_missing:
        trapped(k, "a stored element is an unspecified value", X, OUT)
    else:
        out = OUT.copy()
        k.run(X, out)
        assert out[:2].tolist() == [1, 2]


@pytest.mark.parametrize("active", [True, False])
@pytest.mark.parametrize("name", ["atomic_rmw_tko", "atomic_cas_tko", "atomic_red_view_tko"])
def test_an_atomic_takes_only_the_elements_that_it_touches(builder: Any, trapped: Any, name: str, active: bool) -> None:
    k = builder(INTS, INTS)
    size = 8 if active else 6
    value = k.load(k.view(k.args[0], (6,), (8,), padding=None), 0)[0]
    ordering = {"memory_ordering_semantics": "relaxed", "memory_scope": "device"}
    if name == "atomic_red_view_tko":
        view = k.view(k.args[1], (size,), (8,))
        k.op(name, view, [k.i32(0)], value, [], out=[types.token], mode="add", **ordering)
    else:
        numbers = k.op("iota", out=[tile((8,), I32)])
        mask = k.op(
            "cmpi", numbers, k.spread(k.i32(size), (8,)), out=[tile((8,), I1)], comparison_predicate="less_than",
            signedness="signed",
        )  # fmt: skip
        places = k.op("offset", k.spread(k.args[1], (8,)), numbers, out=[tile((8,), INTS)])
        old = k.constant(np.int32(100), I32, (8,))
        values, fields = ((value,), {"mode": "add"}) if name == "atomic_rmw_tko" else ((old, value), {})
        k.op(name, places, *values, [mask], [], out=[tile((8,), I32), types.token], **fields, **ordering)
    x, out = np.arange(6, dtype=np.int32), np.full(8, 100, np.int32)
    if active:
        trapped(k, "an operand of an atomic is an unspecified value", x, out)
    else:
        k.run(x, out)
        start = 0 if name == "atomic_cas_tko" else 100
        assert out.tolist() == [start + n for n in range(6)] + [100, 100]
