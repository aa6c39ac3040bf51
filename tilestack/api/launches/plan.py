"""Plan: a launch on a GPU that was checked once, ready to be repeated on tensors of PyTorch.

What the checks of a launch depend on is the key of its plan: grid, constants, the types of numbers, and of each tensor
dtype, device, shape, strides, whether its address is a multiple of 16, and which tensors begin at the same address.
What is left is checked at each launch: multiples that the kernel relies on, overlaps, the range of numbers. Where one
of these does not hold, the launch takes the long way, which raises the error. So do all other arguments: arrays of
the host or of other libraries, and numbers that `struct` has no format for, such as bf16.
"""

from __future__ import annotations

import itertools
import struct
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from toolchain.contract.entry import ALIGNMENT
from toolchain.runtime.overlaps import meet
from toolchain.runtime.packing import FORMATS, Packed, array
from toolchain.runtime.tensor_maps import TensorMaps

from ..arguments.arrays import torch_stream
from ..arguments.binding import Argument, Grid
from . import gpu
from .code import Code

if TYPE_CHECKING:
    from .gpu import Function

PLANS = 4096  # that a kernel keeps; a loop over growing shapes must not use more and more memory
_NUMBERS = (int, float, bool)  # no subclasses, which may be turned into a number in their own way


class Call(NamedTuple):
    """The arguments of a launch: what its checks depend on, the tensors' addresses, and the numbers."""

    key: tuple[Any, ...]
    pointers: list[int]
    numbers: list[int | float]


def read(grid: Grid | None, args: Sequence[Any], on: str, constants: Mapping[str, Any]) -> Call | None:
    """The arguments of a launch; None if no plan is for such arguments."""
    torch = sys.modules.get("torch")
    if torch is None or (grid is not None and not _checked(grid)):
        return None
    tensor, parameter, strided = torch.Tensor, torch.nn.Parameter, torch.strided
    key: list[Any] = [grid, on]
    pointers: list[int] = []
    numbers: list[int | float] = []
    for arg in args:
        kind = arg.__class__
        if kind in _NUMBERS:
            numbers.append(arg)
            key.append(kind)
        elif (kind is tensor or kind is parameter) and arg.layout is strided and not arg.is_neg():
            address = arg.data_ptr()
            pointers.append(address)
            first = pointers.index(address)
            key += (arg.dtype, arg.device, arg.shape, arg.stride(), address % ALIGNMENT == 0, first)
        else:
            return None
    for name, value in constants.items():
        if value.__class__ not in (*_NUMBERS, str):
            return None
        key += (name, value.__class__, repr(value))  # -0.0 is equal to 0.0
    return Call(tuple(key), pointers, numbers)


def _checked(grid: Grid) -> bool:
    """Whether a grid is like `three` returns it. Others may be equal to one and still be wrong, such as 2.0."""
    return isinstance(grid, tuple) and all(blocks.__class__ is int for blocks in grid)


class RepeatedLaunch:
    """One launch, with all that stays the same: the loaded kernel, its parameters in memory, the grid."""

    def __init__(
        self, code: Code, function: Function, arguments: Sequence[Argument], grid: tuple[int, int, int]
    ) -> None:
        """For arguments that `plannable` takes and that were just launched."""
        self.code, self._function, self._gpu = code, function, function.gpu
        arrays = [(a.parameter, a.array) for a in arguments if a.array is not None]
        numbers = [a.parameter for a in arguments if a.array is None]
        self._index = arrays[0][1].device or 0
        self._multiples = [(at, d) for at, (p, _) in enumerate(arrays) if (d := p.divisors.get(0, 1)) > 1]
        self._number_multiples = [(at, d) for at, p in enumerate(numbers) if (d := p.divisors.get(0, 1)) > 1]
        # Pairs of tensors that must not share memory, with their bytes. What begins at the same address stays together.
        self._apart = [
            (one, other, len(a.span), len(b.span))
            for (one, (p, a)), (other, (q, b)) in itertools.combinations(enumerate(arrays), 2)
            if (p.written or q.written) and a.place != b.place
        ]
        addresses: dict[object, int] = {(False, a.place): a.address for _, a in arrays}
        names = [parameter.name for parameter, _ in arrays]
        made = [(names.index(one.array), gpu.tensor_map(code, one, arguments, addresses)) for one in code.form.maps]
        self._maps = TensorMaps(made, function.gpu.encode) if made else None
        self._packed = Packed(list(_slots(arguments)), self._maps.addresses if self._maps else ())
        self._call = (function.handle, self._packed.address)
        self._shape = (grid, code.form.block, code.form.shared_bytes)
        self._what = f"{code.symbol} with grid {grid}"
        self._torch = sys.modules["torch"]
        self._config = (-1, None)  # the last stream's handle, and how to launch there

    def repeat(self, call: Call) -> bool:
        """Launches with arguments of this plan's key. False if one of them must be looked at again: then nothing was
        launched. Raises DeviceError."""
        pointers, numbers = call.pointers, call.numbers
        for at, divisor in self._multiples:
            if pointers[at] % divisor:
                return False
        for at, divisor in self._number_multiples:
            if numbers[at] % divisor:
                return False
        for one, other, size, other_size in self._apart:
            start, other_start = pointers[one], pointers[other]
            if start < other_start + other_size and other_start < start + size:
                return False
        device = self._gpu
        stream = torch_stream(self._torch, self._index)
        with device.lock, gpu.context_kept(device):
            try:
                self._packed.write(pointers, numbers)
            except (struct.error, OverflowError):
                return False
            if self._maps is not None:
                self._maps.write(pointers)
            if self._config[0] != stream:
                self._config = (stream, device.launch_config(*self._shape, stream=stream))
            device.launch(self._config[1], self._call, self._what)
        return True


class Plans:
    """The plans of a kernel, by their keys."""

    def __init__(self) -> None:
        self._plans: dict[tuple[Any, ...], RepeatedLaunch] = {}

    def repeat(self, call: Call | None) -> RepeatedLaunch | None:
        """Launches by a plan, if there is one that takes the call, and returns it."""
        plan = None if call is None else self._plans.get(call.key)
        return plan if plan is not None and call is not None and plan.repeat(call) else None

    def keep(self, call: Call | None, plan: RepeatedLaunch | None) -> None:
        if call is None or plan is None:
            return
        if len(self._plans) >= PLANS:
            self._plans.clear()
        self._plans[call.key] = plan


def plannable(arguments: Sequence[Argument], grid: tuple[int, int, int]) -> bool:
    """Whether a plan may be made of these arguments, which were just launched."""
    arrays = [(a.parameter, a.array) for a in arguments if a.array is not None]
    if any(a.items for a in arguments):
        return False
    if not arrays or 0 in grid or any(not a.torch or a.device is None for _, a in arrays):
        return False
    if any(a.array is None and a.parameter.dtype not in FORMATS for a in arguments):
        return False
    # Tensors that lie in between each other without sharing an element: only the long way can tell that they do.
    return not any(
        (p.written or q.written) and a.place != b.place and meet(a.span, b.span)
        for (p, a), (q, b) in itertools.combinations(arrays, 2)
    )


def _slots(arguments: Sequence[Argument]) -> list[str | bytes]:
    """What the kernel's parameters are: see Packed."""
    found: list[str | bytes] = []
    for argument in arguments:
        if argument.array is None:
            found.append(FORMATS[argument.parameter.dtype])
        else:
            found += array(argument.numbers)
    return found
