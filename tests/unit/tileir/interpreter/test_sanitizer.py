"""One kernel per trap, and for each the closest kernel that is right and must run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from toolchain.errors import SanitizerError
from toolchain.tileir.dialect import attrs, types

F32, I32, I64, I1 = types.f32, types.i32, types.i64, types.i1
FLOATS, INTS = types.PtrType(F32), types.PtrType(I32)
NEAREST = {"rounding_mode": "nearest_even"}
WEAK = {"memory_ordering_semantics": "weak"}


def tile(shape: tuple[int, ...] = (), element: Any = F32) -> types.TileType:
    return types.TileType(shape, element)


def trapped(
    k: Any, message: str, *args: Any, grid: tuple[int, int, int] = (1, 1, 1), runs_unchecked: bool = True
) -> str:
    """The kernel traps, with its entry and a location; without sanitizing it runs."""
    prepared = k.prepare()
    from toolchain.tileir.interpreter import Allocation, Pointer

    def bound() -> list[Any]:
        return [Pointer(Allocation(a.copy())) if isinstance(a, np.ndarray) else a for a in args]

    with pytest.raises(SanitizerError, match=message) as caught:
        prepared.launch("k", bound(), grid)
    assert str(caught.value).startswith("k: ") and "kernel.mlir:" in str(caught.value)
    if runs_unchecked:
        prepared.launch("k", bound(), grid, sanitize=False)
    return str(caught.value)


X, OUT = np.arange(6, dtype=np.float32), np.zeros(8, np.float32)


def stores(k: Any, wanted: list[int] | None) -> None:
    """What the kernel makes of X; None: it stores an unspecified element, which is trapped."""
    out = OUT.copy()
    if wanted is None:
        trapped(k, "a stored element", X, out)
    else:
        k.run(X, out)
        assert out.tolist() == wanted


def edge_load(k: Any, size: int = 8) -> Any:
    """Eight elements of a tensor of six, without padding: the last two are unspecified."""
    return k.load(k.view(k.args[0], (6,), (size,), padding=None), 0)[0]


# Unspecified elements


def test_storing_an_unspecified_element(builder: Any) -> None:
    k = builder(FLOATS, FLOATS)
    value = edge_load(k)
    k.store(k.view(k.args[1], (8,), (8,)), k.op("addf", value, value, out=[tile((8,))], **NEAREST), 0)
    message = trapped(k, "a stored element is an unspecified value", X, OUT)
    assert "store_view_tko at kernel.mlir:9:3, block (0, 0, 0)" in message


def test_unspecified_elements_that_no_store_keeps(builder: Any) -> None:
    k = builder(FLOATS, FLOATS)
    value = edge_load(k)
    k.store(k.view(k.args[1], (6,), (8,)), k.op("addf", value, value, out=[tile((8,))], **NEAREST), 0)
    out = OUT.copy()
    k.run(X, out)
    assert out.tolist() == [0, 2, 4, 6, 8, 10, 0, 0]


@pytest.mark.parametrize("guarded", [True, False])
def test_select_takes_unspecified_elements_out(builder: Any, guarded: bool) -> None:
    k = builder(FLOATS, FLOATS)
    value = edge_load(k)
    limit = k.spread(k.i32(6 if guarded else 7), (8,))
    numbers = k.op("iota", out=[tile((8,), I32)])
    inside = k.op("cmpi", numbers, limit, out=[tile((8,), I1)], comparison_predicate="less_than", signedness="signed")
    kept = k.op("select", inside, value, k.constant(np.float32(0), F32, (8,)), out=[tile((8,))])
    k.store(k.view(k.args[1], (8,), (8,)), kept, 0)
    if guarded:
        k.run(X, OUT.copy())
    else:
        trapped(k, "a stored element", X, OUT)


def total(k: Any, value: Any, dim: int = 0) -> Any:
    def region(a: Any, b: Any) -> None:
        k.op("yield", [k.op("addf", a, b, out=[tile()], **NEAREST)])

    shape = tuple(n for d, n in enumerate(value.type.shape) if d != dim)
    numbers = attrs.AttrsAttr((attrs.NumberAttr(0, F32),))
    body = k.region([tile(), tile()], region)
    return k.op("reduce", [value], out=[[tile(shape)]], regions=[body], dim=dim, identities=numbers)


def test_a_sum_over_an_unspecified_element(builder: Any) -> None:
    k = builder(FLOATS, FLOATS)
    k.store_pointer(k.args[1], total(k, edge_load(k)))
    trapped(k, "store_ptr_tko at .*a stored element is an unspecified value", X, OUT)


def test_a_sum_over_unpacked_elements(builder: Any) -> None:
    """Unpacking forbids unspecified elements: what it gives has none."""
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


def test_poison_stays_in_its_rows_and_columns_of_a_product(builder: Any) -> None:
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
def test_one_poisoned_operand_poisons_a_product(builder: Any, side: str) -> None:
    k = builder(FLOATS, FLOATS)
    edge = k.load(k.view(k.args[0], (4, 3) if side == "lhs" else (3, 4), (4, 4), padding=None), 0, 0)[0]
    whole = k.constant(np.float32(1), F32, (4, 4))
    operands = (edge, whole) if side == "lhs" else (whole, edge)
    product = k.op("mmaf", *operands, k.constant(np.float32(0), F32, (4, 4)), out=[tile((4, 4))])
    k.store(k.view(k.args[1], (4, 4), (4, 4)), product, 0, 0)
    trapped(k, "a stored element", np.ones(12, np.float32), np.ones(16, np.float32))


def test_poison_goes_round_a_loop(builder: Any) -> None:
    k = builder(FLOATS, FLOATS)
    zero = k.constant(np.float32(0), F32, (8,))
    view = k.view(k.args[0], (6,), (8,), padding=None)

    def body(i: Any, sum_: Any) -> None:
        k.op("continue", [k.op("addf", sum_, k.load(view, i)[0], out=[tile((8,))], **NEAREST)])

    loop = k.region([tile((), I32), tile((8,))], body)
    result = k.op("for", k.i32(0), k.i32(1), k.i32(1), [zero], out=[[tile((8,))]], regions=[loop])
    k.store(k.view(k.args[1], (8,), (8,)), result, 0)
    trapped(k, "a stored element", X, OUT)


def masked(k: Any, padded: bool = False) -> Any:
    """A masked-off scalar load."""
    off = k.constant(np.bool_(False), I1)
    return k.load_pointer(k.args[0], off, k.i32(0) if padded else None)[0]


@pytest.mark.parametrize("use", ["branch", "address", "index", "bound", "mask", "assert", "print", "atomic"])
def test_depending_on_an_unspecified_value(builder: Any, use: str) -> None:
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
        k.op("print_tko", [value], [], out=[[]], str="%d")
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


# Accesses outside an allocation


@pytest.mark.parametrize(("offset", "where"), [(6, "beyond its end"), (-1, "before its start"), (2**31 - 1, "beyond")])
@pytest.mark.parametrize("access", ["load", "store", "atomic"])
@pytest.mark.parametrize("sanitize", [True, False])
def test_outside_an_allocation(builder: Any, access: str, offset: int, where: str, sanitize: bool) -> None:
    k = builder(INTS)
    place = k.op("offset", k.args[0], k.i32(offset), out=[k.args[0].type])
    if access == "load":
        k.load_pointer(place)
    elif access == "store":
        k.store_pointer(place, k.i32(0))
    else:
        fields = {"memory_ordering_semantics": "relaxed", "memory_scope": "device", "mode": "add"}
        k.op("atomic_rmw_tko", place, k.i32(1), [], [], out=[tile((), I32), types.token], **fields)
    with pytest.raises(SanitizerError, match=rf"_tko at kernel\.mlir:.*block \(0, 0, 0\): .* 24 bytes \({where}"):
        k.run(np.zeros(6, np.int32), sanitize=sanitize)


def test_misaligned_address(builder: Any) -> None:
    k = builder(INTS)
    i64 = tile((), I64)
    address = k.op("ptr_to_int", k.args[0], out=[i64])
    odd = k.op("addi", address, k.constant(np.int64(2), I64), out=[i64], overflow="none")
    k.load_pointer(k.op("int_to_ptr", odd, out=[k.args[0].type]))
    trapped(k, "not a multiple of its 4 bytes", np.zeros(6, np.int32), runs_unchecked=False)


def test_misaligned_tensor(builder: Any) -> None:
    from toolchain.tileir.interpreter import Allocation, Pointer

    k = builder(INTS)
    k.view(k.args[0], (2,), (2,))
    with pytest.raises(SanitizerError, match="starts at byte 2, not a multiple of its element size"):
        k.prepare().launch("k", [Pointer(Allocation(np.zeros(4, np.int32)), 2)], (1, 1, 1))


@pytest.mark.parametrize(("offset", "inside"), [(5, True), (6, False)])
def test_the_first_byte_beyond_the_end(builder: Any, offset: int, inside: bool) -> None:
    k = builder(types.PtrType(types.i8))
    k.load_pointer(k.op("offset", k.args[0], k.i32(offset), out=[k.args[0].type]))
    if inside:
        k.run(np.zeros(6, np.int8))
    else:
        trapped(k, "bytes 6 .. 6 of an allocation of 6 bytes", np.zeros(6, np.int8), runs_unchecked=False)


# Assumptions


@pytest.mark.parametrize(
    ("predicate", "good", "bad"),
    [
        (attrs.DivByAttr(8), 24, 20),
        (attrs.BoundedAttr(0, None), 0, -1),
        (attrs.BoundedAttr(-5, 7), 7, 8),
    ],
)
def test_assumption_about_an_integer(builder: Any, predicate: Any, good: int, bad: int) -> None:
    k = builder(I32)
    k.op("assume", k.args[0], out=[k.args[0].type], predicate=predicate)
    k.run(good)
    k = builder(I32)
    k.op("assume", k.args[0], out=[k.args[0].type], predicate=predicate)
    assert f"assume at kernel.mlir:1:3, before the first block: assumed" in trapped(k, f"value is {bad}", bad)  # noqa: F541


@pytest.mark.parametrize(
    ("divisor", "offset", "holds"), [(16, 16, True), (16, 8, False), (256, 0, True), (512, 0, False)]
)
def test_assumption_about_an_address(builder: Any, divisor: int, offset: int, holds: bool) -> None:
    from toolchain.tileir.interpreter import Allocation, Pointer

    k = builder(INTS)
    k.op("assume", k.args[0], out=[k.args[0].type], predicate=attrs.DivByAttr(divisor))
    args = [Pointer(Allocation(np.zeros(16, np.int32)), offset)]
    if holds:
        k.prepare().launch("k", args, (1, 1, 1))
    else:
        with pytest.raises(SanitizerError, match=rf"div_by<{divisor}>, but the address is 0x"):
            k.prepare().launch("k", args, (1, 1, 1))


@pytest.mark.parametrize(
    ("predicate", "good", "bad"),
    [
        (attrs.DivByAttr(4, 4, 0), [4, 5, 6, 7, 12, 13, 14, 15], [4, 5, 6, 7, 13, 14, 15, 16]),
        (attrs.DivByAttr(1, 4, 0), [4, 5, 6, 7, 13, 14, 15, 16], [4, 5, 7, 7, 13, 14, 15, 16]),
        (attrs.SameElementsAttr((2,)), [1, 1, 2, 2, 3, 3, 3, 3], [1, 1, 2, 2, 3, 4, 4, 4]),
    ],
)
def test_assumption_about_groups(builder: Any, predicate: Any, good: list[int], bad: list[int]) -> None:
    def kernel(values: list[int]) -> Any:
        k = builder()
        value = k.constant(np.array(values, np.int32), I32)
        k.op("assume", value, out=[value.type], predicate=predicate)
        return k

    kernel(good).run()
    trapped(kernel(bad), "assume at .*assumed")


@pytest.mark.parametrize(("step", "holds"), [(1, True), (2, False)])
def test_assumption_about_groups_of_addresses(builder: Any, step: int, holds: bool) -> None:
    """Within a group addresses go up by an element's size."""
    k = builder(INTS)
    numbers = k.constant(np.arange(4, dtype=np.int32) * step, I32)
    places = k.op("offset", k.spread(k.args[0], (4,)), numbers, out=[tile((4,), INTS)])
    k.op("assume", places, out=[places.type], predicate=attrs.DivByAttr(16, 4, 0))
    if holds:
        k.run(np.zeros(8, np.int32))
    else:
        trapped(k, "div_by<16, every 4 along 0>", np.zeros(8, np.int32))


