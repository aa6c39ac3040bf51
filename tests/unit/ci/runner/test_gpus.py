"""The GPUs of a machine that has several; the fakes are in conftest.py."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from ci.runner import health
from ci.runner.gpus import Gpu, find, gpus, out_of_service, take_out
from ci.runner.table import load
from toolchain.errors import DeviceError, UsageError

from .conftest import Machine

FAULT = health.Finding("kernel log", "Xid 79", "the GPU has fallen off the bus")


def faults(machine: Machine, gpu: Gpu) -> list[str]:
    table = replace(load(), free_gib=0)
    return list(map(str, health.faults(health.check(table, machine.folder, gpu.uuid, gpu.address))))


def test_they_are_listed_and_found(machine: Machine) -> None:
    machine.gpus(2)
    assert gpus(5) == [Gpu(str(n), f"GPU-{n}", "NVIDIA H200", f"00000000:{n + 1}B:00.0") for n in range(2)]
    assert find("1", 5) == find("GPU-1", 5) == gpus(5)[1]
    with pytest.raises(UsageError, match=r"no GPU 2 here\n  next: one of gpu 0 \(NVIDIA H200, GPU-0\)"):
        find("2", 5)
    machine.says(code=9, said="NVIDIA-SMI has failed")
    with pytest.raises(DeviceError, match="cannot be listed: nvidia-smi exited 9: NVIDIA-SMI has failed"):
        gpus(5)


def test_what_is_wrong_with_one_gpu_is_not_wrong_with_the_other(machine: Machine) -> None:
    first, _ = machine.gpus(2)
    well = gpus(5)
    assert [faults(machine, gpu) for gpu in well] == [[], []]
    first["temperature.gpu"] = "91"
    machine.says(processes=["GPU-1@7, python3, 99"])
    machine.kernel_log("NVRM: Xid (PCI:0000:2b:00): 79, pid=1", "NVRM: Xid (PCI:0000:1b:00): 31, pid=2")
    ((hot,), (shared, lost)) = (faults(machine, gpu) for gpu in well)
    assert "gpu 0" in hot and "temperature.gpu: 91" in hot
    assert "other programs: python3 (pid 7" in shared and "Xid 79 of PCI:0000:2b:00" in lost


def test_a_gpu_that_is_no_longer_listed_is_sick(machine: Machine) -> None:
    machine.gpus(2)
    gone = gpus(5)[1]
    machine.gpus(1)
    assert any("nvidia-smi exited 6: No devices were found" in fault for fault in faults(machine, gone))


def test_the_reason_of_a_sick_gpu_is_kept(tmp_path: Path) -> None:
    gpu = Gpu("0", "GPU-0", "NVIDIA H200", "")
    assert out_of_service(gpu, tmp_path) == ""
    take_out(gpu, tmp_path, [FAULT])
    assert out_of_service(gpu, tmp_path).endswith(f": {FAULT}") and out_of_service(gpu, tmp_path).startswith("since 20")
    assert out_of_service(replace(gpu, uuid="GPU-1"), tmp_path) == ""
    for damaged in ("", "[]", "{}", '{"time": 1, "faults": [{"x": 1}]}'):
        gpu.reason(tmp_path).write_text(damaged)
        assert "cannot be read" in out_of_service(gpu, tmp_path)


def test_names(tmp_path: Path) -> None:
    gpu = Gpu("0", "GPU-0", "NVIDIA H200", "")
    assert gpu.device == "nvidia.com/gpu=GPU-0" and gpu.lock(tmp_path) == Path(tmp_path, "tilestack-GPU-0.lock")
    assert os.sep not in gpu.uuid
