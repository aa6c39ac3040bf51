"""Versions that do not fit, as a machine may have them."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import pytest

from toolchain.doctor import Check, fit

FIT: dict[str, str] = dict.fromkeys(fit.PARTS, "13.5.37")
CUDA_13_5 = (13, 5)


def line(lines: list[Check], subject: str) -> Check:
    (found,) = (each for each in lines if each.subject == subject)
    return found


def test_versions_that_fit():
    lines = [*fit.compilers(FIT), *fit.loading(CUDA_13_5, FIT)]
    assert [(each.subject, each.status) for each in lines] == [
        (name, "ok") for name in ("compilers", "bytecode", "compile targets", "cubins", "ptx jit")
    ]


@pytest.mark.parametrize(
    ("versions", "subject", "found", "advice"),
    [
        ({"ptxas": "13.4.92"}, "compilers", "libnvvm 13.5.37 writes PTX that ptxas 13.4.92 is too old", "update_pins"),
        ({"libnvvm": "13.2.86"}, "compilers", "tileiras 13.5.37 needs libnvvm 13.3 or newer", "update_pins"),
        ({"tileiras": "13.3.36"}, "bytecode", "tileiras 13.3.36 does not read bytecode 13.4", "--bytecode 13.3"),
        ({"tileiras": "13.2.86"}, "compile targets", "no target sm_90, which tileiras 13.3.36 brought", "update_pins"),
        ({"tileiras": "13.1.80"}, "compile targets", "tileiras 13.1.80 has no target sm_80", "13.2.51 or newer"),
    ],
)
def test_compilers_that_do_not_fit(versions: dict[str, str], subject: str, found: str, advice: str):
    bad = line(fit.compilers(FIT | versions), subject)
    assert bad.status == "bad" and not bad.device
    assert found in bad.found and advice in bad.advice


def test_a_tileiras_that_nobody_has_measured_is_a_note():
    (note,) = fit.compilers(FIT | {"tileiras": "14.1.5"})
    assert note.status == "note" and "tileiras 14.1.5 is not in compatibility.toml" in note.found and note.advice


def test_an_absent_compiler_is_a_note():
    lines = fit.compilers({"tileiras": "13.5.37", "libnvvm": "13.5.37"})
    assert {each.status for each in lines} == {"note"}
    assert lines[0].found == "ptxas not installed: only compiling needs them" and "build_toolchain" in lines[0].advice


def test_a_driver_older_than_the_cubins():
    bad = line(fit.loading((12, 8), FIT), "cubins")
    assert bad.status == "bad" and bad.device
    assert "offers CUDA 12.8; these cubins need CUDA 13.0, driver 580" in bad.found
    assert bad.advice.startswith("install NVIDIA driver 580")


def test_a_driver_that_loads_our_cubins_but_not_our_ptx():
    lines = fit.loading((13, 0), FIT)
    assert line(lines, "cubins").status == "ok"
    note = line(lines, "ptx jit")
    assert note.status == "note" and "offers CUDA 13.0, and PTX 9.5 needs CUDA 13.5" in note.found
    assert "load cubins of the GPU's own target" in note.advice


def test_without_a_driver_nothing_is_said_of_loading():
    assert fit.loading(None, FIT) == []


def test_without_a_toolchain_the_installed_packages_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def version(wheel: str) -> str:
        if wheel == "nvidia-nvvm":
            raise metadata.PackageNotFoundError(wheel)
        return "13.3.1"

    monkeypatch.setenv("TILESTACK_TOOLCHAIN", str(tmp_path / "none"))
    monkeypatch.setattr(metadata, "version", version)
    assert fit.versions() == {"tileiras": "13.3.1", "ptxas": "13.3.1"}
