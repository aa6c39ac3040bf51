"""Elements of four bits and of fnv8E5M3FNU, products that are scaled by them, and multicast pointers."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from toolchain.errors import SanitizerError
from toolchain.tileir import text
from toolchain.tileir.dialect import types, verify
from toolchain.tileir.interpreter import Allocation, Pointer, Prepared
from toolchain.tileir.interpreter.numbers.elements import ELEMENTS, PACKED
from toolchain.tileir.numbers import float_bits, float_value

NARROW = {"f4E2M1FN": types.f4e2m1fn, "fnv8E5M3FNU": types.f8e5m3fnu, "f8E4M3FN": types.f8e4m3fn}


def run(source: str, *arrays: np.ndarray[Any, Any]) -> None:
    module = text.parse(source, filename="kernel.mlir")
    verify(module, text=source)
    Prepared(module).launch("k", [Pointer(Allocation(array)) for array in arrays], (1, 1, 1))


def kernel(body: str, **arrays: str) -> str:
    """A kernel over arrays given as `name="64xi8"`: views of one tile each, `%name_w`."""
    lines = ["%i = constant <i32: 0> : tile<i32>"]
    for name, kind in arrays.items():
        lines.append(
            f"%{name}_v = make_tensor_view %{name}, shape = {sizes(kind)}, strides = {steps(kind)} : {view(kind)}"
        )
        lines.append(f"%{name}_w = make_partition_view %{name}_v : {tiles(kind)}")
    parameters = ", ".join(f"%{name}: tile<ptr<{kind.rpartition('x')[2]}>>" for name, kind in arrays.items())
    return f"entry @k({parameters}) {{\n" + "\n".join(lines) + f"\n{body}\nreturn\n}}\n"


def shape(kind: str) -> list[int]:
    return [int(size) for size in kind.split("x")[:-1]]


def sizes(kind: str) -> str:
    return str(shape(kind))


def steps(kind: str) -> str:
    return str([int(np.prod(shape(kind)[d + 1 :])) for d in range(len(shape(kind)))])


def view(kind: str) -> str:
    return f"tensor_view<{kind}, strides={steps(kind).replace(' ', '')}>"


def tiles(kind: str) -> str:
    return f"partition_view<tile=({'x'.join(map(str, shape(kind)))}), {view(kind)}>"


def load(name: str, kind: str, value: str) -> str:
    access = f"load_view_tko weak %{name}_w[{', '.join(['%i'] * len(shape(kind)))}]"
    return f"%{value}, %{value}_t = {access} : {tiles(kind)}, tile<i32> -> tile<{kind}>, token"


def store(value: str, name: str, kind: str) -> str:
    access = f"store_view_tko weak %{value}, %{name}_w[{', '.join(['%i'] * len(shape(kind)))}]"
    return f"%{name}_t = {access} : tile<{kind}>, {tiles(kind)}, tile<i32> -> token"


@pytest.mark.parametrize("name", ["f4E2M1FN", "fnv8E5M3FNU"])
def test_every_bit_pattern_is_its_value_and_back(name: str) -> None:
    element = ELEMENTS[name]
    bits = np.arange(1 << element.bits, dtype=np.uint8)
    values = element.decode(bits.view(element.storage))
    expected = [float_value(int(b), NARROW[name]) for b in bits]
    assert np.array_equal(values, np.array(expected, np.float32), equal_nan=True)
    assert element.encode(values).view(np.uint8).tolist() == bits.tolist()


def test_i4_is_signed() -> None:
    element = ELEMENTS["i4"]
    bits = np.arange(16, dtype=np.uint8)
    values = element.decode(bits)
    assert values.tolist() == [*range(8), *range(-8, 0)] and element.encode(values).tolist() == bits.tolist()


@pytest.mark.parametrize(("name", "largest"), [("f4E2M1FN", 6.0), ("fnv8E5M3FNU", 114688.0)])
def test_a_conversion_rounds_to_the_nearest_and_saturates(name: str, largest: float) -> None:
    exact = [0.0, 0.25, 0.3, 0.75, 1.25, 2.5, 5.0, 5.5, 1e9, np.inf, np.nan, -1.0, -1e9, 1.0625, 1.1875, 3.5]
    x = np.array(exact, np.float32)
    out = np.zeros(16, np.float32)
    body = f"""{load("x", "16xf32", "a")}
