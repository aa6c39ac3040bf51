"""A CUDA driver without a GPU: it has the real types and constants, records calls, and lets them succeed."""

from __future__ import annotations

from typing import Any

from cuda.bindings import driver


class FakeDriver:
    """Each call that makes something returns a new handle. `made`: the handles that nobody has given back, by the call
    that gives them back. `failing`: the calls that fail, each with its status in `statuses` or as an invalid value.
    `values`: what calls return that make nothing."""

    GIVES_BACK = {
        "cuDevicePrimaryCtxRetain": "cuDevicePrimaryCtxRelease",
        "cuStreamCreate": "cuStreamDestroy",
        "cuMemPoolCreate": "cuMemPoolDestroy",
        "cuModuleLoadData": "cuModuleUnload",
        "cuEventCreate": "cuEventDestroy",
        "cuGraphInstantiate": "cuGraphExecDestroy",
        "cuStreamEndCapture": "cuGraphDestroy",
        "cuMemAllocFromPoolAsync": "cuMemFreeAsync",
        "cuMemAllocAsync": "cuMemFreeAsync",
    }

    def __init__(self) -> None:
        self.failing: set[str] = set()
        self.statuses: dict[str, driver.CUresult] = {}
        self.values: dict[str, int] = {}
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self.made: dict[str, list[int]] = {back: [] for back in self.GIVES_BACK.values()}
        self._next = 0x1000

    def __getattr__(self, name: str) -> Any:
        real = getattr(driver, name)
        return real if isinstance(real, type) else lambda *args: self.called(name, args)

    def called(self, name: str, args: tuple[Any, ...]) -> tuple[Any, Any]:
        self.calls.append((name, args))
        if name in self.failing:
            return self.statuses.get(name, driver.CUresult.CUDA_ERROR_INVALID_VALUE), 0
        if back := self.GIVES_BACK.get(name):
            # The primary context is given back by its device, all else by the handle that was returned.
            self._next += 0x1000
            handle = int(args[0]) if name == "cuDevicePrimaryCtxRetain" else self._next
            self.made[back].append(handle)
            return driver.CUresult.CUDA_SUCCESS, handle
        if name in self.made:
            self.made[name].remove(int(args[0]))  # ValueError: given back twice
        return driver.CUresult.CUDA_SUCCESS, self.values.get(name, 1)

    @property
    def left(self) -> dict[str, int]:
        """How many handles were made and not given back."""
        return {back: len(handles) for back, handles in self.made.items() if handles}

    def names(self) -> list[str]:
        return [name for name, _ in self.calls]
