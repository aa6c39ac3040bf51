from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tilestack.api.arguments import binding
from tilestack.api.arguments.arrays import Array
from tilestack.api.arguments.given import arrays_of
from tilestack.api.arguments.parameters import Parameter
from toolchain.errors import LaunchError

X = Parameter("x", "array", "f32", 2, (None, None), (None, 1))
N = Parameter("n", "number", "i32")
OUT = Parameter("out", "array", "f32", 1, (None,), (1,), written=True)
P = Parameter("p", "pointer", "f32", written=True)


def bound(parameters: list[Parameter], *args: Any) -> list[binding.Argument]:
    names = [parameter.name for parameter in parameters]
    return binding.bind("k", parameters, args, arrays_of("k", args, names))


def on_gpu(shape: tuple[int, ...], strides: tuple[int, ...], address: int = 4096) -> Array:
    return Array("float32", shape, strides, address, 0)


def values(arguments: list[binding.Argument]) -> list[Any]:
    return [value for dtype, value in binding.flatten(arguments) if dtype != "ptr"]


def test_sizes_and_strides_follow_an_array() -> None:
    x, out = np.zeros((3, 4), np.float32), np.zeros(4, np.float32)
    found = bound([X, N, OUT], x, 7, out)
    assert [dtype for dtype, _ in binding.flatten(found)] == [
        "ptr",
        "i32",
        "i32",
        "i32",
        "i32",
        "i32",
        "ptr",
        "i32",
        "i32",
    ]
    assert values(found) == [3, 4, 4, 1, 7, 4, 1]


def test_a_host_array_is_seen_without_gaps() -> None:
    """Its launch copies it; that it has gaps or runs backwards is no error."""
    assert values(bound([X], np.zeros((8, 6), np.float32)[::-2, ::3])) == [4, 2, 2, 1]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((np.zeros((2, 2)), 1, np.zeros(2, np.float32)), r"argument 0 \(x\) is f64\[2, 2\] .* must be of f32"),
        (
            (np.zeros(2, np.float32), 1, np.zeros(2, np.float32)),
            r"argument 0 \(x\).*of rank 1; the kernel takes rank 2",
        ),
        ((np.zeros((2, 2), np.float32), 1.5, np.zeros(2, np.float32)), r"argument 1 \(n\) is 1.5.*integer"),
        ((np.zeros((2, 2), np.float32), 2**31, np.zeros(2, np.float32)), r"argument 1 \(n\).*outside of i32"),
        ((np.zeros((2, 2), np.float32), np.zeros(2), np.zeros(2, np.float32)), r"\(n\) is an array.*takes a number"),
        ((np.zeros((2, 2), np.float32), 1, 3), r"argument 2 \(out\) is 3; the kernel takes an array of f32"),
        ((np.zeros((2, 2), np.float32), 1), r"2 arguments; it takes x: f32\[\?, \?\], n: i32, out: f32\[\?\] written"),
        ((np.zeros((2, 2), np.float32), 1, np.zeros(2, np.float32), 4), "4 arguments; it takes"),
        ((np.zeros((2, 2), np.float32), "one", np.zeros(2, np.float32)), r"argument 1 \(n\) is a str"),
        (([1.0, 2.0], 1, np.zeros(2, np.float32)), r"argument 0 \(x\) is a list.*\n.*numpy\.asarray"),
    ],
)
def test_an_argument_that_does_not_fit_is_named(args: tuple[Any, ...], message: str) -> None:
    with pytest.raises(LaunchError, match=message):
        bound([X, N, OUT], *args)


def test_an_output_must_be_writeable() -> None:
    out = np.zeros(4, np.float32)
    out.flags.writeable = False
    with pytest.raises(LaunchError, match=r"\(out\) is read-only"):
        bound([OUT], out)


def one(parameter: Parameter, array: Array) -> list[binding.Argument]:
    return binding.bind("k", [parameter], [None], [array])


def test_strides_and_sizes_that_are_compiled_in() -> None:
    with pytest.raises(LaunchError, match="stride 2 in dimension 1; the kernel is compiled for 1"):
        one(X, on_gpu((4, 4), (8, 2)))
    assert values(one(X, on_gpu((4, 1), (8, 2)))) == [4, 1, 8, 1]  # no element is reached by that stride
    with pytest.raises(LaunchError, match="size 5 in dimension 0; the kernel is compiled for 4"):
        one(Parameter("x", "array", "f32", 1, (4,), (1,)), on_gpu((5,), (1,)))
    with pytest.raises(LaunchError, match="negative strides"):
        one(Parameter("x", "array", "f32", 1, (None,), (None,)), on_gpu((5,), (-1,)))


def test_promises_are_checked() -> None:
    promised = Parameter("x", "array", "f32", 2, (None, None), (None, 1), divisors={0: 16, 3: 4})
    assert one(promised, on_gpu((2, 2), (4, 1)))
    with pytest.raises(LaunchError, match=r"address 4100; the kernel relies on a multiple of 16"):
        one(promised, on_gpu((2, 2), (4, 1), 4100))
    with pytest.raises(LaunchError, match=r"stride 5; the kernel relies on a multiple of 4"):
        one(promised, on_gpu((2, 2), (5, 1)))
    assert one(promised, on_gpu((1, 2), (5, 1)))  # one row: its stride reaches nothing
    with pytest.raises(LaunchError, match="6; the kernel relies on a multiple of 4"):
        bound([Parameter("n", "number", "i32", divisors={0: 4})], 6)


