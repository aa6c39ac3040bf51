"""A GPU's context: calls in it, errors that lose it, and handles that go back with it."""

from __future__ import annotations

import pytest

from toolchain.errors import DeviceError
from toolchain.runtime.context import Context

from .fake_driver import FakeDriver


def test_every_call_is_made_in_the_context() -> None:
    fake = FakeDriver()
    context = Context(fake, 3)
    fake.calls.clear()
    assert context.ask("cuMemGetInfo") == 1
    assert fake.names() == ["cuCtxSetCurrent", "cuMemGetInfo"]


def test_handles_go_back_the_last_first_and_the_context_behind_them() -> None:
    fake = FakeDriver()
    context = Context(fake, 0)
    context.new_stream()
    context.undo("cuEventDestroy", context.ask("cuEventCreate", 0))
    context.close()
    assert fake.left == {}
    back = [name for name in fake.names() if "Destroy" in name or "Release" in name]
    assert back == ["cuEventDestroy", "cuStreamDestroy", "cuDevicePrimaryCtxRelease"]


@pytest.mark.parametrize(
    ("status", "lost"), [("CUDA_ERROR_INVALID_VALUE", False), ("CUDA_ERROR_ILLEGAL_ADDRESS", True)]
)
def test_handles_of_a_lost_context_are_gone(status: str, *, lost: bool) -> None:
    fake = FakeDriver()
    context = Context(fake, 0)
    context.new_stream()
    fake.failing, fake.statuses = {"cuMemFreeAsync"}, {"cuMemFreeAsync": getattr(fake.CUresult, status)}
    with pytest.raises(DeviceError, match="cuMemFreeAsync failed while freeing"):
        context.ask("cuMemFreeAsync", 16, 0, doing="freeing")
    assert context.lost == lost
    context.close()
    assert (fake.left == {}) == (not lost)
