from __future__ import annotations

import ctypes
import importlib
import struct
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilestack as ts
from tests.unit.cute_runtime.fake import FakeGPU
from tilestack.api.launches.code import Bytecode

from ..fake_torch import Device, FakeTorch, Tensor

pytestmark = pytest.mark.needs("toolchain")
KERNELS = """\
import cuda.tile as ct


@ct.kernel
def added(x, y, out, factor, TILE: ct.Constant[int]):
    block, zero = ct.bid(0), ct.PaddingMode.ZERO
    a = ct.load(x, index=(block,), shape=(TILE,), padding_mode=zero)
    b = ct.load(y, index=(block,), shape=(TILE,), padding_mode=zero)
    ct.store(out, index=(block,), tile=a + b * factor)


@ct.kernel
def counted(x, counts):
    place = ct.load(x, index=(ct.bid(0),), shape=(8,))
    ct.atomic_add(counts, place, 1)


@ct.kernel
def incremented_twice(x, out):
    ct.store(out, index=(0,), tile=ct.load(x, index=(0,), shape=(8,)) + 1)
    ct.store(out, index=(0,), tile=ct.load(x, index=(0,), shape=(8,)) + 1)


@ct.kernel
def moved(x, out):
    ct.store(out, index=(ct.bid(0),), tile=ct.load(x, index=(ct.bid(0) + 1,), shape=(4,)))


@ct.kernel
def wrong(x):
    ct.store(x, index=(0, 0), tile=1)


@ct.kernel
def shifted(x, out, BY: ct.Constant):
    ct.store(out, index=(0,), tile=(ct.load(x, index=(0,), shape=(8,)) + BY).astype(out.dtype))


@ct.kernel
def high(x, out, n: ct.ScalarInt64):
    ct.store(out, index=(0,), tile=ct.load(x, index=(0,), shape=(8,)) + (n >> 40))


from typing import Annotated

FIXED = ct.ArrayAnnotation(static_shape_dims=(0, -1), static_stride_dims=(0,), index_dtype=ct.int64)


@ct.kernel
def fixed(x: Annotated[ct.Array, FIXED], out):
    tile = ct.load(x, index=(0, 0), shape=(x.shape[0], x.shape[1]))
    ct.store(out, index=(0, 0), tile=tile * x.strides[0])


@ct.kernel
def cast(x, out, T: ct.Constant):
    ct.store(out, index=(0,), tile=ct.load(x, index=(0,), shape=(8,)).astype(T))


@ct.kernel
def padded(x, out):
    ct.store(out, index=(0,), tile=ct.load(x, index=(0,), shape=(8,), padding_mode=ct.PaddingMode.NEG_INF))


@ct.kernel
def summed(xs, out):
    total = ct.zeros((4,), dtype=ct.float32)
    for at in range(len(xs)):
        total += ct.load(xs[at], index=(1,), shape=(4,), padding_mode=ct.PaddingMode.ZERO)
    ct.store(out, index=(0,), tile=total)


@ct.kernel
def emptied(xs, by):
    for at in range(len(xs)):
        ct.store(xs[at], index=(0, 0), tile=ct.full((2, 2), by, dtype=ct.int32))


@ct.kernel
def mixed(given, SIZES: tuple[ct.Constant[int], ...]):
    (x, (xs, factor)), out = given
    tile = ct.load(x, index=(0,), shape=(SIZES[0],)) + ct.load(xs[0], index=(0,), shape=(SIZES[0],))
    ct.store(out, index=(SIZES[1],), tile=tile * factor)
"""


@pytest.fixture
def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """cuTile reads a kernel's source, so it stands in a file."""
    (tmp_path / "some_kernels.py").write_text(KERNELS)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("some_kernels")
    del sys.modules["some_kernels"]


@pytest.mark.parametrize("constants", [(1, 1.0), (0.0, -0.0)])
def test_equal_constants_that_differ_are_two_kernels(constants: tuple[Any, Any], kernels: Any) -> None:
    kernel = ts.load(kernels.shifted)
    x, out = np.arange(8, dtype=np.int32), np.zeros(8, np.int32)
    texts: list[str] = []
    for by in constants:
        kernel[1](x, out, on="cpu", BY=by)
        texts.append(kernel.disassemble())
    assert texts[0] != texts[1]