%b = ftof %a : tile<16xf32> -> tile<16x{name}>
%c = ftof %b : tile<16x{name}> -> tile<16xf32>
{store("c", "out", "16xf32")}"""
    run(kernel(body, x="16xf32", out="16xf32"), x, out)
    low = -largest if name == "f4E2M1FN" else 0.0
    clipped = np.clip(np.where(np.isnan(x) & (name == "f4E2M1FN"), largest, x), low, largest)
    wanted = [float_value(float_bits(float(value), NARROW[name]), NARROW[name]) for value in clipped]
    assert np.array_equal(out, np.array(wanted, np.float32), equal_nan=True)


def test_four_bits_are_packed_with_the_first_one_lowest() -> None:
    data = np.arange(0, 256, 8, dtype=np.uint8).view(np.int8)
    back, floats, ints = np.zeros(32, np.int8), np.zeros(64, np.float32), np.zeros(64, np.int32)
    body = f"""{load("x", "32xi8", "a")}
%f = unpack %a : tile<32xi8> -> tile<64xf4E2M1FN>
%g = ftof %f : tile<64xf4E2M1FN> -> tile<64xf32>
{store("g", "floats", "64xf32")}
%n = unpack %a : tile<32xi8> -> tile<64xi4>
%m = exti %n signed : tile<64xi4> -> tile<64xi32>
{store("m", "ints", "64xi32")}
%s = trunci %m : tile<64xi32> -> tile<64xi4>
%p = pack %s : tile<64xi4> -> tile<32xi8>
{store("p", "back", "32xi8")}"""
    run(kernel(body, x="32xi8", back="32xi8", floats="64xf32", ints="64xi32"), data, back, floats, ints)
    nibbles = np.stack([data.view(np.uint8) & 15, data.view(np.uint8) >> 4], axis=1).reshape(-1)
    assert floats.tolist() == nibbles.view(ml_dtypes.float4_e2m1fn).astype(np.float32).tolist()
    assert ints.tolist() == [int(n) - 16 * (n > 7) for n in nibbles]
    assert back.tolist() == data.tolist()


def test_i4_is_extended_without_a_sign_and_truncated_to_its_low_bits() -> None:
    out = np.zeros(4, np.int32)
    body = f"""%a = constant <i32: [7, 8, -1, 16]> : tile<4xi32>
%b = trunci %a : tile<4xi32> -> tile<4xi4>
%c = exti %b unsigned : tile<4xi4> -> tile<4xi32>
{store("c", "out", "4xi32")}"""
    run(kernel(body, out="4xi32"), out)
    assert out.tolist() == [7, 8, 15, 0]


def test_bits_are_packed_eight_to_a_byte() -> None:
    out = np.zeros(1, np.int8)
    body = f"""%a = constant <i1: [true, false, false, true, false, false, false, true]> : tile<8xi1>
