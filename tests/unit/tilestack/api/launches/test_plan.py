"""Repeated launches on tensors of PyTorch, with a driver and a PyTorch that only record. Each launch is compared with
that of a kernel which was just loaded and so has no plan: the same bytes reach the driver, or the same error is
raised."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import tilestack as ts
from tests.unit.cute_runtime.fake import FakeGPU
from tilestack.api.arguments.parameters import Parameter
from tilestack.api.kernels.kernel import Entry, EntryKernel
from tilestack.api.launches import plan
from tilestack.api.launches.code import Bytecode
from toolchain.contract.artifact import CALLING_CONVENTION, TENSOR_MAPS, Form, TensorMap

from ..fake_torch import FakeTorch, Tensor
from ..fake_torch import Parameter as TorchParameter

ARRAY = (8, 4, 4, 4, 4)  # bytes of a rank-2 array's parameters
STRIDED = (None, 1)


def kernel(*changes: dict[str, Any], maps: tuple[TensorMap, ...] = ()) -> ts.Kernel:
    """k(x: f32[?, ?], factor: f32, n: i32, out: f32[?, ?] written). `changes`: of each parameter."""
    made = [
        Parameter("x", "array", "f32", 2, (None, None), STRIDED), Parameter("factor", "number", "f32"),
        Parameter("n", "number", "i32"), Parameter("out", "array", "f32", 2, (None, None), STRIDED, written=True),
    ]  # fmt: skip
    made = [replace(parameter, **change) for parameter, change in zip(made, changes or [{}] * 4, strict=True)]
    form = Form(version="13.4", convention=TENSOR_MAPS if maps else CALLING_CONVENTION, maps=maps)
    code: Any = Bytecode(b"", "k", form, None, {"sm_90": b"cubin"})  # pyright: ignore[reportArgumentType]
    return EntryKernel(Entry(code, tuple(made)))


@pytest.fixture
def launched(gpu: FakeGPU, fake_torch: FakeTorch) -> Callable[..., Any]:
    """What a launch brings to the driver: numbers of the launch, and the parameters' bytes; or the error's text."""
    del fake_torch
    gpu.sizes = (*ARRAY, 4, 4, *ARRAY)

    def launched(which: ts.Kernel, *args: Any, grid: Any = (3, 1, 1), on: str = "auto") -> Any:
        before = len(gpu.launched)
        try:
            which.launch(grid, args, on=on, constants={})
        except ts.TilestackError as error:
            assert len(gpu.launched) == before
            return f"{type(error).__name__}: {error}"
        (found,) = gpu.launched[before:]
        return found[0], gpu.streams[-1], found[1]

    return launched


def test_a_repeated_launch_only_writes_what_changes(launched: Callable[..., Any], checked: list[str]) -> None:
    repeated = kernel()
    for step in range(3):
        args = (Tensor(4, 8), 0.5 + step, 7 - step, Tensor(4, 8))
        assert launched(repeated, *args) == launched(kernel(), *args)
    assert len(checked) == 1 + 3


def test_the_parameters_of_a_repeated_launch(launched: Callable[..., Any]) -> None:
    repeated = kernel()
    launched(repeated, Tensor(4, 8), 1.5, 2, Tensor(4, 8))
    numbers, stream, found = launched(repeated, Tensor(4, 8, at=4096), -2.0, -3, Tensor(4, 8, at=8192))
    assert (numbers[:3], stream) == ((3, 1, 1), 7)
    array = [struct.pack("<i", n) for n in (4, 8, 8, 1)]
    wanted = [struct.pack("<Q", 4096), *array, struct.pack("<f", -2), struct.pack("<i", -3)]
    assert found == [*wanted, struct.pack("<Q", 8192), *array]


def test_each_launch_is_on_the_current_stream(launched: Callable[..., Any], fake_torch: FakeTorch) -> None:
    repeated, args = kernel(), (Tensor(4, 8), 1.0, 1, Tensor(4, 8))
    streams: list[int] = []
    for fake_torch.stream in (7, 7, 9, 0, 7):
        streams.append(launched(repeated, *args)[1])
    assert streams == [7, 7, 9, 0, 7]


X, OUT = Tensor(4, 8, at=2**20), Tensor(4, 8, at=2**21)
OTHERS: dict[str, tuple[Any, ...]] = {
    "dtype": (Tensor(4, 8, dtype="float16"), 1.0, 1, OUT),
    "no dtype of ours": (Tensor(4, 8, dtype="complex64"), 1.0, 1, OUT),
    "rank": (Tensor(4, 8, 1), 1.0, 1, OUT),
    "shape": (Tensor(5, 8), 1.0, 1, Tensor(5, 8)),
    "a step in the last dimension": (Tensor(4, 8, strides=(16, 2)), 1.0, 1, OUT),
    "a step that is compiled in": (Tensor(4, 8, strides=(16, 1)), 1.0, 1, OUT),
    "negative step": (Tensor(4, 8, strides=(-8, 1)), 1.0, 1, OUT),
    "too large": (Tensor(2**31, 8), 1.0, 1, OUT),
    "another device": (X, 1.0, 1, Tensor(4, 8, device=1)),
    "negated": (Tensor(4, 8, negated=True), 1.0, 1, OUT),
    "address": (Tensor(4, 8, at=2**20 + 4), 1.0, 1, OUT),
    "the same": (OUT, 1.0, 1, OUT),
    "overlap": (Tensor(4, 8, at=2**21 - 16), 1.0, 1, OUT),
    "overlap behind": (Tensor(4, 8, at=2**21 + 64), 1.0, 1, OUT),
    "another shape at the same address": (Tensor(2, 8, at=2**21), 1.0, 1, OUT),
    "columns between columns": (Tensor(4, 8, strides=(32, 1)), 1.0, 1, Tensor(4, 8, strides=(32, 1), at=2**20)),
    "too few": (X, 1.0, 1),
    "too many": (X, 1.0, 1, OUT, OUT),
    "a number for a tensor": (1.0, 1.0, 1, OUT),
    "a tensor for a number": (X, X, 1, OUT),
    "no float": (X, 1e39, 1, OUT),
    "infinite": (X, float("inf"), 1, OUT),
    "an integer for a float": (X, 2, 1, OUT),
    "a large integer for a float": (X, 10**39, 1, OUT),
    "a float for an integer": (X, 1.0, 1.0, OUT),
    "a bool for an integer": (X, 1.0, True, OUT),
    "int32": (X, 1.0, 2**31, OUT),
    "not a multiple": (X, 1.0, 3, OUT),
    "neither": (X, 1.0, "1", OUT),
    "a parameter of a module": (TorchParameter(4, 8), 1.0, 1, OUT),
}
KINDS: dict[str, tuple[dict[str, Any], ...]] = {
    "any": ({}, {}, {}, {}),
    "promises": ({"divisors": {0: 16}}, {}, {"divisors": {0: 1}}, {"divisors": {0: 32}}),
    "steps": ({"strides": (8, 1)}, {}, {"divisors": {0: 2}}, {"sizes": (4, 8)}),
    "both written": ({"written": True}, {}, {}, {}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_arguments_that_differ_give_what_they_give_at_first(launched: Callable[..., Any], kind: str) -> None:
    """After another launch, and twice: the second may be by a plan."""
    good, changes = (X, 1.0, 2, OUT), KINDS[kind]
    wanted = launched(kernel(*changes), *good)
    for name, other in OTHERS.items():
        fresh, repeated = launched(kernel(*changes), *other), kernel(*changes)
        for _ in range(2):
            assert launched(repeated, *good) == wanted, name
            assert launched(repeated, *other) == fresh, name


def test_the_cases_above_are_errors_and_launches(launched: Callable[..., Any]) -> None:
    found = {name: isinstance(launched(kernel(), *args), str) for name, args in OTHERS.items()}
    fine = {"shape", "a step that is compiled in", "address", "the same", "columns between columns", "infinite"}
    fine |= {"an integer for a float", "a bool for an integer", "not a multiple", "a parameter of a module"}
    assert {name for name, is_error in found.items() if not is_error} == fine


@pytest.mark.parametrize(
    ("changes", "good", "bad", "error"),
    [
        (({"divisors": {0: 32}}, {}, {}, {}), {"at": 2**19}, {"at": 2**19 + 16}, "multiple of 32"),
        (({"divisors": {0: 8}}, {}, {}, {}), {"at": 2**19 + 8}, {"at": 2**19 + 4}, "multiple of 8"),
        (({}, {}, {}, {}), {"at": 2**19}, {"at": 2**21 + 112}, "overlap in memory"),
    ],
)
def test_what_a_key_does_not_tell_is_checked(
    launched: Callable[..., Any], changes: Any, good: Any, bad: Any, error: str
) -> None:
    """Addresses of the same class, of which only one fits."""
    repeated = kernel(*changes)
    for _ in range(2):
        assert not isinstance(launched(repeated, Tensor(4, 8, **good), 1.0, 1, OUT), str)
        assert error in launched(repeated, Tensor(4, 8, **bad), 1.0, 1, OUT)


def test_a_number_that_must_be_a_multiple(launched: Callable[..., Any]) -> None:
    repeated = kernel({}, {}, {"divisors": {0: 8}}, {})
    assert not isinstance(launched(repeated, X, 1.0, 16, OUT), str)
    assert "relies on a multiple of 8" in launched(repeated, X, 1.0, 12, OUT)


def test_another_grid_or_place_is_another_launch(launched: Callable[..., Any]) -> None:
    repeated = kernel()
    for grid in ((3, 1, 1), (1, 3, 1), (3, 1, 1)):
        assert launched(repeated, X, 1.0, 1, OUT, grid=grid)[0][:3] == grid
        assert "x is on cuda:0, and the launch on the CPU" in launched(repeated, X, 1.0, 1, OUT, grid=grid, on="cpu")


def test_a_grid_that_is_equal_to_one_and_is_none(launched: Callable[..., Any]) -> None:
    repeated = kernel()
    for grid in ((3,), (3, 1, 1)):
        assert launched(repeated, X, 1.0, 1, OUT, grid=grid)[0][:3] == (3, 1, 1)
    for grid in ((3.0,), (3.0, 1, 1), 3.0):
        assert "a grid is one to three numbers" in launched(repeated, X, 1.0, 1, OUT, grid=grid)


def test_numbers_without_a_format_take_the_long_way(launched: Callable[..., Any], checked: list[str]) -> None:
    repeated = kernel({}, {"dtype": "bf16"}, {"dtype": "i1"}, {})
    for _ in range(2):
        launched(repeated, X, 1.0, True, OUT)
    assert len(checked) == 2 and "outside of i1" in launched(repeated, X, 1.0, 2, OUT)


def test_tensor_maps_are_of_the_new_addresses(
    launched: Callable[..., Any], gpu: FakeGPU, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu.sizes = (*gpu.sizes, 128)
    repeated = kernel({}, {}, {}, {}, maps=(TensorMap("out", (4, 8)),))
    seen: list[int] = []
    encoded = gpu.cuTensorMapEncodeTiled
    monkeypatch.setattr(gpu, "cuTensorMapEncodeTiled", lambda *args: (seen.append(int(args[2])), encoded(*args))[1])
    first = launched(repeated, X, 1.0, 1, OUT)
    assert launched(repeated, X, 1.0, 1, Tensor(4, 8, at=2**22))[2][-1] == first[2][-1] == b"\2" * 128  # the rank
    assert seen == [2**21, 2**22]


def test_a_failed_launch_is_an_error(launched: Callable[..., Any], gpu: FakeGPU) -> None:
    repeated = kernel()
    launched(repeated, X, 1.0, 1, OUT)
    gpu.failing.add("cuLaunchKernelEx")
    assert "launching k with grid (3, 1, 1)" in launched(repeated, X, 1.0, 1, OUT)


def test_a_limited_number_is_kept(
    launched: Callable[..., Any], checked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "PLANS", 2)
    repeated = kernel()
    for rows in (1, 2, 1, 2, 3, 3, 1):
        launched(repeated, Tensor(rows, 8), 1.0, 1, Tensor(rows, 8))
    assert len(checked) == 4
