"""A GPU's context, and the handles that are given back with it."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from ..errors import DeviceError
from .driver import check, is_sticky


class Context:
    """A GPU's primary context, as one executor uses it. `driver`: cuda.bindings.driver. `lost`: after an error that no
    later call recovers from. Raises DeviceError."""

    def __init__(self, driver: Any, index: int) -> None:
        self.driver = driver
        self.lost = False
        self._undo = ExitStack()  # gives back what was made here, the last first
        device = self.check("cuDeviceGet", driver.cuDeviceGet(index))
        self._handle = self.check("cuDevicePrimaryCtxRetain", driver.cuDevicePrimaryCtxRetain(device))
        self.undo("cuDevicePrimaryCtxRelease", device)

    def enter(self) -> None:
        """Makes it the calling thread's, which may have another device's or, a new thread, none."""
        self.check("cuCtxSetCurrent", self.driver.cuCtxSetCurrent(self._handle))

    def ask(self, call: str, *args: Any, doing: str = "") -> Any:
        """A call of the driver API in this context. Raises the DeviceError that its status stands for."""
        self.enter()
        return self.check(call, getattr(self.driver, call)(*args), doing)

    def check(self, call: str, result: tuple[Any, ...], doing: str = "") -> Any:
        """What a call has returned. Raises the DeviceError that its status stands for."""
        try:
            return check(call, result, doing)
        except DeviceError:
            self.lost = self.lost or is_sticky(int(result[0]))
            raise

    def undo(self, call: str, handle: Any) -> None:
        """Gives this handle back with this call when the context is closed."""
        self._undo.callback(self.destroy, call, handle)

    def destroy(self, call: str, *handle: Any) -> None:
        """Gives a handle back now, unless it went with a lost context."""
        if not self.lost:
            self.ask(call, *handle, doing="closing the executor")

    def new_stream(self) -> Any:
        """A stream that does not wait for the legacy default one."""
        stream = self.ask("cuStreamCreate", self.driver.CUstream_flags.CU_STREAM_NON_BLOCKING.value)
        self.undo("cuStreamDestroy", stream)
        return stream

    def close(self) -> None:
        """Gives everything back, the context itself last."""
        self._undo.close()
