"""The bits of NaNs: moves keep them, arithmetic makes the one of a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from toolchain.tileir import text
from toolchain.tileir.dialect import types
from toolchain.tileir.interpreter import Allocation, Pointer, Prepared

Array = np.ndarray[Any, np.dtype[Any]]
BF16, E4M3, E5M2 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
STORAGE = {
    "f16": np.float16, "bf16": BF16, "f32": np.float32, "f64": np.float64, "f8E4M3FN": E4M3, "f8E5M2": E5M2,
    "f8E8M0FNU": ml_dtypes.float8_e8m0fnu,
}  # fmt: skip
NARROW = ("f16", "bf16", "f8E4M3FN", "f8E5M2", "f8E8M0FNU")
STANDARD = {"f16": 0x7FFF, "bf16": 0x7FFF, "f32": 0x7FFFFFFF, "f8E4M3FN": 0x7F, "f8E5M2": 0x7F}
# Six signalling and quiet NaNs (four of f64), of both signs, and numbers.
NANS = {
    "f16": [0x7C01, 0x7E00, 0xFFFF, 0xFD55, 0x7FFF, 0xFE00, 0x3C00, 0x8001],
    "bf16": [0x7F81, 0x7FC0, 0xFFFF, 0xFFD5, 0x7FFF, 0xFFC0, 0x3F80, 0x8001],
    "f32": [0x7F800001, 0x7FC00000, 0xFFFFFFFF, 0xFFD55555, 0x7FFFFFFF, 0xFFC00000, 0x3F800000, 0x80000001],
    "f8E4M3FN": [0x7F, 0xFF, 0x7F, 0xFF, 0x7F, 0xFF, 0x38, 0x81],
    "f8E5M2": [0x7D, 0x7E, 0xFF, 0xFD, 0x7F, 0xFE, 0x3C, 0x81],
    "f64": [0x7FF0000000000001, 0x7FF8000000000000, 0xFFFFFFFFFFFFFFFF, 0xFFF8000000000000, 0, 1, 2, 3],
    "f8E8M0FNU": [0xFF, 0x00, 0xFE, 0x7F, 0xFF, 1, 2, 3],
}


def unsigned(element: str) -> np.dtype[Any]:
    return np.dtype(f"u{np.dtype(STORAGE[element]).itemsize}")


def run(body: str, source: str, values: Any, result: str | None = None) -> list[int]:
    """The bits that a kernel stores. In `body` T is the tile type of %x, loaded from `values`, R that of its %y."""
    result = result or source
    bits = np.array(values, unsigned(source))
    n = bits.size
    body = body.replace("tile<T>", f"tile<{n}x{source}>").replace("tile<R>", f"tile<{n}x{result}>")
    body = body.replace("<E>", f"<{source}>").replace("NUMBER", str(n)).replace("ELEMENT", source)

    def view(name: str, element: str) -> str:
        tensor = f"tensor_view<{n}x{element}, strides=[1]>"
        return f"""  %{name}v = make_tensor_view %{name}p, shape = [{n}], strides = [1] : {tensor}
  %{name}t = make_partition_view %{name}v : partition_view<tile=({n}), {tensor}>
