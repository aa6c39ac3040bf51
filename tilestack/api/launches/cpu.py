"""A launch on the CPU: the interpreter, or the executor of CuTe kernels, on the memory of the arrays themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from toolchain.contract.launching import check_grid
from toolchain.errors import LaunchError

from ..arguments.arrays import Array
from ..arguments.binding import Argument, each, flatten
from .code import Code

NAME = "the interpreter, on the CPU"


def launch(code: Code, arguments: Sequence[Argument], grid: tuple[int, int, int]) -> None:
    """Runs a grid of blocks one after the other. Raises SanitizerError for undefined behaviour, NotInterpretable for
    PTX without the kernel that it was made of, and LaunchError for an array on a GPU."""
    placed = list(each(arguments))
    for argument in placed:
        if argument.array is not None and argument.array.device is not None:
            raise LaunchError(
                f"{code.symbol}: {argument.parameter.name} is on cuda:{argument.array.device}, and the launch on the "
                "CPU",
                hint="copy it to the host first, or launch it on the GPU",
            )
    if 0 in grid:
        return
    check_grid(code.symbol, grid)
    memories: dict[object, np.ndarray[Any, Any]] = {}  # by place: the same array twice is one memory
    copies: list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]] = []
    for argument in placed:
        array = argument.array
        if array is None or array.place in memories:
            continue
        assert array.host is not None
        memory = array.host if array.in_place else np.ascontiguousarray(array.host)
        if array.packed and any(np.may_share_memory(memory, other) for other in memories.values()):
            memory = memory.copy()  # so that each stands alone
        memories[array.place] = memory
        written = any(a.parameter.written for a in placed if a.array is not None and a.array.place == array.place)
        if written and not np.shares_memory(memory, array.host):
            copies.append((array.host, memory))
    if code.form.kind == "ptx":
        named = {a.parameter.name: memories[a.array.place] for a in arguments if a.array is not None}
        numbers = {a.parameter.name: a.numbers[0][1] for a in arguments if a.array is None}
        code.run_threads(named, numbers, grid)
    else:
        _interpret(code, arguments, memories, grid)
    for host, memory in copies:
        host[...] = memory


def _interpret(
    code: Code,
    arguments: Sequence[Argument],
    memories: Mapping[object, np.ndarray[Any, Any]],
    grid: tuple[int, int, int],
) -> None:
    prepared = code.prepared()
    from toolchain.tileir.interpreter import AddressSpace, Allocation, Pointer, Storage
    from toolchain.tileir.interpreter import placed as allocated

    def storage(memory: np.ndarray[Any, Any]) -> Storage:
        low, high = np.lib.array_utils.byte_bounds(memory)
        return Storage(low, high - low, memory, memory.flags.writeable, own=True)

    known = allocated(storage(memory) for memory in memories.values() if memory.size)
    space = AddressSpace(known)

    def pointer(value: Array | Argument | float) -> Pointer | int | float:
        if isinstance(value, Argument):
            return Pointer(Allocation(value.table(lambda array: memories[array.place].ctypes.data)))
        if not isinstance(value, Array):
            return value
        memory = memories[value.place]
        found = space.pointer_at(memory.ctypes.data) if memory.size else None
        return Pointer(Allocation(np.zeros(0, np.uint8))) if found is None else found

    prepared.launch(code.symbol, [pointer(value) for _, value in flatten(arguments)], grid, placed=known)