%b = pack %a : tile<8xi1> -> tile<1xi8>
{store("b", "out", "1xi8")}"""
    run(kernel(body, out="1xi8"), out)
    assert out.view(np.uint8).tolist() == [0b10001001]


@pytest.mark.parametrize(
    ("kind", "scale", "block"),
    [
        ("f8E4M3FN", "f8E8M0FNU", 32),
        ("f8E5M2", "f8E8M0FNU", 32),
        ("f4E2M1FN", "f8E8M0FNU", 16),
        ("f4E2M1FN", "f8E4M3FN", 16),
        ("f4E2M1FN", "fnv8E5M3FNU", 32),
    ],
)
def test_a_scaled_product(kind: str, scale: str, block: int) -> None:
    rng = np.random.default_rng(5)
    m, k, n = 16, 64, 8
    low = -1.0 if scale != "f8E8M0FNU" else 0.25
    arrays = {
        "a": (rng.uniform(-6, 6, (m, k)), kind),
        "b": (rng.uniform(-6, 6, (k, n)), kind),
        "s": (rng.uniform(max(low, 0.25), 4, (m, k // block)), scale),
        "t": (rng.uniform(max(low, 0.25), 4, (k // block, n)), scale),
    }
    lines: list[str] = []
    exact: dict[str, np.ndarray[Any, Any]] = {}
    inputs: list[np.ndarray[Any, Any]] = []
    for name, (values, to) in arrays.items():
        wide = f"{values.shape[0]}x{values.shape[1]}xf32"
        mode = " rounding<zero>" if to == "f8E8M0FNU" else ""
        lines.append(load(name, wide, f"{name}f"))
        lines.append(f"%{name}n = ftof %{name}f{mode} : tile<{wide}> -> tile<{wide[:-3]}{to}>")
        inputs.append(values.astype(np.float32))
        rounded = 2.0 ** np.floor(np.log2(inputs[-1])) if to == "f8E8M0FNU" else None
        element = ELEMENTS[to]
        exact[name] = (rounded if rounded is not None else element.round(inputs[-1])).astype(np.float64)  # type: ignore[misc]
    acc, out = rng.uniform(-1, 1, (m, n)).astype(np.float32), np.zeros((m, n), np.float32)
    kinds = {name: f"tile<{v.shape[0]}x{v.shape[1]}x{to}>" for name, (v, to) in arrays.items()}
    result = f"{m}x{n}xf32"
    typed = f"{kinds['a']}, {kinds['b']}, tile<{result}>, {kinds['s']}, {kinds['t']}"
    lines += [
        load("c", result, "cf"),
        f"%d = mmaf_scaled %an, %bn, %cf, %sn, %tn : {typed}",
        store("d", "out", result),
    ]
    shapes = {name: f"{v.shape[0]}x{v.shape[1]}xf32" for name, (v, _) in arrays.items()}
    run(kernel("\n".join(lines), **shapes, c=result, out=result), *inputs, acc, out)
    left = exact["a"] * np.repeat(exact["s"], block, axis=1)
    right = exact["b"] * np.repeat(exact["t"], block, axis=0)
    assert np.array_equal(out, (left @ right + acc).astype(np.float32))


def test_an_unspecified_scale_is_one_of_its_row_alone() -> None:
    """The scales of rows beyond the array are not stored, so they do no harm; those of a row that is stored do."""
    out = np.zeros((2, 2), np.float32)
    scales = np.full((2, 1), 2.0, np.float32)

    def body(rows: int) -> str:
        array = f"tensor_view<{rows}x1xf32, strides=[1,1]>"
        part = f"partition_view<tile=(2x1), {array}>"
        scales = "tile<2x1xf8E8M0FNU>, tile<1x2xf8E8M0FNU>"
        return f"""%v = make_tensor_view %s, shape = [{rows}, 1], strides = [1, 1] : {array}
