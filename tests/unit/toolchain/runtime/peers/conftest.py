"""GPUs without a GPU: executors over a fake driver that also maps memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.unit.toolchain.runtime.fake_driver import FakeDriver
from toolchain.runtime import GPU
from toolchain.runtime import cuda_driver as module
from toolchain.runtime.cuda import CudaExecutor

PAGE = 2**21
H100 = ((9, 0), 132)


class MappingDriver(FakeDriver):
    """`apart`: pairs of GPUs of which the first cannot reach the second's memory."""

    GIVES_BACK = {
        **FakeDriver.GIVES_BACK, "cuMemCreate": "cuMemRelease", "cuMemAddressReserve": "cuMemAddressFree",
        "cuMemMap": "cuMemUnmap",
    }  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self.apart: set[tuple[int, int]] = set()
        self.values |= {"cuMemGetAllocationGranularity": PAGE, "cuDeviceGetCount": 2}

    def called(self, name: str, args: tuple[Any, ...]) -> tuple[Any, Any]:
        if name == "cuMemMap":  # given back by the address that the caller has named
            self.calls.append((name, args))
            self.made["cuMemUnmap"].append(int(args[0]))
            return self.CUresult.CUDA_SUCCESS, 0
        if name == "cuDeviceCanAccessPeer":
            return self.CUresult.CUDA_SUCCESS, tuple(args) not in self.apart
        return super().called(name, args)


def describe(_driver: Any, index: int) -> GPU:
    return GPU(index, "NVIDIA H100", *H100, 80 * 2**30)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> MappingDriver:
    made = MappingDriver()
    monkeypatch.setattr(module, "load", lambda: made)
    monkeypatch.setattr(module, "describe", describe)
    return made


@pytest.fixture
def executors(fake: MappingDriver) -> Callable[[Sequence[int]], list[CudaExecutor]]:
    del fake
    return lambda numbers: [CudaExecutor(number) for number in numbers]
