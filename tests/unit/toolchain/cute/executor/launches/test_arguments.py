"""Arguments: how arrays and numbers become the registers that a kernel begins with."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects import llvm
from xdsl.dialects.builtin import IntAttr, f32, i32

from toolchain.cute import dsl as cute
from toolchain.cute.executor.launches.arguments import Arguments, TensorMap
from toolchain.cute.executor.state.memory import GlobalMemory
from toolchain.errors import UsageError

BF16: Any = ml_dtypes.bfloat16
MATRIX = cute.Array("bf16", multiple=8)


def bound(parameters: list[Any], args: list[Any], names: tuple[str, ...] = ()) -> tuple[GlobalMemory, list[Any]]:
    memory = GlobalMemory()
    return memory, Arguments(memory, names).of_parameters(parameters, args)


def test_an_array_is_its_pointer_its_sizes_and_its_strides() -> None:
    memory, made = bound([MATRIX, cute.Number32()], [np.zeros((3, 20), BF16), 7])
    assert [int(value[0]) for value in made] == [memory.regions[0].base, 3, 20, 32, 1, 7]
    assert made[1].dtype == np.int32


def test_strides_are_multiples_of_what_the_parameter_promises_and_of_no_more() -> None:
    for multiple in (1, 2, 8, 64):
        _, made = bound([cute.Array("bf16", multiple=multiple)], [np.zeros((3, 20), BF16)])
        stride = int(made[3][0])
        assert stride >= 20 + 8 and stride % multiple == 0 and stride - multiple < 20 + 8


def test_an_address_is_as_aligned_as_the_parameter_promises() -> None:
    for align in (2, 16, 128):
        memory, _ = bound([cute.Array("bf16", align=align)], [np.zeros((3, 20), BF16)])
        assert memory.regions[0].base % align == 0 and memory.regions[0].base % (2 * align)


def test_an_array_that_is_given_twice_lies_in_memory_once() -> None:
    array = np.zeros((16, 24), BF16)
    memory, made = bound([MATRIX, MATRIX, cute.TensorMap()], [array, array, TensorMap(array, (4, 8))])
    assert len(memory.regions) == 1
    assert made[0] == made[5] and made[-1].region is memory.regions[0]
    assert made[-1].descriptor.sizes == (24, 16) and made[-1].descriptor.box == (8, 4)
    assert made[-1].descriptor.strides == (memory.regions[0].pitches[0],)


def test_a_tensor_map_has_rows_that_tma_can_reach() -> None:
    memory, _ = bound(
        [cute.TensorMap(), cute.Array("bf16")], [TensorMap(array := np.zeros((4, 8), BF16), (2, 8)), array]
    )
    assert memory.regions[0].pitches[0] % 16 == 0


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ([np.zeros((2, 2), np.float16)], "the matrix: the kernel takes bfloat16 of 2 dimensions, not float16 of 2"),
        ([np.zeros(2, BF16)], "the matrix: the kernel takes bfloat16 of 2 dimensions, not bfloat16 of 1"),
        ([3], "the matrix: the kernel takes bfloat16 of 2 dimensions, not int"),
        ([], "takes 1 arguments, 0 are given"),
    ],
)
def test_what_is_no_such_array(args: list[Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        bound([MATRIX], args, ("the matrix",))


def test_an_array_is_no_number() -> None:
    with pytest.raises(UsageError, match="argument 0: ndarray is no argument for a Number32"):
        bound([cute.Number32()], [np.zeros(1, np.int32)])


def test_the_parameters_of_a_text() -> None:
    memory = GlobalMemory()
    types = [llvm.LLVMPointerType(IntAttr(1)), i32, f32]
    made = Arguments(memory).of_types(types, [np.zeros((2, 3), np.float32), -1, 0.5])
    assert [value[0] for value in made] == [memory.regions[0].base, -1, 0.5]
    assert [value.dtype for value in made] == [np.int64, np.int32, np.float32]
    assert memory.regions[0].inside is None  # its strides are the array's: the kernel has no others
    with pytest.raises(UsageError, match="argument 1: ndarray is no argument for i32"):
        Arguments(memory).of_types(types, [np.zeros(1), np.zeros(1), 0.5])
    with pytest.raises(UsageError, match="argument 0: int is no argument for"):
        Arguments(memory).of_types(types, [1, 1, 0.5])
