"""What the driver and NVML say of GPUs and their links."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from toolchain.runtime import GPU
from toolchain.runtime.peers import links as module
from toolchain.runtime.peers.links import Link, NoNVML, links, nvlinks

from .conftest import MappingDriver


class LinkedDriver(MappingDriver):
    def called(self, name: str, args: tuple[Any, ...]) -> tuple[Any, Any]:
        if name == "cuDeviceGetP2PAttribute":
            atomics = "ATOMIC" in args[0].name
            return self.CUresult.CUDA_SUCCESS, not (atomics and args[1:] == (1, 0))
        if name == "cuDeviceGetPCIBusId":
            return self.CUresult.CUDA_SUCCESS, b"0000:%02x:00.0\0\0" % int(args[1])
        if name == "cuDeviceGet":
            return self.CUresult.CUDA_SUCCESS, args[0]
        return super().called(name, args)


@pytest.fixture(autouse=True)
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    made = LinkedDriver()
    monkeypatch.setattr(module, "load", lambda: made)
    monkeypatch.setattr(module, "gpus", lambda: [GPU(index, "H100", (9, 0), 132, 2**36) for index in range(2)])


def test_links_go_both_ways() -> None:
    assert links() == [Link(0, 1, access=True, atomics=True), Link(1, 0, access=True, atomics=False)]


class NvmlError(Exception):
    pass


def test_nvlinks_are_counted_until_one_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[bool] = []

    def state(device: str, link: int) -> int:
        if link >= 4:
            raise NvmlError
        return int(link != 1 or device.startswith("0000:01"))

    def handle(place: str) -> str:
        return place

    nvml = SimpleNamespace(
        init_v2=lambda: None, shutdown=lambda: ended.append(True), NvmlError=NvmlError, NVLINK_MAX_LINKS=18,
        device_get_handle_by_pci_bus_id_v2=handle, device_get_nvlink_state=state,
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "cuda.bindings.nvml", nvml)
    assert nvlinks() == {0: 3, 1: 4}
    assert ended == [True]


def test_without_nvml(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuda.bindings.nvml", None)
    with pytest.raises(NoNVML, match="NVML cannot be asked"):
        nvlinks()
