"""One GPU as the driver has it: its context, calls in it, and the handles that are given back before it."""

from __future__ import annotations

import threading
import weakref
from typing import Any

from ..errors import NoGPU
from . import dlpack
from .context import Context
from .cuda_work import CudaEvent, CudaGraph
from .driver import check, describe, load
from .executor import Executor


class CudaDriver(Executor):
    """What a CudaExecutor asks of the driver. Raises NoGPU, DeviceError."""

    kind = "cuda"

    def __init__(self, index: int) -> None:
        super().__init__()
        self.lock = threading.RLock()
        self._handed_out: weakref.WeakSet[CudaEvent | CudaGraph] = weakref.WeakSet()
        self._driver: Any = load()
        count: int = check("cuDeviceGetCount", self._driver.cuDeviceGetCount())
        if not 0 <= index < count:
            raise NoGPU(f"there is no cuda:{index}: the driver lists {count} GPU(s)", hint="see `nvidia-smi -L`")
        self.gpu = describe(self._driver, index)
        self.name = f"cuda:{index} {self.gpu.name} {self.gpu.target}"
        self.target = self.gpu.target
        self.sms = self.gpu.sms
        self.device = (dlpack.CUDA, index)
        # What is written by launches that may still run when the next one begins: all since the last that waited for
        # everything before it. None if the last work was no launch, or one that the next may not overlap.
        self._written: set[range] | None = None
        self._context = Context(self._driver, index)

    def run(self, call: str, *args: Any, doing: str = "") -> Any:
        """A call of the driver API in our context. Raises the DeviceError that its status stands for."""
        with self.lock:
            self._written = None
            return self.ask(call, *args, doing=doing)

    def wait(self, call: str, *args: Any, doing: str = "") -> Any:
        """The same for a call that waits for the device. Other threads may launch meanwhile."""
        with self.lock:
            self._written = None
        return self.ask(call, *args, doing=doing)

    def ask(self, call: str, *args: Any, doing: str = "") -> Any:
        """The same for a call that puts no work on a stream: launches before and after it may overlap."""
        self.check_open()
        return self._context.ask(call, *args, doing=doing)

    @property
    def driver(self) -> Any:
        """cuda.bindings.driver, for its types and constants."""
        return self._driver

    def undo(self, call: str, handle: Any) -> None:
        """Gives this handle back with this call when the executor is closed."""
        self._context.undo(call, handle)

    def hand_out(self, made: CudaEvent | CudaGraph) -> None:
        """Remembers what has a handle of the driver: it is closed before the executor is."""
        with self.lock:
            self._handed_out.add(made)

    def discard(self, call: str, *handle: Any) -> None:
        """Destroys a handle of ours, unless it went with a lost context or a closed executor."""
        if not self._gone:
            self.run(call, *handle)

    def _enter(self) -> None:
        self.check_open()
        self._context.enter()

    @property
    def _gone(self) -> bool:
        """Whether all handles went with the context."""
        return self._context.lost or self.closed
