"""NCCL's collectives on the streams of our executors, for messages that are large.

Through nccl4py, NVIDIA's own Python package of NCCL, which only those install who want it. Its low-level module takes
addresses and streams, so that our buffers need no other library's type.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

from ...errors import DeviceError, ToolchainError, UsageError
from ..buffer import DeviceBuffer
from ..cuda import CudaExecutor
from ..layout import contiguous_strides

PACKAGE = "nccl.bindings.nccl"
INSTALL = "pip install nccl4py nvidia-nccl-cu13, or without NCCL: open the peers without nccl=True"
DTYPES = {"f32": "Float32", "f16": "Float16", "bf16": "Bfloat16", "i32": "Int32"}


class Nccl:
    """A communicator for each rank of this process. A call launches one collective on all ranks, on their executors'
    streams, and may be captured."""

    def __init__(self, executors: Sequence[CudaExecutor]) -> None:
        """Raises ToolchainError where the package or the library is not installed, DeviceError of NCCL's errors, and
        UsageError for ranks that share a GPU, which NCCL does not take."""
        numbers = [executor.gpu.index for executor in executors]
        if len(set(numbers)) < len(numbers):
            raise UsageError(f"NCCL takes a GPU for each rank, not {', '.join(f'cuda:{number}' for number in numbers)}")
        self._executors = executors
        self._api = _load()
        with self._errors("making communicators"):
            self._handles: list[Any] = list(self._api.comm_init_all(len(numbers), numbers))

    @property
    def version(self) -> str:
        """NCCL's own: 2.30.3."""
        number = int(self._api.get_version())
        return f"{number // 10000}.{number // 100 % 100}.{number % 100}"

    def all_reduce(self, parts: Sequence[DeviceBuffer], out: Sequence[DeviceBuffer]) -> None:
        """out = the sum of the parts, a contiguous buffer of each rank."""
        self._on_all("all_reduce", parts, out, _count(parts), self._sum)

    def all_gather(self, parts: Sequence[DeviceBuffer], out: Sequence[DeviceBuffer]) -> None:
        """out (R, …) = the parts (…) of all ranks."""
        self._on_all("all_gather", parts, out, _count(parts))

    def reduce_scatter(self, parts: Sequence[DeviceBuffer], out: Sequence[DeviceBuffer]) -> None:
        """out (…) = the sum of the pieces of this rank; parts (R, …)."""
        self._on_all("reduce_scatter", parts, out, _count(out), self._sum)

    def broadcast(self, parts: Sequence[DeviceBuffer], out: Sequence[DeviceBuffer], root: int) -> None:
        """out = the part of rank `root`."""
        self._on_all("broadcast", parts, out, _count(out), root)

    def close(self) -> None:
        """All ranks' work has ended. A second call does nothing."""
        handles, self._handles = self._handles, []
        with self._errors("closing communicators"):
            for handle in handles:
                self._api.comm_destroy(handle)

    @property
    def _sum(self) -> int:
        return int(self._api.RedOp.Sum)

    def _on_all(
        self, name: str, parts: Sequence[DeviceBuffer], out: Sequence[DeviceBuffer], count: int, *how: int
    ) -> None:
        """`count`: of elements, as NCCL counts them for this collective. `how`: what it takes behind the dtype."""
        if not self._handles:
            raise UsageError("NCCL's communicators are closed")
        for buffers in (parts, out):
            _check(name, buffers, self._executors)
        call: Callable[..., object] = getattr(self._api, name)
        kind = int(getattr(self._api.DataType, DTYPES[parts[0].dtype]))
        with self._errors(f"launching {name}"):
            self._api.group_start()
            try:
                for executor, a, b, handle in zip(self._executors, parts, out, self._handles, strict=True):
                    with executor.foreign_work((a, b), f"NCCL's {name}"):
                        call(a.pointer, b.pointer, count, kind, *how, handle, executor.stream)
            finally:
                self._api.group_end()

    @contextmanager
    def _errors(self, doing: str) -> Generator[None]:
        try:
            yield
        except self._api.NCCLError as error:
            raise DeviceError(f"NCCL failed {doing}: {error}", hint="NCCL_DEBUG=INFO makes NCCL say more") from error


def _load() -> Any:
    try:
        api = importlib.import_module(PACKAGE)
        api.get_version()  # finds the library
    except ImportError as error:
        raise ToolchainError(f"no NCCL for Python: {error}", hint=INSTALL) from error
    except RuntimeError as error:
        raise ToolchainError(f"NCCL's library is not found: {error}", hint=INSTALL) from error
    return api


def _check(name: str, buffers: Sequence[DeviceBuffer], executors: Sequence[object]) -> None:
    if len(buffers) != len(executors):
        raise UsageError(f"{name}: {len(buffers)} buffers for {len(executors)} ranks")
    for buffer, executor in zip(buffers, executors, strict=True):
        if buffer.executor is not executor:
            raise UsageError(f"{name}: {buffer!r} is of another rank")
        buffer.check_alive()
        if buffer.strides != contiguous_strides(buffer.shape):
            raise UsageError(f"{name}: {buffer!r} is not contiguous", hint="copy it first")
    if len({(buffer.dtype, buffer.shape) for buffer in buffers}) > 1 or buffers[0].dtype not in DTYPES:
        shown = ", ".join(f"{buffer.dtype} {list(buffer.shape)}" for buffer in buffers)
        raise UsageError(f"{name}: {shown}: the ranks' buffers are of one shape, in {', '.join(DTYPES)}")


def _count(buffers: Sequence[DeviceBuffer]) -> int:
    return math.prod(buffers[0].shape)
