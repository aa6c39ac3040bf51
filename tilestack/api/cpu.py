"""A launch on the CPU: the interpreter, on the memory of the arrays themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from toolchain.errors import LaunchError

from .binding import Argument, flatten
from .code import Code

NAME = "the interpreter, on the CPU"


def launch(code: Code, arguments: Sequence[Argument], grid: tuple[int, int, int]) -> None:
    """Runs a grid of blocks one after the other. Raises SanitizerError for undefined behaviour, NotInterpretable for
    PTX, and LaunchError for an array on a GPU."""
    for argument in arguments:
        if argument.array is not None and argument.array.device is not None:
            raise LaunchError(
                f"{code.symbol}: {argument.parameter.name} is on cuda:{argument.array.device}, and the launch on the "
                "CPU",
                hint="copy it to the host first, or launch it on the GPU",
            )
    prepared = code.prepared()
    from toolchain.tileir.interpreter import Allocation, Pointer

    pointers: dict[object, Pointer] = {}
    copies: list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]] = []
    for argument in arguments:
        array = argument.array
        if array is None or array.place in pointers:
            continue
        assert array.host is not None
        memory = np.ascontiguousarray(array.host)
        if memory is not array.host and not np.shares_memory(memory, array.host):
            copies.append((array.host, memory))
        pointers[array.place] = Pointer(Allocation(memory))
    written = {a.array.place for a in arguments if a.array is not None and a.parameter.written}
    values = [
        value if isinstance(value, int | float) else pointers[value.place] for _, value in flatten(arguments)
    ]  # fmt: skip
    prepared.launch(code.symbol, values, grid)
    for host, memory in copies:
        if any(a.array is not None and a.array.host is host and a.array.place in written for a in arguments):
            host[...] = memory
