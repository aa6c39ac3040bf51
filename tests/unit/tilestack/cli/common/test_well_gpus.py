"""Which GPUs of a host take part in a run."""

from __future__ import annotations

import threading

import pytest

from ci.runner import health, table
from ci.runner.health import Finding
from tilestack.cli.common import well_gpus
from tilestack.cli.common.well_gpus import well
from toolchain.errors import DeviceError
from toolchain.runtime import smi
from toolchain.runtime.driver import GPU

GPUS = tuple(GPU(number, "Test", (9, 0), 132, 1 << 30) for number in range(3))


def test_a_sick_gpu_is_left_out_with_its_reason() -> None:
    taken, words = well(GPUS, lambda gpu: ["too hot", "lost"] if gpu.index == 1 else [])
    assert [gpu.index for gpu in taken] == [0, 2]
    assert words == "cuda:1 Test: too hot, lost"
    assert well(GPUS, lambda _: []) == (list(GPUS), "")


def test_all_gpus_are_asked_at_once() -> None:
    met = threading.Barrier(3, timeout=60)

    def ask(gpu: GPU) -> list[str]:
        met.wait()
        return ["lost"] if gpu.index == 2 else []

    assert well(GPUS, ask) == (list(GPUS[:2]), "cuda:2 Test: lost")


def test_the_only_gpu_is_not_asked() -> None:
    assert well(GPUS[:1], lambda _: ["too hot"]) == ([GPUS[0]], "")


def test_none_that_is_well_is_an_error_that_names_all() -> None:
    with pytest.raises(DeviceError, match=r"none of 3 GPUs is well: cuda:0 Test: lost; .*cuda:2") as caught:
        well(GPUS, lambda _: ["lost"])
    assert "--executor cuda:N" in str(caught.value)


def test_without_nvidia_smi_all_take_part_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(well_gpus.shutil, "which", lambda _: None)
    taken, words = well(GPUS)
    assert taken == list(GPUS) and "no nvidia-smi" in words


def test_the_faults_are_those_of_the_health_table(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def found(health_table: table.Health, address: str) -> list[Finding]:
        asked.append(address)
        assert health_table.fields
        return [Finding("gpu 1 temperature.gpu", "95", "more than 80"), Finding("kernel log", "no Xid")]

    monkeypatch.setattr(smi, "name_of", lambda index: f"address {index}")
    monkeypatch.setattr(health, "of_gpu", found)
    assert well_gpus.faults_of(GPUS[1]) == ["gpu 1 temperature.gpu 95: more than 80"]
    assert asked == ["address 1"]