# Integers


def loaded(k: Any, n: int) -> list[Any]:
    """The first n i32 in memory, so that nothing is known before a block runs."""
    return [k.load_pointer(k.op("offset", k.args[0], k.i32(i), out=[k.args[0].type]))[0] for i in range(n)]


MAX, MIN = 2**31 - 1, -(2**31)


@pytest.mark.parametrize("shape", [(), (4,)])
@pytest.mark.parametrize(
    ("name", "flags", "good", "bad"),
    [
        ("addi", "no_signed_wrap", (MAX, 0), (MAX, 1)),
        ("addi", "no_unsigned_wrap", (MAX, 1), (-1, 1)),
        ("addi", "no_wrap", (MAX - 1, 1), (MAX, 1)),
        ("subi", "no_signed_wrap", (MIN, 0), (MIN, 1)),
        ("subi", "no_unsigned_wrap", (1, 1), (0, 1)),
        ("muli", "no_signed_wrap", (2**30, -2), (2**30, 2)),
        ("muli", "no_unsigned_wrap", (2**30, 2), (2**30, 4)),
        ("shli", "no_signed_wrap", (1, 30), (1, 31)),
        ("shli", "no_unsigned_wrap", (1, 31), (2, 31)),
    ],
)
def test_overflow(
    builder: Any, name: str, flags: str, good: tuple[int, int], bad: tuple[int, int], shape: tuple[int, ...]
) -> None:
    def kernel() -> Any:
        k = builder(INTS)
        values = [v if shape == () else k.spread(v, shape) for v in loaded(k, 2)]
        k.op(name, *values, out=[tile(shape, I32)], overflow=flags)
        return k

    kernel().run(np.array(good, np.int32))
    trapped(kernel(), f"{name} at .*(un)?signed overflow in a {flags} {name}", np.array(bad, np.int32))


