"""`tilestack licences`."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path

import pytest

from toolchain.knobs import ROOT

from ..conftest import Run


@pytest.mark.needs("toolchain")
def test_licences(run: Run) -> None:
    rows = {row["package"]: row for row in json.loads(run("licences", "--json").out)}
    assert rows["nvidia-cuda-tileiras"]["use"] == ["depend"] and rows["xdsl"]["use"] == ["bundle", "depend"]
    lines = run("licences").out.splitlines()
    assert len(lines) == len(rows)
    assert any(line.split()[:3] == ["nvidia-nvvm", rows["nvidia-nvvm"]["version"], "depend"] for line in lines)


@pytest.mark.needs("toolchain")
def test_artefacts_are_checked(run: Run, bundle: Path, tmp_path: Path) -> None:
    from toolchain.pinned.tools import tool

    ran = run("licences", "check", bundle)
    assert ran == (0, f"{bundle}: nothing in it that may not be given away\n", "")
    wheel = tmp_path / "w.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("pkg/helper", tool("nvdisasm").path.read_bytes())
    ran = run("licences", "check", bundle, wheel)
    assert ran.code == 10 and f"{wheel}: pkg/helper: of nvidia-cuda-nvdisasm" in ran.err and str(bundle) in ran.out
    shutil.copy(ROOT / "README.md", tmp_path / "x.tar")
    ran = run("licences", "check", tmp_path / "x.tar")
    assert ran.code == 2 and "x.tar is not an archive of a known format" in ran.err


def test_licences_without_a_toolchain(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILESTACK_TOOLCHAIN", str(tmp_path / "none"))
    for words in (["licences"], ["licences", "check", str(tmp_path)], ["sbom", "toolchain"]):
        ran = run(*words)
        assert ran.code == 4 and "the toolchain is not built" in ran.err and "build_toolchain" in ran.err
