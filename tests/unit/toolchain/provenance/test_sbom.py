from __future__ import annotations

import json
import re
import shutil
import uuid
from pathlib import Path
from typing import Any

import pytest

from toolchain.bundles.bundle import Bundle
from toolchain.errors import BundleError, UsageError
from toolchain.pinned.pins import pins
from toolchain.provenance.inventory import Wheel, inventory
from toolchain.provenance.licences import licences, load_policy
from toolchain.provenance.sbom import DebianPackage, bundle_sbom, image_packages, image_sbom, toolchain_sbom

from .conftest import PythonInstallation, compiled

ROWS = [DebianPackage("libc6", "2.41-12", "1" * 64, "amd64"), DebianPackage("tar", "1:1.35+x", "2" * 64)]


def valid(text: bytes) -> dict[str, Any]:
    """The document, if it is CycloneDX 1.6 by the published schema."""
    from cyclonedx.schema import SchemaVersion  # not above: it takes seconds, and every process collects all tests
    from cyclonedx.validation.json import JsonStrictValidator

    problem = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text.decode())
    assert problem is None, problem
    made = json.loads(text)
    refs = [part["bom-ref"] for part in made["components"]] + [made["metadata"]["component"]["bom-ref"]]
    assert len(set(refs)) == len(refs)
    assert {ref for row in made["dependencies"] for ref in [row["ref"], *row.get("dependsOn", [])]} <= set(refs)
    assert re.fullmatch(r"urn:uuid:[0-9a-f-]{36}", made["serialNumber"])
    return made