def test_overflow_of_i64_and_of_negation_and_truncation(builder: Any) -> None:
    def kernel(name: str, flags: str, value: int, element: Any = I64) -> Any:
        k = builder()
        x = k.constant(np.array([value] * 2, np.int64), I64)
        operands = (x, x) if name in ("addi", "muli") else (x,)
        k.op(name, *operands, out=[tile((2,), element)], overflow=flags)
        return k

    for name, flags, good, bad, element in (
        ("addi", "no_signed_wrap", 2**62 - 1, 2**62, I64),
        ("muli", "no_signed_wrap", 2**31, 2**32, I64),
        ("negi", "no_signed_wrap", 5, -(2**63), I64),
        ("trunci", "no_signed_wrap", -(2**31), 2**31, I32),
        ("trunci", "no_unsigned_wrap", 2**32 - 1, -1, I32),
    ):
        kernel(name, flags, good, element).run()
        trapped(kernel(name, flags, bad, element), f"{name} at")


@pytest.mark.parametrize("shape", [(), (4,)])
@pytest.mark.parametrize(
    ("name", "bad", "message"),
    [
        ("divi", (5, 0), "division by zero"),
        ("remi", (5, 0), "division by zero"),
        ("divi", (MIN, -1), "smallest i32 divided by -1"),
        ("shli", (1, 32), "shift of i32 by its width"),
        ("shri", (1, -1), "shift of i32 by its width"),
    ],
)
def test_undefined_integer_arithmetic(
    builder: Any, name: str, bad: tuple[int, int], message: str, shape: tuple[int, ...]
) -> None:
    fields = {"divi": {"rounding": "zero"}, "shli": {"overflow": "none"}}.get(name, {})
    k = builder(INTS)
    values = [v if shape == () else k.spread(v, shape) for v in loaded(k, 2)]
    signed = {} if name == "shli" else {"signedness": "signed"}
    k.op(name, *values, out=[tile(shape, I32)], **fields, **signed)
    trapped(k, message, np.array(bad, np.int32), runs_unchecked=name.startswith("sh"))


