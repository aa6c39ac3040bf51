from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from toolchain.errors import ToolchainError
from toolchain.provenance.inventory import inventory, missing, normalized, recorded

from .conftest import HEADER, PTXAS, PythonInstallation


def test_what_the_lock_and_the_environment_say(site: PythonInstallation) -> None:
    wheels = site.wheels()
    assert [(w.name, w.version) for w in wheels.values()] == [
        ("free-one", "1.0"), ("nvidia-fake", "13.5"), ("windows-only", "2.0"),
    ]  # fmt: skip
    assert wheels["free-one"].sha256 == ("a" * 64, "b" * 64)
    assert [wheels[name].needed_by for name in wheels] == [(), ("free-one",), ("free-one",)]
    assert missing(wheels) == ["windows-only"]


def test_an_environment_of_another_lock_is_refused(site: PythonInstallation, tmp_path: Path) -> None:
    site.lock.write_text(site.lock.read_text().replace("free-one==1.0", "free-one==1.1"))
    with pytest.raises(ToolchainError, match=r"has free-one 1\.0, the lock 1\.1(.|\n)*build_toolchain"):
        site.wheels()
    with pytest.raises(ToolchainError, match=r"nowhere: missing(.|\n)*build_toolchain"):
        inventory(site.lock, tmp_path / "nowhere")


def test_files_as_recorded(site: PythonInstallation) -> None:
    package = site.wheels()["nvidia-fake"].installed
    assert package is not None
    found = {file.path: (file.sha256, file.size) for file in recorded(package)}
    assert found["nv/bin/ptxas"] == (hashlib.sha256(PTXAS).hexdigest(), len(PTXAS))
    assert found["nv/include/h.h"][1] == len(HEADER)
    assert not [path for path in found if "dist-info" in path]


@pytest.mark.parametrize("row", ["a,b", "a,md5=" + "A" * 43 + ",3", "a,sha256=!,x"])
def test_a_damaged_record_is_named(site: PythonInstallation, row: str) -> None:
    with (site.packages / "nvidia_fake-13.5.dist-info/RECORD").open("a") as file:
        file.write(row + "\n")
    package = site.wheels()["nvidia-fake"].installed
    assert package is not None
    with pytest.raises(ToolchainError, match=f"nvidia-fake 13.5: RECORD: {row}"):
        recorded(package)


def test_no_record(site: PythonInstallation) -> None:
    (site.packages / "nvidia_fake-13.5.dist-info/RECORD").unlink()
    package = site.wheels()["nvidia-fake"].installed
    assert package is not None
    with pytest.raises(ToolchainError, match=r"nvidia-fake 13\.5: it has no RECORD"):
        recorded(package)


def test_names_compare_as_an_index_compares_them() -> None:
    assert normalized("Ruamel.Yaml__x-Y") == "ruamel-yaml-x-y"