"""

    lines = f"""entry @k(%xp: tile<ptr<{source}>>, %yp: tile<ptr<{result}>>) {{
  %zero = constant <i32: 0> : tile<i32>
{view("x", source)}{view("y", result)}
  %x, %read = load_view_tko weak %xt[%zero] : partition_view<tile=({n}), tensor_view<{n}x{source}, strides=[1]>>, tile<i32> -> tile<{n}x{source}>, token
  {body}
  %stored = store_view_tko weak %y, %yt[%zero] : tile<{n}x{result}>, partition_view<tile=({n}), tensor_view<{n}x{result}, strides=[1]>>, tile<i32> -> token
}}"""  # noqa: E501
    out = np.zeros(n, unsigned(result))
    arguments = [Pointer(Allocation(a)) for a in (bits.view(STORAGE[source]), out.view(STORAGE[result]))]
    Prepared(text.parse(lines, filename="k.mlir")).launch("k", arguments, (1, 1, 1))
    return out.tolist()


MOVES = {
    "none": "%y = broadcast %x : tile<T> -> tile<T>",
    "reshape": """%a = reshape %x : tile<T> -> tile<2x4xELEMENT>
  %b = permute %a [1, 0] : tile<2x4xELEMENT> -> tile<4x2xELEMENT>
  %c = permute %b [1, 0] : tile<4x2xELEMENT> -> tile<2x4xELEMENT>
  %y = reshape %c : tile<2x4xELEMENT> -> tile<T>""",
    "extract and cat": """%one = constant <i32: 1> : tile<i32>
  %a = extract %x[%zero] : tile<T> -> tile<4xELEMENT>
  %b = extract %x[%one] : tile<T> -> tile<4xELEMENT>
  %y = cat %a, %b dim = 0 : tile<4xELEMENT>, tile<4xELEMENT> -> tile<T>""",
    "select": """%true = constant <i1: true> : tile<NUMBERxi1>
  %y = select %true, %x, %x : tile<NUMBERxi1>, tile<T>""",
    "a branch": """%true = constant <i1: true> : tile<i1>
  %y = if %true -> (tile<T>) {
    yield %x : tile<T>
  } else {
    yield %x : tile<T>
  }""",
    "a loop": """%two = constant <i32: 2> : tile<i32>
  %one = constant <i32: 1> : tile<i32>
  %y = for %i in (%zero to %two, step %one) : tile<i32> iter_values(%v = %x) -> (tile<T>) {
    continue %v : tile<T>
  }""",
    "a scan": """%y = scan %x dim=0 reverse=false identities=[0.0 : f32] : tile<T> -> tile<T>
  (%a: tile<ELEMENT>, %b: tile<ELEMENT>) {
    yield %b : tile<ELEMENT>
  }""",
    "pointers": """%p = reshape %xp : tile<ptr<E>> -> tile<1xptr<E>>
  %q = broadcast %p : tile<1xptr<E>> -> tile<NUMBERxptr<E>>
  %i = iota : tile<NUMBERxi32>
  %places = offset %q, %i : tile<NUMBERxptr<E>>, tile<NUMBERxi32> -> tile<NUMBERxptr<E>>
  %y, %again = load_ptr_tko weak %places : tile<NUMBERxptr<E>> -> tile<T>, token""",
}


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("element", STORAGE)
def test_a_move_keeps_all_bits(element: str, move: str) -> None:
    body = MOVES[move].replace("0.0 : f32", f"{'1.0' if element == 'f8E8M0FNU' else '0.0'} : {element}")
    assert run(body, element, NANS[element]) == NANS[element]


@pytest.mark.parametrize("element", NARROW)
def test_loads_stores_and_bitcasts_keep_every_code(element: str) -> None:
    """As a tile, and of bits there and back."""
    dtype = unsigned(element)
    codes = np.arange(1 << (8 * dtype.itemsize)).astype(dtype)
    integer = f"tile<{codes.size}xi{8 * dtype.itemsize}>"
    there_and_back = f"%b = bitcast %x : tile<T> -> {integer}\n%y = bitcast %b : {integer} -> tile<T>"
    assert run(MOVES["none"], element, codes) == codes.tolist()
    assert run(there_and_back, element, codes) == codes.tolist()


@pytest.mark.parametrize("element", ["f16", "bf16", "f32"])
def test_packed_elements_and_constants_keep_all_bits(element: str) -> None:
    size = 8 * unsigned(element).itemsize
    packed = f"%b = pack %x : tile<T> -> tile<{size}xi8>\n%y = unpack %b : tile<{size}xi8> -> tile<T>"
    assert run(packed, element, NANS[element]) == NANS[element]
    listed = ", ".join(f"0x{bits:X}" for bits in NANS[element])
    assert run(f"%y = constant <{element}: [{listed}]> : tile<T>", element, NANS[element]) == NANS[element]


@pytest.mark.parametrize("element", ["f16", "bf16", "f32"])
def test_a_scalar_keeps_all_bits(elementwise: Callable[..., Array], element: str) -> None:
    values = np.array(NANS[element], unsigned(element)).view(STORAGE[element])
    bits = unsigned(element)
    integers = elementwise("bitcast", values, dtype=np.dtype(f"i{bits.itemsize}"))
    assert integers.view(bits).tolist() == NANS[element]
    assert elementwise("bitcast", integers, dtype=STORAGE[element]).view(bits).tolist() == NANS[element]


def test_an_exchange_keeps_all_bits(builder: Any) -> None:
    k = builder(types.PtrType(types.bf16), types.PtrType(types.bf16))
    kind = types.TileType((), types.bf16)
    before, token = k.op(
        "atomic_rmw_tko", k.args[0], k.load_pointer(k.args[1])[0], [], [], out=[kind, types.token], mode="xchg",
        memory_ordering_semantics="relaxed", memory_scope="device",
    )  # fmt: skip
    k.store_pointer(k.args[1], before, token=token)
    at, value = (np.array([bits], np.uint16).view(BF16) for bits in (0x7F81, 0xFFD5))
    k.run(at, value)
    assert [at.view(np.uint16)[0], value.view(np.uint16)[0]] == [0xFFD5, 0x7F81]


ARITHMETIC = {
    "addf": "%y = addf %x, %x : tile<T>", "subf": "%y = subf %x, %x : tile<T>", "mulf": "%y = mulf %x, %x : tile<T>",
    "divf": "%y = divf %x, %x : tile<T>", "fma": "%y = fma %x, %x, %x : tile<T>", "sqrt": "%y = sqrt %x : tile<T>",
    "upwards": "%y = addf %x, %x rounding<positive_inf> : tile<T>", "negf": "%y = negf %x : tile<T>",
    "absf": "%y = absf %x : tile<T>", "ceil": "%y = ceil %x : tile<T>", "floor": "%y = floor %x : tile<T>",
    "exp": "%y = exp %x : tile<T>", "log2": "%y = log2 %x : tile<T>", "tanh": "%y = tanh %x : tile<T>",
    "rsqrt": "%y = rsqrt %x : tile<T>", "remf": "%y = remf %x, %x : tile<T>", "atan2": "%y = atan2 %x, %x : tile<T>",
    "maxf": "%y = maxf %x, %x : tile<T>", "minf": "%y = minf %x, %x propagate_nan : tile<T>",
    "reduce": """%s = reduce %x dim=0 identities=[0.0 : ELEMENT] : tile<T> -> tile<ELEMENT>
  (%a: tile<ELEMENT>, %b: tile<ELEMENT>) {
    %sum = addf %a, %b : tile<ELEMENT>
    yield %sum : tile<ELEMENT>
  }
  %r = reshape %s : tile<ELEMENT> -> tile<1xELEMENT>
  %y = broadcast %r : tile<1xELEMENT> -> tile<T>""",
    "moved": """%true = constant <i1: true> : tile<i1>
  %z = subf %x, %x : tile<T>
  %a = if %true -> (tile<T>) {
    yield %z : tile<T>
  } else {
    yield %x : tile<T>
  }
  %b = reshape %a : tile<T> -> tile<2x4xELEMENT>
  %y = reshape %b : tile<2x4xELEMENT> -> tile<T>""",
    "looped": """%two = constant <i32: 2> : tile<i32>
  %one = constant <i32: 1> : tile<i32>
  %y = for %i in (%zero to %two, step %one) : tile<i32> iter_values(%v = %x) -> (tile<T>) {
    %w = addf %v, %x : tile<T>
    continue %w : tile<T>
  }""",
}  # fmt: skip


@pytest.mark.parametrize("name", ARITHMETIC)
@pytest.mark.parametrize("element", ["f16", "bf16", "f32"])
def test_arithmetic_makes_one_nan(element: str, name: str) -> None:
    assert run(ARITHMETIC[name], element, [*NANS[element][:6], *NANS[element][:2]]) == [STANDARD[element]] * 8


@pytest.mark.parametrize("name", ["subf", "divf", "sqrt", "rsqrt", "log2", "remf", "moved"])
@pytest.mark.parametrize("element", ["f16", "bf16", "f32"])
def test_a_nan_that_arithmetic_makes_of_numbers(element: str, name: str) -> None:
    minus_infinity = {"f16": 0xFC00, "bf16": 0xFF80, "f32": 0xFF800000}[element]
    assert run(ARITHMETIC[name], element, [minus_infinity] * 8) == [STANDARD[element]] * 8


@pytest.mark.parametrize("target", STANDARD)
@pytest.mark.parametrize("source", STANDARD)
def test_a_conversion_makes_the_nan_of_its_type(source: str, target: str) -> None:
    """But for bf16 to f32, for which a GPU shifts."""
    if source == target:
        return
    nans = NANS[source][:4]
    found = run("%y = ftof %x : tile<T> -> tile<R>", source, nans, target)
    assert found == ([x << 16 for x in nans] if (source, target) == ("bf16", "f32") else [STANDARD[target]] * 4)


def test_a_matrix_product_makes_one_nan() -> None:
    body = """%a = reshape %x : tile<T> -> tile<4x4xf16>
  %c = constant <f32: 0.0> : tile<4x4xf32>
  %d = mmaf %a, %a, %c : tile<4x4xf16>, tile<4x4xf16>, tile<4x4xf32>
  %y = reshape %d : tile<4x4xf32> -> tile<R>"""
    assert run(body, "f16", [0xFE01] * 16, "f32") == [0x7FFFFFFF] * 16


@pytest.mark.parametrize("element", ["f16", "bf16", "f32"])
def test_an_atomic_sum_makes_one_nan(builder: Any, element: str) -> None:
    kind = {"f16": types.f16, "bf16": types.bf16, "f32": types.f32}[element]
    k = builder(types.PtrType(kind), types.PtrType(kind))
    value = k.load_pointer(k.args[1])[0]
    k.op(
        "atomic_rmw_tko", k.args[0], value, [], [], out=[types.TileType((), kind), types.token], mode="addf",
        memory_ordering_semantics="relaxed", memory_scope="device",
    )  # fmt: skip
    at, value = (np.array([NANS[element][n]], unsigned(element)).view(STORAGE[element]) for n in (6, 3))
    k.run(at, value)
    assert at.view(unsigned(element)).tolist() == [STANDARD[element]]


def test_nothing_is_replaced_between_two_operations_of_arithmetic() -> None:
    """It would cost time in each of them."""
    lines = """entry @k(%p: tile<ptr<f32>>) {
  %x, %read = load_ptr_tko weak %p : tile<ptr<f32>> -> tile<f32>, token
  %a = addf %x, %x : tile<f32>
  %b = mulf %a, %x : tile<f32>
  %c = subf %b, %a : tile<f32>
  %stored = store_ptr_tko weak %p, %c token = %read : tile<ptr<f32>>, tile<f32> -> token
}"""
    kernel = Prepared(text.parse(lines, filename="k.mlir")).kernel("k")
    assert kernel.source.count("one_nan") == 1
