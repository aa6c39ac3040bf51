"""What stands for `torch.cuda`, without PyTorch."""

from __future__ import annotations

import time

import pytest

from toolchain.emulation.torch_cuda import Event


def test_events_tell_the_time_between_them() -> None:
    start, end = Event(enable_timing=True), Event(enable_timing=True)
    start.record()
    begun = time.perf_counter()
    time.sleep(0.01)
    took = (time.perf_counter() - begun) * 1e3
    end.record()
    assert took <= start.elapsed_time(end)
    assert end.elapsed_time(start) > 0  # programs divide by it


def test_events_that_were_not_recorded_have_no_time_between_them() -> None:
    recorded = Event()
    recorded.record()
    for start, end in ((recorded, Event()), (Event(), recorded)):
        with pytest.raises(ValueError, match="recorded"):
            start.elapsed_time(end)