def test_dtypes_ranks_and_constants_come_from_the_call(kernels: Any) -> None:
    kernel = ts.load(kernels.added)
    assert repr(kernel) == "<kernel added(x, y, out, factor, TILE), not traced yet>"
    x = np.arange(10, dtype=np.float32)
    out = np.zeros(10, np.float32)
    kernel[3](x, x, out, 2.0, on="cpu", TILE=4)
    assert (out == 3 * x).all()
    assert repr(kernel) == "<kernel added(x: f32[?], y: f32[?], out: f32[?] written, factor: f32)>"
    whole = x.astype(np.int32)
    ints = np.zeros(10, np.int32)
    kernel[2](whole, whole[::-1], ints, 1, on="cpu", TILE=8)
    assert (ints == 9).all() and kernel.parameters[0].dtype == "i32"


def test_each_combination_is_traced_once(kernels: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = ts.load(kernels.added)
    x = np.zeros(8, np.float32)
    traced: list[object] = []
    trace = type(kernel)._trace
    monkeypatch.setattr(type(kernel), "_trace", lambda *args: traced.append(args) or trace(*args))
    for size in (8, 4, 7):
        kernel[2](x[:size].copy(), x[:size].copy(), x[:size].copy(), 1.0, on="cpu", TILE=4)
    assert len(traced) == 1
    kernel[2](x, x, x, 1.0, on="cpu", TILE=4)  # in place: cuTile must know that they are the same
    kernel[2](x.copy(), x.copy(), x.copy(), 1.0, on="cpu", TILE=8)
    assert len(traced) == 3


def test_a_repeated_launch_is_of_the_trace_that_fits(
    kernels: Any, gpu: FakeGPU, fake_torch: FakeTorch, checked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A misaligned tensor is another trace, and so are the same one twice and an integer. The last one is known."""
    del fake_torch
    monkeypatch.setattr(Bytecode, "cubin", lambda *_: b"cubin")
    gpu.sizes = (*(8, 4, 4) * 3, 4)
    kernel, seen = ts.load(kernels.added), list[object]()
    x, y, out, odd = Tensor(8), Tensor(8), Tensor(8), Tensor(8, at=2**16 + 4)
    for given, factor, tile in [(x, 2.0, 8), (odd, 2.0, 8), (y, 2.0, 8), (x, 2, 8), (x, 2.0, 4)] * 2:
        kernel[3](given, y, out, factor, TILE=tile)
        seen.append(kernel.compiled)
    assert len(checked) == 5 and seen[:5] == seen[5:] and len(set(map(id, seen))) == 5
    with pytest.raises(ts.LaunchError, match="no constant TILE"):
        kernel[3](x, y, out, 2.0)


def test_an_array_that_is_only_reached_by_pointers(kernels: Any) -> None:
    counts = np.zeros(4, np.int32)
    kernel = ts.load(kernels.counted)
    kernel[2](np.arange(16, dtype=np.int32) % 4, counts, on="cpu")
    assert counts.tolist() == [4, 4, 4, 4]
    assert [p.written for p in kernel.parameters] == [False, True]


def test_the_same_array_twice_is_one_memory(kernels: Any) -> None:
    """cuTile orders what reads it behind what writes it, and the interpreter sees both."""
    x = np.zeros(8, np.float32)
    ts.load(kernels.incremented_twice)[1](x, x, on="cpu")
    assert (x == 2).all()
    shared = np.zeros(12, np.float32)
    ts.load(kernels.moved)[2](shared, np.zeros(8, np.float32), on="cpu")
    with pytest.raises(ts.SanitizerError, match=r"moved: .* in block \(1, 0, 0\) writes byte 16 .* reads"):
        ts.load(kernels.moved)[2](shared, shared, on="cpu")


def test_a_trace_without_a_launch(kernels: Any) -> None:
    kernel = ts.load(kernels.added)
    with pytest.raises(ts.UsageError, match=r"added was not traced yet.*\n.*specialize\(x, y, out, factor, TILE\)"):
        kernel.verify()
    x = np.zeros(8, np.float32)
    made = kernel.specialize(x, x.copy(), x.copy(), 1.0, TILE=4)
    made.verify()
    assert "entry @added" in made.disassemble() and "some_kernels.py" not in made.disassemble()
    assert made.parameters[0].divisors == {0: 16}
    assert "tensor_view<?xf32, strides=[1]>" in made.disassemble()  # elements side by side: whole vectors are loaded


def test_mistakes_of_the_caller(kernels: Any) -> None:
    kernel, x = ts.load(kernels.added), np.zeros(8, np.float32)
    with pytest.raises(ts.LaunchError, match=r"2 arguments; it takes x, y, out, factor\n.*given by name: TILE"):
        kernel[1](x, x, TILE=4)
    with pytest.raises(ts.LaunchError, match=r"takes x, out\n.*out was given by name, but is no constant: annotate it"):
        ts.load(kernels.moved)[1](x, out=4)
    with pytest.raises(ts.LaunchError, match="no constant TILE"):
        kernel[1](x, x, x, 1.0)
    with pytest.raises(ts.LaunchError, match="no constant SIZE"):
        kernel[1](x, x, x, 1.0, TILE=4, SIZE=2)
    with pytest.raises(ts.LaunchError, match=r"argument 3 \(factor\) is a str"):
        kernel[1](x, x, x, "2", TILE=4)
    with pytest.raises(ts.UsageError, match="is not a kernel of cuTile Python"):
        ts.load(len)


def test_constants_by_position_as_cutile_takes_them(kernels: Any) -> None:
    kernel, x, out = ts.load(kernels.added), np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    for tile in (4, 8):
        kernel[8 // tile](x, x, out, 2.0, tile, on="cpu")
        assert (out == 3 * x).all()
    other = ts.load(kernels.shifted)
    for by in (1, 2):
        other[1](x, out, by, on="cpu")
        assert (out == x + by).all()
    with pytest.raises(ts.LaunchError, match="6 arguments"):
        kernel[1](x, x, out, 2.0, 4, 4)


def test_a_list_of_arrays(kernels: Any) -> None:
    """Each is seen by its own sizes and strides; a kernel may write them."""
    kernel, out = ts.load(kernels.summed), np.zeros(4, np.float32)
    xs = [np.arange(8, dtype=np.float32), np.arange(16, dtype=np.float32)[::2], np.ones(6, np.float32)]
    kernel[1](xs, out, on="cpu")
    assert out.tolist() == [13, 16, 18, 21]
    assert [str(p) for p in kernel.parameters] == ["xs: list of f32[?]", "out: f32[?] written"]
    whole = np.ones((4, 4), np.int32)
    emptied = ts.load(kernels.emptied)
    emptied[1]([whole[:2, ::2], whole[2:, 2:]], 7, on="cpu")
    assert whole.tolist() == [[7, 1, 7, 1], [7, 1, 7, 1], [1, 1, 7, 7], [1, 1, 7, 7]]
    assert emptied.parameters[0].written
    whole.flags.writeable = False
    with pytest.raises(ts.LaunchError, match=r"argument 0 \(xs\), item 0 is read-only"):
        emptied[1]([whole], 7, on="cpu")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([], "a list that is empty"),
        ([np.zeros(4), 1], "holds something other than arrays"),
        ([np.zeros(4), np.zeros(4, np.float32)], r"arrays that differ: f64\[4\]"),
        ([np.zeros(4), np.zeros((4, 1))], "arrays that differ"),
    ],
)
def test_what_is_no_list_of_arrays(kernels: Any, wrong: list[Any], message: str) -> None:
    with pytest.raises(ts.LaunchError, match=rf"argument 0 \(xs\).*{message}"):
        ts.load(kernels.summed)[1](wrong, np.zeros(4, np.float32))


def test_tuples_of_arrays_lists_numbers_and_constants(kernels: Any) -> None:
    x, y, out = np.arange(4, dtype=np.float32), np.ones(4, np.float32), np.zeros(8, np.float32)
    kernel = ts.load(kernels.mixed)
    kernel[1](((x, ([y, x], 3.0)), out), (4, 1), on="cpu")
    assert out.tolist() == [0, 0, 0, 0, 3, 6, 9, 12]
    kernel[1](((x, ([y, x], 2)), out), on="cpu", SIZES=(4, 0))
    assert out.tolist() == [2, 4, 6, 8, 3, 6, 9, 12]
    names = [p.name for p in kernel.parameters]
    assert names == ["given[0][0]", "given[0][1][0]", "given[0][1][1]", "given[1]"]
    with pytest.raises(ts.LaunchError, match=r"argument 2 \(given\[0\]\[1\]\[1\]\) is a str"):
        kernel[1](((x, ([y], "3")), out), (4, 1))


def test_a_dataclass_is_refused_as_cutile_refuses_it(kernels: Any) -> None:
    with pytest.raises(ts.LaunchError, match=r"\(given\) is a Device(?s:.*)give its fields as a tuple"):
        ts.load(kernels.mixed)[1](Device("cuda", 0), (4, 1))


def test_views_into_one_storage_are_one_memory(kernels: Any) -> None:
    """cuTile is told which arguments share memory, and orders what they do there."""
    memory = np.arange(16, dtype=np.float32)
    kernel = ts.load(kernels.incremented_twice)
    kernel[1](memory[4:12], memory[:8], on="cpu")  # the second load sees what the first store has written
    assert memory.tolist() == [10, 11, 12, 13, 9, 10, 11, 12, *range(8, 16)]
    memory = np.zeros(16, np.float32)
    ts.load(kernels.summed)[1]([memory[:8], memory[8:]], memory[4:8], on="cpu")
    with pytest.raises(ts.SanitizerError, match=r"moved: .* in block \(1, 0, 0\) writes byte 16 .* reads"):
        ts.load(kernels.moved)[2](memory[:12], memory[:8], on="cpu")


def test_a_list_on_a_gpu_is_a_table_in_its_memory(
    kernels: Any, gpu: FakeGPU, fake_torch: FakeTorch, monkeypatch: pytest.MonkeyPatch
) -> None:
    del fake_torch
    monkeypatch.setattr(Bytecode, "cubin", lambda *_: b"cubin")
    gpu.sizes = (8, 4, 8, 4, 4)
    seen: list[list[int]] = []

    def kernel(_: Any, __: Any, given: list[bytes]) -> None:
        (count,) = struct.unpack("<i", given[1])
        seen.append(list((ctypes.c_int64 * (3 * count)).from_address(*struct.unpack("<q", given[0]))))

    gpu.kernel = kernel
    x, y, out = Tensor(8), Tensor(6, at=2**18), Tensor(4, at=2**20)
    for _ in range(2):
        ts.load(kernels.summed)[1]([x, y, x], out)
    row = [x.data_ptr(), 8, 1]
    assert seen == [[*row, y.data_ptr(), 6, 1, *row]] * 2


def test_mistakes_in_the_kernel_have_their_line(kernels: Any) -> None:
    with pytest.raises(ts.SourceError, match=r"(?s)^wrong: .*some_kernels.py\", line 31"):
        ts.load(kernels.wrong)[1](np.zeros(8, np.float32))


def test_a_number_of_64_bits(kernels: Any) -> None:
    x, out = np.zeros(8, np.int64), np.zeros(8, np.int64)
    kernel = ts.load(kernels.high)
    kernel[1](x, out, 1 << 41, on="cpu")
    assert out.tolist() == [2] * 8
    with pytest.raises(ts.LaunchError, match=r"\(n\) is 9223372036854775808, outside of i64"):
        kernel[1](x, out, 1 << 63, on="cpu")


def test_sizes_and_strides_that_an_annotation_compiles_in(kernels: Any) -> None:
    kernel = ts.load(kernels.fixed)
    for rows in (2, 4):  # each is a kernel of its own
        x, out = np.ones((rows, 4), np.float32), np.zeros((rows, 4), np.float32)
        kernel[1](x, out, on="cpu")
        assert (out == 4).all()
    traced = kernel.specialize(x, out)
    assert [(p.sizes, p.strides, p.index) for p in traced.parameters] == [
        ((4, 4), (4, None), "i64"), ((None, None), (None, 1), "i32")
    ]  # fmt: skip
    with pytest.raises(ts.LaunchError, match="size 2 in dimension 0; the kernel is compiled for 4"):
        traced[1](x[:2], out, on="cpu")
    with pytest.raises(ts.LaunchError, match=r"fixed: Invalid kernel parameter 'x': Axis 0 .*rank 0"):
        kernel[1](np.ones((), np.float32), out, on="cpu")


@pytest.mark.parametrize("made", ["cuTile", "numpy", "instance"])
def test_a_dtype_as_a_constant(kernels: Any, made: str) -> None:
    import cuda.tile as ct

    x, out = np.arange(8, dtype=np.int32), np.zeros(8, np.float16)
    dtype = {"cuTile": ct.float16, "numpy": np.float16, "instance": np.dtype(np.float16)}[made]
    ts.load(kernels.cast)[1](x, out, on="cpu", T=dtype)
    assert (out == x).all()


@pytest.mark.parametrize("value", [[1], np.int32(3), object, {}])
def test_what_is_no_constant(kernels: Any, value: Any) -> None:
    x = np.arange(8, dtype=np.int32)
    with pytest.raises(ts.LaunchError, match=r"cast: T is .*: a constant is a number, a dtype, a string, None, or"):
        ts.load(kernels.cast)[1](x, x, on="cpu", T=value)


def test_a_padding_that_the_type_does_not_have(kernels: Any) -> None:
    x, out = np.zeros(6, ml_dtypes.float8_e4m3fn), np.zeros(8, ml_dtypes.float8_e4m3fn)
    with pytest.raises(ts.SourceError, match=r"some_kernels.py:\d+:\d+: error: .*neg_inf is not a value of f8E4M3FN"):
        ts.load(kernels.padded)[1](x, out, on="cpu")
    wide = np.zeros(8, np.float32)
    ts.load(kernels.padded)[1](np.zeros(6, np.float32), wide, on="cpu")
    assert wide.tolist() == [0] * 6 + [-np.inf] * 2
