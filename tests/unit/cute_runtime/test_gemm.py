"""Gemm: what it checks and what it launches."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cute_runtime import DeviceBuffer, Gemm, Tile
from toolchain.errors import LaunchError, UsageError

from .fake import FakeGPU

SIZES = struct.pack("<iii", 100, 200, 64)


@pytest.fixture
def cubin(tmp_path: Path) -> Path:
    (tmp_path / "gemm.cubin").write_bytes(b"cubin")
    return tmp_path / "gemm.cubin"


def operands() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    return np.ones((100, 64), np.float16), np.ones((64, 200), np.float16)


def test_a_launch_on_numpy_and_on_device_arrays(gpu: FakeGPU, cubin: Path) -> None:
    gpu.sizes = (8, 8, 8, 4, 4, 4)
    gemm = Gemm(100, 200, 64).load_compiled(cubin, "gemm", Tile(64, 128, 32, 256, 1024))
    a, b = operands()
    made = gemm(a, b)
    assert (made.shape, made.dtype) == ((100, 200), np.float32)
    c = DeviceBuffer((100, 200), np.float32)
    assert gemm(DeviceBuffer.from_numpy(a), DeviceBuffer.from_numpy(b), c) is c
    forms = [(form, b"".join(found[3:])) for form, found in gpu.launched]
    assert forms == [((2, 2, 1, 256, 1, 1, 1024), SIZES)] * 2
    assert gpu.launched[1][1][2] == struct.pack("<Q", c.pointer)
    assert gpu.names().count("cuModuleLoadData") == 1


def test_descriptors_with_tma(gpu: FakeGPU, cubin: Path) -> None:
    gpu.sizes = (128, 128, 8, 4, 4, 4)
    gemm = Gemm(100, 200, 64, arch="sm_90a", use_tma=True).load_compiled(
        cubin, "gemm", Tile(32, 48, 64, 128, 0, 128, 128)
    )
    gemm(*operands())
    ((_, found),) = gpu.launched
    assert found[:2] == [b"\2" * 128] * 2
    assert gpu.boxes == [(64, 32), (48, 64)]  # the contiguous dimension first


@pytest.mark.parametrize(
    ("a", "says"),
    [
        (np.ones((100, 65), np.float16), r"A is float16\[100, 65\], but must be float16\[100, 64\]"),
        (np.ones((100, 64), np.float32), "A is float32"),
    ],
)
def test_arrays_that_do_not_fit(gpu: FakeGPU, cubin: Path, a: np.ndarray[Any, Any], says: str) -> None:
    with pytest.raises(LaunchError, match=says):
        Gemm(100, 200, 64).load_compiled(cubin, "gemm")(a, operands()[1])
    assert not gpu.launched


def test_what_it_cannot_be(cubin: Path) -> None:
    with pytest.raises(UsageError, match="M=0, N=1, K=1: sizes must be positive"):
        Gemm(0, 1, 1)
    with pytest.raises(UsageError, match=r"no dtype 'f4'\n  next: one of f32, f16"):
        Gemm(1, 1, 1, dtype_b="f4")
    with pytest.raises(UsageError, match="has no kernel"):
        Gemm(100, 200, 64)(*operands())
    with pytest.raises(UsageError, match="cannot be read"):
        Gemm(1, 1, 1).load_compiled(cubin.with_name("absent"), "gemm")


@pytest.mark.parametrize(
    ("sizes", "dtype", "tile"),
    [
        ((8192, 8192, 8192), "f16", (128, 128, 64)),
        ((16, 4096, 1024), "i8", (16, 128, 128)),
        ((512, 512, 16), "f32", (32, 128, 16)),
        ((4096, 20, 4096), "bf16", (64, 32, 64)),
    ],
)
def test_the_rule_for_tiles(sizes: tuple[int, int, int], dtype: str, tile: tuple[int, int, int]) -> None:
    found = Gemm.get_optimal_tile_size(*sizes, dtype)
    assert (found.m, found.n, found.k) == tile


class Parts:
    """Stands for the kernel of one device: multiplies with numpy."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ran: list[tuple[int, tuple[int, int, int]]] = []
        whole = Gemm.__call__

        def call(gemm: Gemm, a: Any, b: Any, c: Any = None) -> Any:
            if gemm.devices:
                return whole(gemm, a, b, c)
            assert (a.shape, b.shape) == ((gemm.M, gemm.K), (gemm.K, gemm.N))
            assert a.flags.c_contiguous and b.flags.c_contiguous
            self.ran.append((gemm.device_id, (gemm.M, gemm.N, gemm.K)))
            return a.astype(np.float32) @ b.astype(np.float32)

        monkeypatch.setattr(Gemm, "__call__", call)


@pytest.mark.parametrize(
    ("split", "sizes"),
    [
        ("m", [(3, 5, 8), (4, 5, 8), (4, 5, 8)]), ("n", [(11, 1, 8), (11, 2, 8), (11, 2, 8)]),
        ("k", [(11, 5, 2), (11, 5, 3), (11, 5, 3)]),
    ],
)  # fmt: skip
def test_several_devices_share_a_product(
    split: Any, sizes: list[tuple[int, int, int]], cubin: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = Parts(monkeypatch)
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((11, 8), (8, 5)))
    gemm = Gemm(11, 5, 8, devices=[2, 0, 1], split=split).load_compiled(cubin, "gemm")
    assert np.array_equal(gemm(a, b), a.astype(np.float32) @ b.astype(np.float32))
    assert sorted(parts.ran) == sorted(zip([2, 0, 1], sizes, strict=True))


def test_what_several_devices_cannot_share(gpu: FakeGPU, cubin: Path) -> None:
    with pytest.raises(UsageError, match="no split 'q'"):
        Gemm(4, 4, 4, devices=[0, 1], split="q")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="3 devices for N=2"):
        Gemm(4, 2, 4, devices=[0, 1, 2], split="n")
    a, b = operands()
    with pytest.raises(LaunchError, match="takes numpy arrays"):
        Gemm(100, 200, 64, devices=[0, 1]).load_compiled(cubin, "gemm")(DeviceBuffer.from_numpy(a), b)
    assert not gpu.launched
