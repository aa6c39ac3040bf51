"""Each fault of a GPU, named right; the fakes are in conftest.py."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ci.runner import health
from ci.runner.table import load
from toolchain.knobs import ROOT

from .conftest import Machine, recorded

XID = "NVRM: Xid (PCI:0000:18:00): {}, pid=4711, name=python3, a message"


def check(machine: Machine) -> list[health.Finding]:
    return health.check(replace(load(), free_gib=0), machine.folder)


def one_fault(machine: Machine) -> str:
    (fault,) = health.faults(check(machine))
    return str(fault)


def test_a_gpu_that_is_well(machine: Machine) -> None:
    findings = check(machine)
    assert not health.faults(findings)
    assert [finding.subject for finding in findings][-3:] == [
        "other programs",
        "kernel log",
        f"disk of {machine.folder}",
    ]


def test_another_program_on_a_gpu_is_all_that_is_wrong_while_it_multiplies(machine: Machine) -> None:
    """Its power cap lowers the clocks then, which is no fault."""
    _, busy = recorded()
    machine.says(gpus=[busy], processes=["648, python3, 874"])
    assert one_fault(machine).startswith("sick other programs: python3 (pid 648, 874 MiB)")


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("driver_version", "570.86.10", "less than 580: cubins of CUDA 13 need driver 580"),
        ("driver_version", "[N/A]", "it must be known"),
        ("ecc__mode__current", "Disabled", "not Enabled: without ECC a flipped bit"),
        ("ecc__errors__uncorrected__volatile__total", "1", "more than 0: memory was damaged"),
        ("ecc__errors__corrected__volatile__total", "101", "more than 100: many corrected errors"),
        ("remapped_rows__pending", "Yes", "not No: a damaged row of memory is replaced at the next reset"),
        ("remapped_rows__failure", "Yes", "not No: a damaged row of memory could not be replaced"),
        ("clocks_event_reasons__active", "0x0000000000000048", "has 0x8, 0x40: slowed by hardware"),
        ("clocks_event_reasons__active", "0x0000000000000020", "has 0x20: slowed"),
        ("clocks_event_reasons__active", "0x0000000000000080", "has 0x80: slowed"),
        ("clocks__applications__graphics", "1200", "clocks.default_applications.graphics is 1980"),
        ("temperature__gpu", "91", "more than 80: an idle GPU that is this hot is not cooled"),
        ("memory__used", "70123", "more than 2048: MiB."),
        ("pcie__link__width__current", "8", "pcie.link.width.max is 16: a card that is not well in its slot"),
        ("temperature__gpu", "[Unknown Error]", "the GPU is lost, or its driver is broken"),
        ("ecc__mode__current", "[GPU requires reset]", "the GPU is lost, or its driver is broken"),
        ("clocks_event_reasons__active", "ERR!", "the GPU is lost, or its driver is broken"),
    ],
)  # fmt: skip
def test_each_value_that_is_out_of_bounds(machine: Machine, field: str, value: str, said: str) -> None:
    machine.set(**{field: value})
    found = one_fault(machine)
    assert found.startswith(f"sick gpu 0 (NVIDIA H200) {field.replace('__', '.')}: {value} - ") and said in found


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("ecc__mode__current", "[N/A]"),  # a GPU for play has no ECC
        ("ecc__errors__corrected__volatile__total", "100"),
        ("clocks_event_reasons__active", "0x0000000000000004"),  # its power cap
        ("clocks__applications__graphics", "[N/A]"),
        ("memory__used", "2048"),
    ],
)
def test_what_is_well_at_the_edge(machine: Machine, field: str, value: str) -> None:
    machine.set(**{field: value})
    assert not health.faults(check(machine))


def test_each_gpu_is_checked(machine: Machine) -> None:
    machine.says(gpus=[machine.gpu, {**machine.gpu, "index": "1", "temperature.gpu": "99"}])
    assert one_fault(machine).startswith("sick gpu 1 (NVIDIA H200) temperature.gpu: 99")


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ({"code": 15, "said": "Unable to determine the device handle for GPU0: 0000:18:00.0: GPU is lost."},
         "nvidia-smi exited 15: Unable to determine the device handle for GPU0: 0000:18:00.0: GPU is lost."),
        ({"code": 9, "said": "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."},
         "couldn't communicate with the NVIDIA driver"),
        ({"code": 2, "said": 'Field "remapped_rows.failure" is not a valid field to query.'}, "not a valid field"),
        ({"code": 6, "said": "No devices were found"}, "nvidia-smi exited 6: No devices were found"),
        ({"gpus": []}, "the driver lists none"),
    ],
)  # fmt: skip
def test_a_lost_gpu_and_a_broken_driver(machine: Machine, answers: dict[str, object], said: str) -> None:
    machine.says(**answers)
    assert said in one_fault(machine)


def test_a_driver_that_hangs(machine: Machine) -> None:
    machine.says(sleeps=5)
    found = health.driver(replace(load(), seconds=1))
    assert found.fault == "nvidia-smi gave no answer in 1 s: the driver hangs"


def test_no_driver(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    (machine.folder / "bin/nvidia-smi").unlink()
    monkeypatch.setenv("PATH", str(machine.folder / "bin"))
    assert health.driver(load()).fault == "there is no nvidia-smi: is the driver installed?"


def test_other_programs_on_the_gpu(machine: Machine) -> None:
    machine.says(processes=["4711, /usr/bin/python3, 512"])
    assert one_fault(machine) == (
        "sick other programs: /usr/bin/python3 (pid 4711, 512 MiB) - more than 0: they share the GPU"
    )


@pytest.mark.parametrize("code", sorted(load().xids))
def test_an_xid_of_a_damaged_gpu(machine: Machine, code: int) -> None:
    machine.kernel_log(XID.format(code), XID.format(code))
    found = one_fault(machine)
    assert found.startswith(f"sick kernel log: Xid {code} of PCI:0000:18:00, 2 times - {load().xids[code]}")


@pytest.mark.parametrize("code", [13, 31, 43])
def test_an_xid_that_a_kernel_caused_is_told_and_does_no_harm(machine: Machine, code: int) -> None:
    machine.kernel_log(XID.format(code))
    findings = check(machine)
    assert not health.faults(findings)
    assert f"Xid {code} of PCI:0000:18:00, 1 times" in [finding.found for finding in findings]


def test_a_kernel_log_that_cannot_be_read(machine: Machine) -> None:
    machine.program("journalctl", "#!/bin/sh\nexit 0\n")  # as for a user who may not read it
    machine.program("dmesg", "#!/bin/sh\necho dmesg: read kernel buffer failed: Operation not permitted >&2; exit 1\n")
    found = one_fault(machine)
    assert "journalctl printed nothing; dmesg exited 1: dmesg: read kernel buffer failed" in found


def test_the_second_way_to_the_kernel_log(machine: Machine) -> None:
    machine.program("journalctl", "#!/bin/sh\nexit 1\n")
    machine.program("dmesg", f"#!/bin/sh\necho '{XID.format(79)}'\n")
    assert "the GPU has fallen off the bus" in one_fault(machine)


def test_a_full_disk(machine: Machine) -> None:
    (fault,) = health.faults(health.check(replace(load(), free_gib=10**6), machine.folder / "not/made/yet"))
    assert fault.fault == "less than 1000000 GiB"


def test_the_reason_file_says_what_is_wrong(machine: Machine, tmp_path: Path) -> None:
    machine.set(temperature__gpu="95")
    path = tmp_path / "state/sick.json"
    health.write_reason(path, check(machine))
    document = json.loads(path.read_text())
    assert [fault["found"] for fault in document["faults"]] == ["95"] and document["time"].endswith("+00:00")


@pytest.mark.parametrize(("temperature", "code"), [("33", 0), ("95", 7)])
def test_the_command_on_a_bare_python(machine: Machine, tmp_path: Path, temperature: str, code: int) -> None:
    """Without any package, as before a job: -S leaves out site-packages."""
    machine.set(temperature__gpu=temperature)
    table = tmp_path / "health.toml"
    table.write_text((ROOT / "ci/runner/health.toml").read_text().replace("free_gib = 20", "free_gib = 0"))
    words = [sys.executable, "-S", "-m", "ci.runner", "health", "--table", str(table), "--reason", str(tmp_path / "r")]
    done = subprocess.run([*words, "--folder", str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert f"temperature.gpu: {temperature}" in done.stdout
    assert (tmp_path / "r").exists() == (code != 0)
    assert ("error: this GPU is not fit for a job: 1 of " in done.stderr) == (code != 0)