def test_a_pointer_alone_or_with_its_sizes() -> None:
    x = np.zeros((3, 4), np.float32)
    assert values(bound([P, N], x, 5)) == [5]
    assert values(bound([P, N, N, N, N], x)) == [3, 4, 4, 1]
    assert values(bound([P, N, N, N, N, N], x, 9)) == [3, 4, 4, 1, 9]
    with pytest.raises(LaunchError, match=r"\(p\) has rank 2 and 0 numbers follow it; in the code 2 follow"):
        bound([P, N, N], x)
    with pytest.raises(LaunchError, match="takes no strides"):
        one(P, on_gpu((4,), (2,)))


def test_memory_may_not_overlap_where_it_is_written() -> None:
    memory = np.zeros(8, np.float32)
    both = [Parameter("x", "array", "f32", 1, (None,), (1,)), OUT]
    assert bound(both, memory, memory)  # in place
    assert bound(both, memory[::2], memory[1::2])
    with pytest.raises(LaunchError, match="x and out overlap in memory"):
        bound(both, memory[:6], memory[2:])
    assert bound([both[0], both[0]], memory[:6], memory[2:])  # both are only read
    with pytest.raises(LaunchError, match="x and out overlap"):
        binding.bind("k", both, [None, None], [on_gpu((4,), (1,)), on_gpu((4,), (1,), 4104)])


@pytest.mark.parametrize(
    ("dtype", "given", "wanted"), [("i1", True, 1), ("i8", -128, -128), ("f32", 3, 3.0), ("i32", np.int64(5), 5)]
)
def test_numbers(dtype: str, given: Any, wanted: Any) -> None:
    assert binding.number(Parameter("n", "number", dtype), given, "n") == wanted


@pytest.mark.parametrize(("dtype", "given"), [("i1", 2), ("i8", 128), ("f16", 1e6), ("f32", 1e39), ("i32", 1.0)])
def test_numbers_that_do_not_fit(dtype: str, given: Any) -> None:
    with pytest.raises(LaunchError, match=r"^n is"):
        binding.number(Parameter("n", "number", dtype), given, "n")


def test_infinity_is_a_number() -> None:
    assert binding.number(Parameter("n", "number", "bf16"), float("inf"), "n") == float("inf")


@pytest.mark.parametrize(("grid", "wanted"), [(3, (3, 1, 1)), ((2, 4), (2, 4, 1)), ((np.int64(1), 2, 3), (1, 2, 3))])
def test_grids(grid: Any, wanted: tuple[int, int, int]) -> None:
    assert binding.three(grid) == wanted


@pytest.mark.parametrize("grid", [(), (1, 2, 3, 4), 1.5, (-1,), "3", [2]])
def test_what_is_no_grid(grid: Any) -> None:
    with pytest.raises(LaunchError, match="a grid is one to three numbers of blocks"):
        binding.three(grid)


@pytest.mark.parametrize(
    ("shape", "strides", "allowed"),
    [
        ((4,), (0,), False), ((3, 4), (1, 1), False), ((2, 3), (3, 2), True), ((3, 2), (2, 3), True),
        ((3, 2), (1, 2), False), ((3, 4), (8, 2), True), ((1, 4), (0, 1), True), ((0, 4), (0, 0), True),
        ((2, 3, 4), (12, 4, 1), True), ((2, 3, 4), (12, 3, 1), False),
    ],
)  # fmt: skip
def test_what_is_written_does_not_overlap_itself(
    shape: tuple[int, ...], strides: tuple[int, ...], allowed: bool
) -> None:
    memory = np.zeros(32, np.float32)
    on_host = np.lib.stride_tricks.as_strided(memory, shape, tuple(4 * stride for stride in strides))
    rank = len(shape)
    out = Parameter("out", "array", "f32", rank, (None,) * rank, (None,) * rank, written=True)
    for given in (arrays_of("k", [on_host]), [on_gpu(shape, strides)]):
        assert binding.bind("k", [replace(out, written=False)], [None], given)
        if allowed:
            assert binding.bind("k", [out], [None], given)
        else:
            with pytest.raises(LaunchError, match=r"argument 0 \(out\) is .*: elements share memory"):
                binding.bind("k", [out], [None], given)


def test_a_list_for_a_kernel_of_a_file() -> None:
    """Its table is a pointer to i64 in the code, behind which the number of arrays stands."""
    table = Parameter("xs", "pointer", "i64", writes_items=True)
    items = [np.zeros((2, 3), np.float32), np.zeros((4, 5), np.float32)]
    first, out = bound([table, N, OUT], items, np.zeros(4, np.float32))
    assert values([first, out]) == [2, 4, 1]
    assert first.table(lambda array: array.shape[0] * 100).tolist() == [[200, 2, 3, 3, 1], [400, 4, 5, 5, 1]]
    assert all(item.parameter.written for item in first.items)
    with pytest.raises(LaunchError, match=r"argument 0 \(p\) is a list of arrays; the kernel takes an array of f32"):
        bound([P, N], items)
    with pytest.raises(LaunchError, match=r"argument 0 \(x\) is a list of arrays; the kernel takes x: f32"):
        bound([X], items)
