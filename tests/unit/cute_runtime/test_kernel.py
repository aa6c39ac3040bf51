"""Launches of a Kernel: what its arguments become."""

from __future__ import annotations

import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from cute_runtime import DeviceBuffer, Kernel, TMADescriptor
from toolchain.errors import DeviceError, LaunchError, UsageError

from .fake import FakeGPU


def kernel(gpu: FakeGPU, *sizes: int) -> Kernel:
    gpu.sizes = sizes
    return Kernel().load_cubin(b"cubin").set_kernel("scale")


def test_numbers_get_the_width_of_the_parameter(gpu: FakeGPU) -> None:
    scale = kernel(gpu, 4, 8, 1, 4, 8, 2, 2, 8)
    assert scale.parameter_sizes == gpu.sizes
    half, brain = np.float16(1.5), ml_dtypes.bfloat16(-2)
    scale.launch((-1, 2**63, 255, 0.5, 0.5, half, brain, np.int64(-2)), grid=(7,), block=(32, 2))
    ((form, found),) = gpu.launched
    assert form == (7, 1, 1, 32, 2, 1, 0)
    assert b"".join(found) == struct.pack("<iQBfd", -1, 2**63, 255, 0.5, 0.5) + half.tobytes() + brain.tobytes() + (
        struct.pack("<q", -2)
    )


def test_arrays_are_passed_as_their_addresses(gpu: FakeGPU) -> None:
    scale = kernel(gpu, 8, 8, 128, 8)
    buffer = DeviceBuffer((4,), np.float32)
    foreign = SimpleNamespace(__cuda_array_interface__={"data": (4096, False), "stream": 2})
    scale.launch((buffer, foreign, TMADescriptor("f32", 0, (4, 4), (16,), (4, 4)), 12345), (1,), (1,))
    ((_, found),) = gpu.launched
    assert found == [struct.pack("<Q", buffer.pointer), struct.pack("<Q", 4096), b"\2" * 128, struct.pack("<Q", 12345)]
    names = [name for name in gpu.names() if name in ("cuStreamWaitEvent", "cuLaunchKernelEx")]
    assert names == [
        "cuStreamWaitEvent",
        "cuLaunchKernelEx",
        "cuStreamWaitEvent",
    ]  # its writer, it, its reader


def test_a_numpy_array_goes_there_and_back(gpu: FakeGPU) -> None:
    scale = kernel(gpu, 8)
    array = np.arange(6, dtype=np.int8).reshape(2, 3).T  # with gaps between its rows
    before = array.copy()
    scale.launch((array,), (1,), (1,))
    assert np.array_equal(array, before)
    copies = [name for name in gpu.names() if name.startswith("cuMemcpy") or name == "cuLaunchKernelEx"]
    assert copies == ["cuMemcpyHtoDAsync", "cuLaunchKernelEx", "cuMemcpyDtoHAsync"]
    array.flags.writeable = False
    scale.launch((array,), (1,), (1,))
    assert gpu.names().count("cuMemcpyDtoHAsync") == 1


@pytest.mark.parametrize(
    ("sizes", "args", "says"),
    [
        ((4, 4), (1,), "scale has 2 parameters, but was given 1"),
        ((4,), (2**32,), "4294967296 does not fit into a parameter of 4 bytes"),
        ((1,), (-129,), "-129 does not fit into a parameter of 1 bytes"),
        ((12,), (1,), "1 does not fit into a parameter of 12 bytes"),
        ((2,), (0.5,), "0.5 for a parameter of 2 bytes"),
        ((8,), (np.float32(1),), "parameter 0 has 8 bytes, but was given 4"),
        ((8,), ("text",), "a str cannot be passed to a kernel"),
    ],
)
def test_arguments_that_do_not_fit(gpu: FakeGPU, sizes: tuple[int, ...], args: tuple[Any, ...], says: str) -> None:
    with pytest.raises(LaunchError, match=says):
        kernel(gpu, *sizes).launch(args, (1,), (1,))
    assert not gpu.launched


@pytest.mark.parametrize(
    ("grid", "block", "says"),
    [((0,), (1,), "grid is"), ((1,), (1025,), "block of 1025"), ((1,), (1, 1, 65), "65"), ((), (1,), "one to three")],
)
def test_a_launch_that_no_gpu_runs(gpu: FakeGPU, grid: tuple[int, ...], block: tuple[int, ...], says: str) -> None:
    with pytest.raises(LaunchError, match=says):
        kernel(gpu).launch((), grid, block)


def test_much_shared_memory_is_asked_for_once(gpu: FakeGPU) -> None:
    scale = kernel(gpu)
    for _ in range(2):
        scale.launch((), (1,), (1,), shared_mem=100_000)
    assert [args[2] for name, args in gpu.calls if name == "cuFuncSetAttribute"] == [100_000]
    assert [form[-1] for form, _ in gpu.launched] == [100_000] * 2


def test_code_from_a_file_or_a_text(gpu: FakeGPU, tmp_path: Path) -> None:
    (tmp_path / "k.ptx").write_text(".version 8.0")
    for source in (tmp_path / "k.ptx", str(tmp_path / "k.ptx"), b".version 8.0"):
        Kernel().load_ptx(source)
    Kernel().load_ptx(".version 8.0\n")
    loaded = [args[0] for name, args in gpu.calls if name == "cuModuleLoadData"]
    assert loaded == [b".version 8.0\0"] * 3 + [b".version 8.0\n\0"]
    with pytest.raises(UsageError, match=r"absent\.cubin cannot be read"):
        Kernel().load_cubin(tmp_path / "absent.cubin")


def test_the_order_of_calls(gpu: FakeGPU) -> None:
    with pytest.raises(UsageError, match="no code was loaded"):
        Kernel().set_kernel("scale")
    with pytest.raises(UsageError, match="no kernel was chosen"):
        Kernel().load_cubin(b"").launch((), (1,), (1,))
    gpu.failing.add("cuModuleGetFunction")
    with pytest.raises(DeviceError, match="looking for scale"):
        Kernel().load_cubin(b"").set_kernel("scale")
