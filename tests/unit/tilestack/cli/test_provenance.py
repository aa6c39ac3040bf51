"""sbom, provenance and licences."""

from __future__ import annotations

import hashlib
import json
import shutil
import zipfile
from pathlib import Path

import pytest

from toolchain.bundles.bundle import Bundle
from toolchain.knobs import ROOT

from ..conftest import Run


@pytest.fixture
def bundle(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """gelu[f32] from one source, bytecode only."""
    monkeypatch.setenv("TILESTACK_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    folder = tmp_path / "bundle"
    words = ["compile", "--source", "mlir", "--op", "gelu", "--dtype", "f32", "--no-targets", "--jobs", "1"]
    assert run(*words, "--output", folder).code == 0
    return folder


def test_sbom_of_a_bundle(run: Run, bundle: Path, tmp_path: Path) -> None:
    output = tmp_path / "sbom.json"
    assert run("sbom", "bundle", bundle, "-o", output) == (0, "", "")
    made = json.loads(output.read_bytes())
    assert (made["bomFormat"], made["specVersion"]) == ("CycloneDX", "1.6")
    files = {part["name"] for part in made["components"] if part["type"] == "file"}
    assert files == {"manifest.json", *(f"files/{e.bytecode.path.name}" for e in Bundle.load(bundle).entries)}
    ran = run("sbom", "bundle", tmp_path / "none")
    assert ran.code == 5 and "no bundle in" in ran.err and ran.out == ""


def test_sbom_of_an_unknown_image(run: Run) -> None:
    ran = run("sbom", "image", "no-such-image")
    assert ran.code == 2 and "packages.lock" in ran.err and "next: " in ran.err


def test_a_statement_and_its_check(run: Run, bundle: Path, tmp_path: Path) -> None:
    output = tmp_path / "statement.json"
    assert run("provenance", bundle, "--output", output) == (0, "", "")
    ran = run("provenance", "--check", output, bundle)
    count = len(list(bundle.rglob("*.*")))
    assert ran == (0, f"{bundle} is what {output} states: {count} match\n", "")
    manifest = bundle / "manifest.json"
    good = manifest.read_text()
    manifest.write_text(good.replace('"fingerprint": "', '"fingerprint": "0'))
    refused = run("provenance", bundle)
    assert refused.code == 5 and "mlir/gelu_1024_f32" in refused.err and "other kernels" in refused.err
    manifest.write_text(good)
    file = Bundle.load(bundle).entries[0].bytecode
    file.path.write_bytes(b"other")
    (bundle / "more").touch()
    ran = run("provenance", "--check", output, bundle)
    assert ran.code == 5 and ran.out == ""
    found = hashlib.sha256(b"other").hexdigest()
    assert f"mismatch: files/{file.path.name}: sha256 {found}, stated {file.sha256}\n" in ran.err
    assert "unlisted: more\n" in ran.err and "next: get the bundle again" in ran.err


def test_what_is_no_statement(run: Run, bundle: Path, tmp_path: Path) -> None:
    ran = run("provenance", "--check", bundle / "manifest.json", bundle)
    assert ran.code == 2 and "manifest.json: _type is None" in ran.err
    ran = run("provenance", "--check", tmp_path / "none", bundle)
    assert ran.code == 2 and "cannot be read" in ran.err


@pytest.mark.needs("toolchain")
def test_sbom_of_the_toolchain(run: Run, tmp_path: Path) -> None:
    output = tmp_path / "sbom.json"
    assert run("sbom", "toolchain", "-o", output) == (0, "", "")
    assert {"ptxas", "xdsl"} <= {part["name"] for part in json.loads(output.read_bytes())["components"]}
    ran = run("sbom", "toolchain", "--native", ROOT / "pyproject.toml")
    assert ran.code == 2 and "pyproject.toml is not a CycloneDX file" in ran.err


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
