from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilestack as ts
from tests.unit.cute_runtime.fake import FakeGPU
from tilestack.api.code import Bytecode

from .fake_torch import FakeTorch, Tensor

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


def test_mistakes_in_the_kernel_have_their_line(kernels: Any) -> None:
    with pytest.raises(ts.SourceError, match=r"(?s)^wrong: .*some_kernels.py\", line 31"):
        ts.load(kernels.wrong)[1](np.zeros(8, np.float32))
