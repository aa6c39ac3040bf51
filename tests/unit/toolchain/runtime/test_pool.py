"""The pool of an executor: where its memory comes from, and what is said when there is none."""

from __future__ import annotations

from typing import Any

import pytest

from toolchain.errors import OutOfMemory
from toolchain.runtime.context import Context
from toolchain.runtime.pool import Pool

from .fake_driver import FakeDriver


class Executor:
    name = "cuda:0 NVIDIA H200 sm_90"

    def __init__(self, context: Context) -> None:
        self.context = context

    def run(self, call: str, *args: Any, doing: str = "") -> Any:
        return (2**20, 2**30) if call == "cuMemGetInfo" else self.context.ask(call, *args, doing=doing)


@pytest.fixture
def fake() -> FakeDriver:
    return FakeDriver()


@pytest.fixture
def device(fake: FakeDriver) -> Executor:
    return Executor(Context(fake, 0))


def test_memory_is_of_a_pool_of_our_own(fake: FakeDriver, device: Executor) -> None:
    pool = Pool(device.context, 5)
    assert pool.take(device, 0, 7) == fake.made["cuMemFreeAsync"][0]
    assert not [name for name in fake.names() if "Default" in name or name == "cuMemAllocAsync"]
    (handle,) = fake.made["cuMemPoolDestroy"]
    ((properties,),) = [args for name, args in fake.calls if name == "cuMemPoolCreate"]
    kind = fake.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    assert (properties.location.type, properties.location.id) == (kind, 5)
    assert [args[0] for name, args in fake.calls if name == "cuMemPoolSetAttribute"] == [handle]
    assert [args for name, args in fake.calls if name == "cuMemAllocFromPoolAsync"] == [(1, handle, 7)]


def test_memory_is_counted_in_it(fake: FakeDriver, device: Executor) -> None:
    pool = Pool(device.context, 0)
    (handle,) = fake.made["cuMemPoolDestroy"]
    fake.calls.clear()
    assert (pool.used_bytes(device), pool.most_used_bytes(device, reset=False)) == (1, 1)
    assert pool.most_used_bytes(device, reset=True) == 1
    asked = [name for name, args in fake.calls if "Pool" in name and args[0] == handle]
    assert asked == ["cuMemPoolGetAttribute"] * 3 + ["cuMemPoolSetAttribute"]


def test_what_is_left_goes_back_once(fake: FakeDriver, device: Executor) -> None:
    pool = Pool(device.context, 0)
    first, _ = pool.take(device, 64, 7), pool.take(device, 64, 7)
    pool.give_back(device, first, 7)
    pool.give_all_back(7)
    pool.give_all_back(7)
    device.context.close()
    assert fake.left == {}


def test_without_memory_it_says_how_much_there_is(fake: FakeDriver, device: Executor) -> None:
    pool = Pool(device.context, 0)
    fake.failing = {"cuMemAllocFromPoolAsync"}
    fake.statuses = {"cuMemAllocFromPoolAsync": fake.CUresult.CUDA_ERROR_OUT_OF_MEMORY}
    with pytest.raises(OutOfMemory, match=r"cuda:0 NVIDIA H200 sm_90"):
        pool.take(device, 2**31, 7)