def test_infinity_to_integer(builder: Any) -> None:
    k = builder()
    k.op(
        "ftoi",
        k.constant(np.array([1, np.inf], np.float32), F32),
        out=[tile((2,), I32)],
        signedness="signed",
        rounding_mode="nearest_int_to_zero",
    )
    trapped(k, "infinity converted")


@pytest.mark.parametrize("name", ["load_view_tko", "store_view_tko"])
@pytest.mark.parametrize(
    ("inbounds", "row", "column", "problem"),
    [
        ((True, True), 1, 0, None),
        ((True, False), 1, 1, None),
        ((False, True), 2, 0, None),
        ((True, False), 2, 0, "dimension 0 of the tile holds elements 4 .. 5 of a tensor that has 4 there"),
        ((False, True), 0, 1, "dimension 1 of the tile holds elements 4 .. 7 of a tensor that has 6 there"),
        ((True, True), -1, 0, "dimension 0 of the tile holds elements -2 .. -1 of a tensor that has 4"),
        ((False, False), 2, 1, None),
    ],
)
def test_inbounds(builder: Any, name: str, inbounds: tuple[bool, ...], row: int, column: int, problem: Any) -> None:
    """(2, 4) tiles of a (4, 6) tensor; what is outside reads as 0 and is not written."""
    k = builder(FLOATS)
    view = k.view(k.args[0], (4, 6), (2, 4))
    index = [k.i32(row), k.i32(column)]
    promised = {**WEAK, "inbounds": attrs.BoolsAttr(inbounds)}
    if name == "load_view_tko":
        k.op(name, view, index, [], out=[tile((2, 4)), types.token], **promised)
    else:
        k.op(name, k.constant(np.float32(0), F32, (2, 4)), view, index, [], out=[types.token], **promised)
    array = np.zeros((4, 6), np.float32)
    if problem is None:
        k.run(array)
    else:
        trapped(k, f"{name} at kernel.mlir.*{problem}", array)