%w = make_partition_view %v : {part}
%f, %ft = load_view_tko weak %w[%i, %i] : {part}, tile<i32> -> tile<2x1xf32>, token
%n = ftof %f rounding<zero> : tile<2x1xf32> -> tile<2x1xf8E8M0FNU>
%a = constant <f8E4M3FN: 1.0> : tile<2x32xf8E4M3FN>
%b = constant <f8E4M3FN: 1.0> : tile<32x2xf8E4M3FN>
%c = constant <f32: 0.0> : tile<2x2xf32>
%t = constant <f8E8M0FNU: 1.0> : tile<1x2xf8E8M0FNU>
%d = mmaf_scaled %a, %b, %c, %n, %t : tile<2x32xf8E4M3FN>, tile<32x2xf8E4M3FN>, tile<2x2xf32>, {scales}
%e = extract %d[%i, %i] : tile<2x2xf32> -> tile<1x1xf32>
%g = reshape %e : tile<1x1xf32> -> tile<f32>
%h = cmpf equal ordered %g, %g : tile<f32> -> tile<i1>
if %h {{
}}
{store("c", "out", "2x2xf32")}"""

    run(kernel(body(1), s="2x1xf32", out="2x2xf32"), scales, out)
    bottom = "%one = constant <i32: 1> : tile<i32>\n" + body(1).replace("extract %d[%i, %i]", "extract %d[%one, %i]")
    with pytest.raises(SanitizerError, match="unspecified value"):
        run(kernel(bottom, s="2x1xf32", out="2x2xf32"), scales, out)


def multicast(body: str, element: str = "f32") -> str:
    array = f"tensor_view<6x{element}, strides=[1], #cuda_tile.ptr_attr<multicast>>"
    return f"""entry @k(%p: tile<ptr<{element}, <multicast>>>) {{
%i = constant <i32: 1> : tile<i32>
%v = make_tensor_view %p, shape = [6], strides = [1] : tile<ptr<{element}, <multicast>>> -> {array}
%w = make_partition_view %v : partition_view<tile=(4), padding_value = zero, {array}>
%x = constant <{element}: 3{".0" if element[0] == "f" else ""}> : tile<4x{element}>
{body.replace("VIEW", f"partition_view<tile=(4), padding_value = zero, {array}>").replace("TILE", f"tile<4x{element}>")}
return
}}
"""


ADD = "%r = multimem_reduce_view_tko relaxed sys %w, %x[%i]KIND : VIEW, TILE, tile<i32> -> token"


def test_multimem_reaches_the_memory_of_the_one_gpu() -> None:
    memory = np.arange(6, dtype=np.float32)
    run(multicast(ADD.replace("KIND", "")), memory)
    assert memory.tolist() == [0, 1, 2, 3, 7, 8]
    body = """%y, %t = multimem_load_reduce_view_tko relaxed sys %w[%i] : VIEW, tile<i32> -> TILE, token
%z = addf %y, %x : TILE
%s = multimem_store_view_tko relaxed sys %w, %z[%i] token = %t : VIEW, TILE, tile<i32>, token -> token"""
    run(multicast(body), memory)
    assert memory.tolist() == [0, 1, 2, 3, 10, 11]


@pytest.mark.parametrize(
    ("kind", "wanted"), [("min", [1, 3]), ("umax", [3, 6]), ("xor", [1 ^ 3, 6 ^ 3]), ("add", [4, 9])]
)
def test_multimem_reductions_of_integers(kind: str, wanted: list[int]) -> None:
    memory = np.array([9, 9, 9, 9, 1, 6], np.int32)
    attribute = f" attributes {{reduction = #cuda_tile.multimem_reduction_kind<{kind}>}}"
    run(multicast(ADD.replace("KIND", attribute), "i32"), memory)
    assert memory.tolist() == [9, 9, 9, 9, *wanted]


@pytest.mark.parametrize(
    "body",
    [
        ADD.replace("KIND", " inbounds = [true]"),
        "%s = multimem_store_view_tko weak %w, %x[%i] inbounds = [true] : VIEW, TILE, tile<i32> -> token",
        "%y, %t = multimem_load_reduce_view_tko weak %w[%i] inbounds = [true] : VIEW, tile<i32> -> TILE, token",
    ],
)
def test_inbounds_is_a_promise(body: str) -> None:
    with pytest.raises(SanitizerError, match="inbounds promises that none is outside"):
        run(multicast(body), np.zeros(6, np.float32))


def test_each_element_type_has_the_bits_that_its_name_says() -> None:
    found = {name: int(re.findall(r"\d+", name)[0]) for name in ELEMENTS}
    assert {name: element.bits for name, element in ELEMENTS.items()} == found
    for element in ELEMENTS.values():
        assert element.bits == 8 * element.storage.itemsize or element.name == "i1" or element.name in PACKED