def parts(made: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {part["bom-ref"]: part for part in made["components"]}


def needs(made: dict[str, Any]) -> dict[str, list[str]]:
    return {row["ref"]: row.get("dependsOn", []) for row in made["dependencies"]}


@pytest.fixture
def wheels(site: PythonInstallation) -> dict[str, Wheel]:
    """A small inventory with the wheels of the pinned tools."""
    found = site.wheels()
    for wheel in {pin.wheel for pin in pins().tools.values()}:
        found[wheel] = Wheel(wheel, pins().wheels[wheel], ("f" * 64,), (), found["nvidia-fake"].installed)
    return found


def test_a_toolchain(wheels: dict[str, Wheel], site: PythonInstallation) -> None:
    known = licences(wheels, load_policy(site.policy))
    made = valid(toolchain_sbom(wheels, known))
    found = parts(made)
    free = found["pkg:pypi/free-one@1.0"]
    assert [row["content"] for row in free["hashes"]] == ["a" * 64, "b" * 64]
    assert free["purl"] == "pkg:pypi/free-one@1.0" and free["version"] == "1.0"
    assert free["licenses"] == [{"license": {"id": "MIT", "acknowledgement": "declared"}}]
    assert "windows-only" not in {part["name"] for part in found.values()}  # not installed
    tileiras = found["tool:tileiras"]
    assert tileiras["hashes"][0]["content"] == pins().tools["tileiras"].expected()
    assert tileiras["purl"].endswith("#nvidia/cu13/bin/tileiras")
    assert needs(made)["pkg:pypi/free-one@1.0"] == ["pkg:pypi/nvidia-fake@13.5"]
    assert {"tool:ptxas", "tool:libnvvm"} < set(needs(made)["tool:tileiras"])
    assert set(needs(made)["tilestack-toolchain"]) == set(found)


LLVM = {"bom-ref": "pkg:conan/llvm@22.1.8?rref=1", "name": "llvm", "type": "library", "version": "22.1.8"}


def conan(top: str, *components: object, **change: object) -> str:
    """What `conan.tools.sbom.cyclonedx_1_6` writes; `top`: the name of what it describes, which may be random."""
    return json.dumps({
        "bomFormat": "CycloneDX", "specVersion": "1.6", "serialNumber": f"urn:uuid:{uuid.uuid4()}", "version": 1,
        "metadata": {"component": {"bom-ref": top, "name": "native", "type": "application"}, "timestamp": "now"},
        "components": components, "dependencies": [{"ref": top, "dependsOn": [LLVM["bom-ref"]]}], **change,
    })  # fmt: skip


def test_a_native_toolchain_is_merged_in(wheels: dict[str, Wheel], site: PythonInstallation, tmp_path: Path) -> None:
    known = licences(wheels, load_policy(site.policy))
    path = tmp_path / "native.json"
    path.write_text(conan(str(uuid.uuid4()), LLVM))
    made = valid(toolchain_sbom(wheels, known, path))
    assert parts(made)[LLVM["bom-ref"]]["version"] == "22.1.8"
    assert needs(made)["native:native"] == [LLVM["bom-ref"]] and "native:native" in needs(made)["tilestack-toolchain"]
    path.write_text(conan(str(uuid.uuid4()), LLVM))
    assert valid(toolchain_sbom(wheels, known, path)) == made  # what Conan makes up at random is left out
    path.write_text(conan("tc/1", LLVM, {**LLVM, "bom-ref": "tc/1", "name": "tc"}))
    assert "tc/1" in needs(valid(toolchain_sbom(wheels, known, path)))["tilestack-toolchain"]


def test_a_native_toolchain_that_cannot_be_merged_in(
    wheels: dict[str, Wheel], site: PythonInstallation, tmp_path: Path
) -> None:
    known = licences(wheels, load_policy(site.policy))
    path = tmp_path / "native.json"
    path.write_text(conan("top", {**LLVM, "bom-ref": "tool:ptxas"}))
    with pytest.raises(UsageError, match=r"native\.json names components .* tool:ptxas"):
        toolchain_sbom(wheels, known, path)
    for text in ("{", "[]", "{}", conan("top", specVersion="9"), conan("top", components=3), conan("top", 3)):
        path.write_text(text)
        with pytest.raises(UsageError, match=r"native\.json is not a CycloneDX file"):
            toolchain_sbom(wheels, known, path)
    with pytest.raises(UsageError, match="No such file"):
        toolchain_sbom(wheels, known, tmp_path / "none")


def test_a_bundle(bundle: Bundle) -> None:
    made = valid(bundle_sbom(bundle))
    found, graph = parts(made), needs(made)
    for entry in bundle.entries:
        cubin, bytecode = (f"file:files/{f.path.name}" for f in (entry.cubins["sm_90"], entry.bytecode))
        assert found[cubin]["hashes"] == [{"alg": "SHA-256", "content": entry.cubins["sm_90"].sha256}]
        properties = {row["name"]: row["value"] for row in found[cubin]["properties"]}
        assert properties == {"tilestack:entry": f"{entry.spec.source}/gelu_f32", "tilestack:target": "sm_90"}
        assert graph[cubin] == sorted([bytecode, "tool:ptxas", "tool:tileiras"])
        assert graph[bytecode] == [f"source:{entry.spec.source}"]
    assert found["tool:ptxas"]["hashes"][0]["content"] == bundle.tools["ptxas"]["sha256"]
    assert "file:manifest.json" in graph["tilestack-bundle"]


def test_two_entries_with_the_same_code_are_one_file(tmp_path: Path) -> None:
    from toolchain.bundles.bundle import write

    first, second = compiled("gelu_f32"), compiled("gelu_f32", "py")
    twin = type(second)(second.spec, first.artifact, first.cubins)
    made = valid(bundle_sbom(write(tmp_path / "b", [first, twin], {})))
    names = [part["name"] for part in made["components"] if part["type"] == "file"]
    assert len(names) == 3
    bytecode = next(name for name in names if name.endswith("tilebc"))
    assert needs(made)[f"file:{bytecode}"] == ["source:mlir", "source:py"]
    entries = [row["value"] for row in parts(made)[f"file:{bytecode}"]["properties"] if row["name"].endswith("entry")]
    assert entries == ["mlir/gelu_f32", "py/gelu_f32"]


def test_a_damaged_bundle(bundle: Bundle) -> None:
    bundle.entries[0].bytecode.path.write_bytes(b"other")
    with pytest.raises(BundleError, match="damaged"):
        bundle_sbom(bundle)


def test_an_image() -> None:
    found = parts(valid(image_sbom("base", ROWS)))
    libc = found["pkg:deb/debian/libc6@2.41-12?arch=amd64"]
    assert (libc["version"], libc["hashes"][0]["content"]) == ("2.41-12", "1" * 64)
    assert found["pkg:deb/debian/tar@1:1.35%2Bx"]["version"] == "1:1.35+x"
    with pytest.raises(UsageError, match="image base has no packages"):
        image_sbom("base", [])


def test_the_lock_of_the_images(tmp_path: Path) -> None:
    lock = tmp_path / "packages.lock"
    lock.write_text(f'[base]\npackages = ["libc6:amd64 2.41-12 {"1" * 64}", "tar 1:1.35+x {"2" * 64}"]\n')
    assert image_packages("base", lock) == ROWS
    with pytest.raises(UsageError, match=r"no image 'other'\n  next: one of base"):
        image_packages("other", lock)
    lock.write_text('[base]\npackages = ["libc6 2.41-12"]\n')
    with pytest.raises(UsageError, match=r"base: 'libc6 2\.41-12' is not `name version sha256`"):
        image_packages("base", lock)
    for text in ("[", None):
        lock.unlink() if text is None else lock.write_text(text)
        with pytest.raises(UsageError, match=r"packages\.lock cannot be read"):
            image_packages("base", lock)


def test_the_same_input_gives_the_same_bytes(bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    shutil.copytree(bundle.root, tmp_path / "elsewhere")
    first = bundle_sbom(bundle)
    assert first == bundle_sbom(Bundle.load(tmp_path / "elsewhere"))
    assert image_sbom("base", ROWS) == image_sbom("base", ROWS[::-1])
    made = valid(first)
    assert "timestamp" not in made["metadata"]
    assert made["serialNumber"] != valid(image_sbom("base", ROWS))["serialNumber"]
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1767225600")
    assert valid(bundle_sbom(bundle))["metadata"]["timestamp"] == "2026-01-01T00:00:00+00:00"
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "today")
    with pytest.raises(UsageError, match="SOURCE_DATE_EPOCH='today'"):
        bundle_sbom(bundle)


@pytest.mark.needs("toolchain")
def test_our_own_toolchain() -> None:
    found = inventory()
    known = licences(found, load_policy())
    made = valid(toolchain_sbom(found, known))
    assert toolchain_sbom(found, known) == toolchain_sbom(inventory(), known)
    names = {part["name"] for part in made["components"]}
    assert {"numpy", "xdsl", "nvidia-cuda-tileiras", "tileiras", "ptxas"} <= names
    assert all(part["hashes"] for part in made["components"])
    assert all(part["licenses"] for part in made["components"] if not part["bom-ref"].startswith("tool:"))
