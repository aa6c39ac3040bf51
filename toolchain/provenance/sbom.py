"""What things are made of, as CycloneDX 1.6 JSON (https://cyclonedx.org/docs/1.6/json): toolchain, bundle, image.

The same input gives the same bytes: the serial number is derived from the content, and the time is
SOURCE_DATE_EPOCH's or left out.
"""

from __future__ import annotations

import datetime
import json
import tomllib
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any, cast

from cyclonedx import model
from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import bom as bom_model
from cyclonedx.model import component as component_model
from cyclonedx.model.component import ComponentType
from cyclonedx.model.license import LicenseAcknowledgement
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from ..bundles.bundle import Bundle, BundleEntry, FileRef
from ..errors import UsageError
from ..knobs import ROOT, source_date_epoch
from ..pinned.pins import file_sha256, pins
from .inventory import Wheel
from .licences import Licence

# The library decorates its classes in a way that hides their signatures from a type checker.
Bom: Any = bom_model.Bom
Component: Any = component_model.Component
HashType: Any = model.HashType
Property: Any = model.Property
Made = Any  # what one of these makes

IMAGES = ROOT / "containers/packages.lock"
MERGED = ("1.4", "1.5", "1.6")  # the versions of CycloneDX that 1.6 has all of
# The name space of our serial numbers; made once from a name of our own, it means nothing else.
NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "urn:tilestack:sbom")


@dataclass(frozen=True)
class DebianPackage:
    """A package of an image; sha256 of its .deb in hex. `architecture` is empty where it is not known."""

    name: str
    version: str
    sha256: str
    architecture: str = ""


def toolchain_sbom(wheels: Mapping[str, Wheel], licences: Mapping[str, Licence], native: Path | None = None) -> bytes:
    """The wheels of the lock that are installed, each with the sha256 of all its builds that the lock allows, and the
    tools that we run. `native`: a CycloneDX file of the native toolchain, as Conan writes it, to be merged in."""
    bom, root = _start("tilestack-toolchain", ComponentType.APPLICATION, installed_version("tilestack"))
    parts = {name: _wheel(wheel, licences[name]) for name, wheel in wheels.items() if wheel.installed}
    tools = {
        name: Component(
            type=ComponentType.APPLICATION, name=name, version=pins().wheels[pin.wheel], bom_ref=f"tool:{name}",
            hashes=[_sha256(pin.expected())],
            purl=PackageURL("pypi", None, pin.wheel, pins().wheels[pin.wheel], None, pin.path),
        )
        for name, pin in pins().tools.items()
    }  # fmt: skip
    _add(bom, [*parts.values(), *tools.values()])
    for name, part in parts.items():
        bom.register_dependency(part, [parts[n] for n, w in wheels.items() if name in w.needed_by and n in parts])
    for name, pin in pins().tools.items():
        bom.register_dependency(tools[name], [parts[pin.wheel], *(tools[other] for other in pin.uses)])
    bom.register_dependency(root, [*parts.values(), *tools.values()])
    return _render(bom, native)


def _wheel(wheel: Wheel, licence: Licence) -> Made:
    reviewed = licence.source == "policy.toml"
    acknowledgement = LicenseAcknowledgement.CONCLUDED if reviewed else LicenseAcknowledgement.DECLARED
    purl = PackageURL("pypi", None, wheel.name, wheel.version)
    return Component(
        name=wheel.name, version=wheel.version, bom_ref=purl.to_string(), purl=purl,
        hashes=[_sha256(value) for value in wheel.sha256],
        licenses=[LicenseFactory().make_from_string(licence.expression, license_acknowledgement=acknowledgement)],
    )  # fmt: skip


def bundle_sbom(bundle: Bundle) -> bytes:
    """The files of a bundle, each with the tools and the source that it was made by and from. Needs nothing but the
    bundle, so it is the same on any machine. Raises BundleError if a file is not what the manifest says."""
    bom, root = _start("tilestack-bundle", ComponentType.APPLICATION, None)
    manifest = bundle.root / "manifest.json"
    tools = {
        name: Component(
            type=ComponentType.APPLICATION, name=name, version=row["version"], bom_ref=f"tool:{name}",
            hashes=[_sha256(row["sha256"])],
        )
        for name, row in bundle.tools.items()
    }  # fmt: skip
    sources = {name: Component(name=f"kernels_{name}", bom_ref=f"source:{name}") for name in bundle.sources}
    files: dict[str, Made] = {"manifest.json": _file("manifest.json", file_sha256(manifest), ())}
    made_from: dict[str, list[Made]] = {}
    notes: dict[str, set[tuple[str, str]]] = {}

    def note(file: FileRef, *more: tuple[str, str]) -> str:
        bundle.read(file)
        name = file.path.relative_to(bundle.root).as_posix()
        notes.setdefault(name, set()).update(more)
        files[name] = _file(name, file.sha256, notes[name])
        return name

    for entry in bundle.entries:
        label = ("entry", f"{entry.spec.source}/{entry.spec.symbol}")
        code = note(entry.code, label, *_version_of(entry))
        made_from.setdefault(code, []).append(sources[entry.spec.source])
        if entry.ir is not None:
            made_from.setdefault(note(entry.ir, label, ("kind", "ir")), []).append(sources[entry.spec.source])
        for target, cubin in entry.cubins.items():
            name = note(cubin, label, ("target", target))
            made_from.setdefault(name, []).extend([files[code], *tools.values()])
    _add(bom, [*files.values(), *tools.values(), *sources.values()])
    for name, parts in made_from.items():
        bom.register_dependency(files[name], parts)
    bom.register_dependency(root, files.values())
    return _render(bom)


