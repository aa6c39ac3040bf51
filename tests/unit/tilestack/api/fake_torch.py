"""A PyTorch without a GPU: the part of its tensors that a launch reads, over addresses that nobody follows."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from toolchain.runtime.layout import contiguous_strides

_ADDRESSES = itertools.count(2**20, 2**20)


@dataclass(frozen=True)
class Device:
    type: str
    index: int | None


@dataclass(frozen=True)
class DType:
    name: str

    def __str__(self) -> str:
        return f"torch.{self.name}"


class Tensor:
    """A tensor of a GPU. `at`: its address; by default one of its own."""

    layout, is_quantized = "strided", False

    def __init__(
        self, *shape: int, dtype: str = "float32", strides: Sequence[int] | None = None, at: int | None = None,
        device: int = 0, negated: bool = False,
    ) -> None:  # fmt: skip
        self.shape, self.dtype, self.device = shape, DType(dtype), Device("cuda", device)
        self._strides = contiguous_strides(shape) if strides is None else tuple(strides)
        self._at = next(_ADDRESSES) if at is None else at
        self._negated = negated

    def stride(self) -> tuple[int, ...]:
        return self._strides

    def data_ptr(self) -> int:
        return self._at

    def __dlpack__(self) -> object:
        raise AssertionError("PyTorch's tensors are read by their attributes")

    def is_conj(self) -> bool:
        return False

    def is_neg(self) -> bool:
        return self._negated


class Parameter(Tensor): ...


class FakeTorch:
    """The module. `stream`: the handle of the current stream, of every device."""

    Tensor, nn, strided = Tensor, SimpleNamespace(Parameter=Parameter), "strided"

    def __init__(self, stream: int = 0) -> None:
        self.stream = stream
        self._C: Any = SimpleNamespace(_cuda_getCurrentRawStream=self.handle)

    def handle(self, device: int) -> int:
        return self.stream + 1000 * device