@pytest.mark.parametrize(("rows", "inside"), [([0, 3], True), ([0, 4], False), ([-1, 2], False)])
def test_inbounds_of_gathered_rows(builder: Any, rows: list[int], inside: bool) -> None:
    k = builder(FLOATS)
    tensor = types.TensorViewType((4, 8), (8, 1), F32)
    base = k.op("make_tensor_view", k.args[0], [], [], out=[tensor])
    view = k.op("make_gather_scatter_view", base, out=[types.GatherScatterViewType((2, 8), tensor, 0, "zero")])
    index = [k.constant(np.array(rows, np.int32), I32), k.i32(0)]
    promised = {**WEAK, "inbounds": attrs.BoolsAttr((True, False))}
    k.op("load_view_tko", view, index, [], out=[tile((2, 8)), types.token], **promised)
    array = np.zeros((4, 8), np.float32)
    if inside:
        k.run(array)
    else:
        trapped(k, f"dimension 0 of the tile holds elements {rows[0]} .. {rows[1]} of a tensor that has 4", array)


@pytest.mark.parametrize(("index", "kept"), [(3, False), (0, True)])
def test_insert_over_unspecified_elements(builder: Any, index: int, kept: bool) -> None:
    k = builder(FLOATS, FLOATS)
    part = k.constant(np.float32(9), F32, (2,))
    value = k.op("insert", part, edge_load(k), [k.i32(index)], out=[tile((8,))])
    k.store(k.view(k.args[1], (8,), (8,)), value, 0)
    stores(k, None if kept else [0, 1, 2, 3, 4, 5, 9, 9])


@pytest.mark.parametrize(("stored", "bad"), [(6, False), (8, True)])
def test_insert_of_unspecified_elements(builder: Any, stored: int, bad: bool) -> None:
    k = builder(FLOATS, FLOATS)
    part = k.load(k.view(k.args[0], (6,), (4,), padding=None), 1)[0]  # 4, 5 and two that are not there
    value = k.op("insert", part, k.constant(np.float32(9), F32, (8,)), [k.i32(1)], out=[tile((8,))])
    k.store(k.view(k.args[1], (stored,), (8,)), value, 0)
    stores(k, None if bad else [9, 9, 9, 9, 4, 5, 0, 0])


@pytest.mark.parametrize("index", [4, -1])
def test_a_subtile_to_insert_that_does_not_exist(builder: Any, index: int) -> None:
    k = builder(I32)
    part, whole = (k.constant(np.float32(0), F32, (n,)) for n in (2, 8))
    k.op("insert", part, whole, [k.args[0]], out=[tile((8,))])
    trapped(k, rf"subtile index \({index},\) is outside \(4,\)", index, runs_unchecked=False)


def test_a_subtile_that_does_not_exist(builder: Any) -> None:
    k = builder(I32)
    k.op("extract", k.constant(np.float32(0), F32, (8,)), [k.args[0]], out=[tile((2,))])
    trapped(k, r"subtile index \(4,\) is outside \(4,\)", 4, runs_unchecked=False)
