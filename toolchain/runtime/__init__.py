"""Launching the entries of a bundle: on a GPU through the CUDA driver, or on the CPU through the interpreter."""

from __future__ import annotations

from ..errors import UsageError
from .buffer import Allocation, DeviceBuffer
from .cpu import CpuExecutor
from .driver import GPU, gpus
from .executor import PLACE, Event, Executor, Graph
from .launch import Launcher

__all__ = ["GPU", "Allocation", "DeviceBuffer", "Event", "Executor", "Graph", "Launcher", "gpus", "open_executor"]


def open_executor(which: str = "auto", *, sanitize: bool = True) -> Executor:
    """The executor of that name: "cpu", "cuda" (the first GPU), "cuda:1", or "auto" (the first GPU, or the CPU if there
    is none). `sanitize`: on the CPU the interpreter traps undefined behaviour.

    Raises NoGPU, DriverTooOld, and UsageError for another name.
    """
    match = PLACE.fullmatch(which)
    if match is None:
        raise UsageError(f"no executor is called {which!r}", hint="one of auto, cpu, cuda, cuda:<number>")
    if which == "cpu" or (which == "auto" and not gpus()):
        return CpuExecutor(sanitize=sanitize)
    from .cuda import CudaExecutor  # imported here because it needs cuda-bindings

    return CudaExecutor(int(match[1] or 0))
