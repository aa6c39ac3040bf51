"""A driver that is absent, too old, half there, or not for this user."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from toolchain import runtime
from toolchain.doctor import Check, gpu
from toolchain.errors import DeviceError
from toolchain.runtime import GPU

GOOD = gpu.Library((13, 0), 0)


def bad(lines: list[Check]) -> Check:
    (found,) = (each for each in lines if each.status == "bad")
    assert found.device
    return found


@pytest.fixture(autouse=True)
def no_control(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(gpu, "CONTROL", tmp_path / "nvidiactl")
    return gpu.CONTROL


def test_a_driver_that_works():
    assert [(each.subject, each.status) for each in gpu.driver("580.159.03", GOOD)] == [
        ("driver", "ok"),
        ("libcuda", "ok"),
    ]


def test_no_driver_is_a_note():
    (note,) = gpu.driver(None, None)
    assert note.status == "note" and "no NVIDIA driver" in note.found and note.advice == gpu.CPU


@pytest.mark.parametrize(
    ("module", "library", "subject", "found", "advice"),
    [
        ("570.86.15", GOOD, "driver", "570.86.15, older than 580", "install NVIDIA driver 580 or newer"),
        (None, GOOD, "driver", "no kernel module is loaded", "sudo modprobe nvidia"),
        ("580.159.03", None, "libcuda", "libcuda.so.1 cannot be", "--gpus all"),
        ("580.1.1", gpu.Library((13, 0), 803), "libcuda", "of different versions (cuInit: 803)", "sudo reboot"),
        ("580.1.1", gpu.Library((13, 0), 802), "libcuda", "NVSwitch fabric", "nvidia-fabricmanager"),
        ("580.1.1", gpu.Library((13, 0), 100), "libcuda", "finds no GPU", "nvidia-smi -L"),
        ("580.1.1", gpu.Library((13, 0), 999), "libcuda", "does not know", "grep -i xid"),
        ("580.1.1", gpu.Library((13, 0), 42), "libcuda", "cuInit fails with 42", "nvidia-smi"),
    ],
)
def test_a_driver_that_does_not_work(
    module: str | None, library: gpu.Library | None, subject: str, found: str, advice: str
):
    line = bad(gpu.driver(module, library))
    assert line.subject == subject and found in line.found and advice in line.advice


def test_a_gpu_that_this_user_may_not_open(no_control: Path, monkeypatch: pytest.MonkeyPatch):
    no_control.touch()

    def access(path: Path, mode: int) -> bool:
        del mode
        return path != no_control

    monkeypatch.setattr(os, "access", access)
    line = bad(gpu.driver("580.159.03", GOOD))
    assert line.subject == "gpu access" and "may not be opened" in line.found
    assert line.advice.startswith("sudo usermod -aG ")


def test_the_kernel_modules_version_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(gpu, "DRIVER", tmp_path / "version")
    assert gpu.kernel_module() is None
    gpu.DRIVER.write_text("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.03  Release Build\nGCC\n")
    assert gpu.kernel_module() == "580.159.03"


def test_a_library_that_cannot_be_loaded_is_none(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(gpu, "LIBRARY", "libcuda-of-nobody.so.1")
    assert gpu.library() is None


@pytest.mark.parametrize(
    ("capability", "status", "found"),
    [((9, 0), "ok", "runs cubins for sm_90"), ((7, 5), "note", "none of our targets fits it")],
)
def test_gpus_and_their_targets(capability: tuple[int, int], status: str, found: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(runtime, "gpus", lambda: (GPU(0, "A GPU", capability, 100, 2**34),))
    (line,) = gpu.gpus()
    assert (line.subject, line.status) == ("cuda:0", status) and found in line.found


def test_gpus_that_cannot_be_listed(monkeypatch: pytest.MonkeyPatch):
    def fail() -> None:
        raise DeviceError("cuDeviceGet failed", hint="nvidia-smi")

    monkeypatch.setattr(runtime, "gpus", fail)
    assert bad(gpu.gpus()) == Check("gpu", "bad", "cuDeviceGet failed", "nvidia-smi", True)
