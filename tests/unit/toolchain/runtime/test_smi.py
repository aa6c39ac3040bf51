from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from cuda.bindings import driver as real

from toolchain.runtime import smi

SCRIPT = """#!/bin/sh
case "$1" in *{refused}*) exit 2;; esac
echo "{line}"
"""


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", str(tmp_path))  # not where a machine with a GPU has its own
    return tmp_path / "nvidia-smi"


def write(path: Path, line: str, refused: str = "nothing") -> None:
    path.write_text(SCRIPT.format(line=line, refused=refused))
    path.chmod(0o755)


@pytest.mark.parametrize("refused", ["nothing", "clocks_event_reasons"])  # drivers before 535 have the other name
def test_what_nvidia_smi_says(tool: Path, refused: str) -> None:
    write(tool, "1980, 3201, 41, 512.30, 0x0000000000000004", refused)
    assert smi.read("GPU-1") == {
        "sm_clock_mhz": "1980", "memory_clock_mhz": "3201", "temperature_c": "41", "power_w": "512.30",
        "throttle": "power cap",
    }  # fmt: skip


def test_without_nvidia_smi_nothing_is_known(tool: Path) -> None:
    assert smi.read() == {}
    write(tool, "1980", refused="query")
    assert smi.read() == {}


@pytest.mark.parametrize(("known", "name"), [(True, "0000:0F:00.0"), (False, "1")])
def test_a_gpu_is_named_by_its_pci_address(
    tool: Path, monkeypatch: pytest.MonkeyPatch, *, known: bool, name: str
) -> None:
    ok = real.CUresult.CUDA_SUCCESS
    calls = {"cuDeviceGet": lambda index: (ok, index), "cuDeviceGetPCIBusId": lambda *_: (ok, b"0000:0F:00.0\0\0")}
    monkeypatch.setattr(smi, "load", lambda: SimpleNamespace(**calls))
    write(tool, "NVIDIA H200", refused="nothing" if known else "query")
    assert smi.name_of(1) == name


@pytest.mark.parametrize(
    ("bits", "wanted"),
    [("0x0", "none"), ("0x1", "idle"), ("0x24", "power cap, thermal (software)"), ("0x1004", "power cap, 0x1000"),
     ("[N/A]", "[N/A]")],
)  # fmt: skip
def test_reasons_have_names(bits: str, wanted: str) -> None:
    assert smi.reasons(bits) == wanted


def test_the_range_of_clocks() -> None:
    assert smi.clock_range([{"sm_clock_mhz": "345"}, {"sm_clock_mhz": "1980"}, {"sm_clock_mhz": "[N/A]"}, {}]) == [
        345,
        1980,
    ]
    assert smi.clock_range([{}]) is None