def _version_of(entry: BundleEntry) -> list[tuple[str, str]]:
    return [("bytecode-version", entry.form.version)] if entry.interpretable else [("kind", entry.form.kind)]


def image_sbom(name: str, rows: Sequence[DebianPackage]) -> bytes:
    """The Debian packages of a container image. Raises UsageError if there are none."""
    if not rows:
        raise UsageError(f"image {name} has no packages")
    bom, root = _start(name, ComponentType.CONTAINER, None)
    parts: list[Made] = []
    for row in rows:
        qualifiers = {"arch": row.architecture} if row.architecture else None
        purl = PackageURL("deb", "debian", row.name, row.version, qualifiers)
        parts.append(
            Component(
                name=row.name, version=row.version, bom_ref=purl.to_string(), purl=purl, hashes=[_sha256(row.sha256)]
            )
        )
    _add(bom, parts)
    bom.register_dependency(root, parts)
    return _render(bom)


def image_packages(name: str, lock: Path = IMAGES) -> list[DebianPackage]:
    """The packages of an image in containers/packages.lock, rows of `name version sha256`, a name with `:architecture`
    or without. Raises UsageError if the lock has no such image or cannot be read."""
    try:
        table = tomllib.loads(lock.read_text())
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{lock} cannot be read: {error}", hint="git checkout containers/packages.lock") from error
    if name not in table:
        raise UsageError(f"{lock} has no image {name!r}", hint=f"one of {', '.join(table) or 'none: it is empty'}")
    rows: list[DebianPackage] = []
    for text in table[name]["packages"]:
        words = str(text).split()
        if len(words) != 3 or len(words[2]) != 64:
            raise UsageError(f"{lock}: {name}: {text!r} is not `name version sha256`")
        package, _, architecture = words[0].partition(":")
        rows.append(DebianPackage(package, words[1], words[2], architecture))
    return rows


def _start(name: str, kind: ComponentType, version: str | None) -> tuple[Made, Made]:
    bom = Bom()
    root = Component(name=name, type=kind, version=version, bom_ref=name)
    bom.metadata.component = root
    return bom, root


def _sha256(value: str) -> Made:
    return HashType(alg=model.HashAlgorithm.SHA_256, content=value)


def _file(name: str, sha256: str, notes: Iterable[tuple[str, str]]) -> Made:
    return Component(
        type=ComponentType.FILE, name=name, bom_ref=f"file:{name}", hashes=[_sha256(sha256)],
        properties=[Property(name=f"tilestack:{key}", value=value) for key, value in sorted(notes)],
    )  # fmt: skip


def _add(bom: Made, parts: Iterable[Made]) -> None:
    for part in parts:
        bom.components.add(part)


def _merge(table: dict[str, Any], path: Path) -> None:
    """Adds another file's components and what they depend on; our root depends on what that file describes.

    Raises UsageError if it is not a CycloneDX file that we can read, or has a component that is already named here.
    """
    try:
        top, added, needs = _foreign(json.loads(path.read_text()))
        twice = {part["bom-ref"] for part in table["components"]} & {part["bom-ref"] for part in added}
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        what = f"{type(error).__name__}: {error}"
        raise UsageError(f"{path} is not a CycloneDX file of version {' or '.join(MERGED)}: {what}") from error
    if twice:
        raise UsageError(f"{path} names components that the toolchain's own SBOM names too: {', '.join(sorted(twice))}")
    root = table["metadata"]["component"]["bom-ref"]
    next(row for row in table["dependencies"] if row["ref"] == root)["dependsOn"].append(top)
    table["components"] += sorted(added, key=lambda part: part["bom-ref"])
    table["dependencies"] += [{"ref": ref, "dependsOn": sorted(needs[ref])} for ref in sorted(needs)]


def _foreign(other: dict[str, Any]) -> tuple[str, list[dict[str, Any]], dict[str, list[str]]]:
    """What a CycloneDX file describes, its components, and what each depends on, all by their names.

    What it describes is one of the components, or has a name of its own, which Conan draws at random: then it becomes
    `native:` and what it is called.
    """
    if (other["bomFormat"], other["specVersion"]) not in {("CycloneDX", version) for version in MERGED}:
        raise ValueError(f"it is {other['bomFormat']} {other['specVersion']}")
    described: dict[str, Any] = other["metadata"]["component"]
    components: list[dict[str, Any]] = other.get("components", [])
    needs = {str(row["ref"]): list(map(str, row.get("dependsOn", []))) for row in other.get("dependencies", [])}
    top = str(described["bom-ref"])
    if top in [part["bom-ref"] for part in components]:
        return top, components, needs
    stable = f"native:{described['name']}"
    needs[stable] = needs.pop(top, [])
    return stable, [{**described, "bom-ref": stable}, *components], needs


def _render(bom: Made, native: Path | None = None) -> bytes:
    table = cast("dict[str, Any]", json.loads(JsonV1Dot6(bom).output_as_string()))
    del table["serialNumber"], table["metadata"]["timestamp"]
    if native is not None:
        _merge(table, native)
    if (epoch := source_date_epoch()) is not None:
        table["metadata"]["timestamp"] = datetime.datetime.fromtimestamp(epoch, datetime.UTC).isoformat()
    content = json.dumps(table, sort_keys=True)
    table["serialNumber"] = uuid.uuid5(NAMESPACE, content).urn
    return (json.dumps(table, indent=1, sort_keys=True) + "\n").encode()
