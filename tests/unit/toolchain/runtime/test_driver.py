from __future__ import annotations

from dataclasses import replace

import pytest
from cuda.bindings import driver

from toolchain.errors import DeviceError, DriverTooOld, NoGPU, OutOfMemory, WrongTarget
from toolchain.runtime import GPU
from toolchain.runtime.driver import check, check_driver, choose_target, error_of, is_sticky, out_of_memory

H200 = GPU(0, "NVIDIA H200", (9, 0), 132, 141 * 2**30)
A10 = GPU(1, "NVIDIA A10", (8, 6), 72, 24 * 2**30)


@pytest.mark.parametrize(
    ("code", "name", "kind"),
    [
        (100, "CUDA_ERROR_NO_DEVICE", NoGPU),
        (803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", DriverTooOld),
        (222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", DriverTooOld),
        (209, "CUDA_ERROR_NO_BINARY_FOR_GPU", WrongTarget),
        (2, "CUDA_ERROR_OUT_OF_MEMORY", OutOfMemory),
        (1, "CUDA_ERROR_INVALID_VALUE", DeviceError),
        (700, "CUDA_ERROR_ILLEGAL_ADDRESS", DeviceError),
    ],
)
def test_each_status_has_its_class_and_keeps_its_name(code: int, name: str, kind: type[DeviceError]) -> None:
    error = error_of("cuSomething", driver.CUresult(code), "launching gelu_f32")
    assert type(error) is kind
    for part in ("cuSomething", "launching gelu_f32", name, str(code)):
        assert part in str(error)


@pytest.mark.parametrize(
    "name", ["ILLEGAL_ADDRESS", "ILLEGAL_INSTRUCTION", "MISALIGNED_ADDRESS", "LAUNCH_FAILED", "ASSERT"]
)
def test_errors_that_lose_the_context_say_so(name: str) -> None:
    error: driver.CUresult = getattr(driver.CUresult, f"CUDA_ERROR_{name}")
    assert is_sticky(int(error))
    assert "the CUDA context is lost" in str(error_of("cuStreamSynchronize", error, ""))


@pytest.mark.parametrize("name", ["OUT_OF_MEMORY", "INVALID_VALUE", "NOT_FOUND", "LAUNCH_OUT_OF_RESOURCES"])
def test_errors_that_leave_the_context_whole(name: str) -> None:
    assert not is_sticky(int(getattr(driver.CUresult, f"CUDA_ERROR_{name}")))


def test_check_gives_the_values() -> None:
    ok = driver.CUresult.CUDA_SUCCESS
    assert check("f", (ok,)) == ()
    assert check("f", (ok, 7)) == 7
    assert check("f", (ok, 7, 8)) == (7, 8)
    with pytest.raises(DeviceError, match=r"cuF failed while trying: CUDA_ERROR_INVALID_VALUE \(1\)"):
        check("cuF", (driver.CUresult.CUDA_ERROR_INVALID_VALUE, 7), "trying")


@pytest.mark.parametrize("version", [(13, 0), (13, 3), (14, 0)])
def test_drivers_that_will_do(version: tuple[int, int]) -> None:
    check_driver(version)


@pytest.mark.parametrize("version", [(12, 9), (11, 8)])
def test_a_driver_that_is_too_old_says_what_is_needed(version: tuple[int, int]) -> None:
    with pytest.raises(DriverTooOld, match=rf"CUDA {version[0]}\.{version[1]};.* 580"):
        check_driver(version)


def test_launches_overlap_from_hopper_on() -> None:
    assert [replace(H200, compute_capability=it).overlaps for it in ((8, 0), (8, 9), (9, 0), (10, 3), (12, 0))] == [
        False, False, True, True, True,
    ]  # fmt: skip


def test_the_closest_target_is_chosen() -> None:
    assert choose_target(H200, ["sm_80", "sm_90", "sm_100"], "f") == "sm_90"
    assert choose_target(A10, ["sm_80", "sm_90"], "f") == "sm_80"
    assert choose_target(A10, ["sm_86", "sm_80", "sm_89"], "f") == "sm_86"


@pytest.mark.parametrize("available", [[], ["sm_80"], ["sm_100", "sm_120"], ["sm_1000"]])
def test_no_cubin_for_the_gpu(available: list[str]) -> None:
    with pytest.raises(WrongTarget, match=r"gelu_f32: .*NVIDIA H200 .* 9\.0") as caught:
        choose_target(H200, available, "gelu_f32")
    assert all(name in str(caught.value) for name in available)
    assert "--target sm_90" in str(caught.value)


def test_a_newer_cubin_of_the_same_major_is_not_for_an_older_gpu() -> None:
    with pytest.raises(WrongTarget):
        choose_target(A10, ["sm_89"], "f")


def test_out_of_memory_says_asked_free_and_total() -> None:
    text = str(out_of_memory(3 * 2**30, 2**30, 2 * 2**30, "cuda:0 NVIDIA H200 sm_90"))
    assert all(part in text for part in ("cuda:0", str(3 * 2**30), "3,072.0 MiB", "1,024.0 MiB free of 2,048.0 MiB"))
