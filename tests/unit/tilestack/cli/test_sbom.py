"""`tilestack sbom`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from toolchain.bundles.bundle import Bundle
from toolchain.knobs import ROOT

from ..conftest import Run


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


@pytest.mark.needs("toolchain")
def test_sbom_of_the_toolchain(run: Run, tmp_path: Path) -> None:
    output = tmp_path / "sbom.json"
    assert run("sbom", "toolchain", "-o", output) == (0, "", "")
    assert {"ptxas", "xdsl"} <= {part["name"] for part in json.loads(output.read_bytes())["components"]}
    ran = run("sbom", "toolchain", "--native", ROOT / "pyproject.toml")
    assert ran.code == 2 and "pyproject.toml is not a CycloneDX file" in ran.err
