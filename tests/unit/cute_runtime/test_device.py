from __future__ import annotations

import pytest

from cute_runtime import get_device_info
from toolchain.errors import NoGPU

from .fake import FakeGPU


def test_what_is_known_of_a_gpu(gpu: FakeGPU) -> None:
    gpu.values = {"cuDeviceGetAttribute": 232448, "cuDriverGetVersion": 13050}
    found = get_device_info(0)
    assert (found.name, found.arch, found.multiprocessors, found.cuda) == ("NVIDIA H200", "sm_90", 132, (13, 5))
    assert (found.memory, found.shared_memory) == (141 * 2**30, 232448)
    with pytest.raises(NoGPU, match=r"no cuda:3: the driver lists 1 GPU\(s\)\n  next: see"):
        get_device_info(3)
