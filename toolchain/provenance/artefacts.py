"""What an artefact holds that we may not give away: files of packages that we only depend on, unknown licences.

A file of such a package is known by its sha256, from the RECORD of the installed wheel and for our tools from
pins.toml; or by its path, whatever its version; or by the METADATA beside it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message
from email.parser import BytesParser
from fnmatch import fnmatchcase
from pathlib import Path

from ..errors import PolicyError
from ..pinned.pins import pins
from .archives import Member, members
from .inventory import Wheel, normalized, recorded
from .licences import Licence, Policy, licences

SMALL = 64  # bytes: a shorter file is anybody's, such as an `__init__.py` with a comment
UNFREE = ("contrib", "multiverse", "non-free", "non-free-firmware", "restricted")  # sections of Debian and Ubuntu
OWNED = "var/lib/dpkg/info/*.list"  # the files of each Debian package, an absolute path a line: dpkg-query(1)


@dataclass(frozen=True)
class Finding:
    """A file of an artefact that may not be in it, the package it belongs to, and how that is known."""

    artefact: Path
    file: str
    package: str
    why: str

    def __str__(self) -> str:
        return f"{self.artefact}: {self.file}: of {self.package}: {self.why}"


@dataclass(frozen=True)
class Rules:
    """What artefacts are held against. `files`: owner by sha256 of each file that may not be bundled."""

    policy: Policy
    licences: Mapping[str, Licence]
    files: Mapping[str, str]


def load_rules(wheels: Mapping[str, Wheel], policy: Policy) -> Rules:
    """Raises PolicyError if a licence in the inventory is unknown, ToolchainError if a RECORD cannot be read."""
    known = licences(wheels, policy)
    kept: dict[str, str] = {}
    free: set[str] = set()
    for name, row in known.items():
        installed = wheels[name].installed
        files = recorded(installed) if installed else []
        if "bundle" in row.use:
            free.update(file.sha256 for file in files)
        else:
            own = [f for f in files if f.size >= SMALL and not any(fnmatchcase(f.path, other) for other in row.others)]
            kept.update({f.sha256: f"{name} {row.version}, {f.path}" for f in own})
    for tool, pin in pins().tools.items():
        if pin.wheel in known and "bundle" not in known[pin.wheel].use:
            kept.update({hashed: f"{pin.wheel}, {tool} for {machine}" for machine, hashed in pin.sha256.items()})
    return Rules(policy, known, {hashed: owner for hashed, owner in kept.items() if hashed not in free})


def check_artefact(artefact: Path, rules: Rules) -> list[Finding]:
    """What may not be in a wheel, sdist, tar, zip, image or folder. Raises UsageError if it cannot be read."""
    found: list[Finding] = []
    unclear: list[Finding] = []
    debian: set[str] = set()
    for member in members(artefact):
        found += [Finding(artefact, member.path, *row) for row in _judge(member, rules)]
        if member.content is None:
            continue
        member.content.seek(0)
        if fnmatchcase(member.name, OWNED):
            text = member.content.read().decode(errors="surrogateescape")  # as tarfile reads names
            debian.update(line.lstrip("/") for line in text.splitlines())
        elif _describes_package(member.name):
            unclear += [Finding(artefact, member.path, *row) for row in _judge_metadata(member.content.read(), rules)]
    # What is in a file of a Debian package is under that package's licence, whatever METADATA leaves out.
    found += [finding for finding in unclear if debian.isdisjoint(finding.file.split("!"))]
    return sorted(found, key=lambda finding: finding.file)


def _describes_package(name: str) -> bool:
    return name.endswith(".dist-info/METADATA") or name.rpartition("/")[2] == "PKG-INFO"


def require_clean(artefact: Path, rules: Rules) -> None:
    """Raises PolicyError that names every file that may not be in the artefact."""
    if found := check_artefact(artefact, rules):
        raise PolicyError(
            "\n  ".join([f"{artefact} may not be redistributed: {len(found)} findings", *map(str, found)]),
            hint="leave these files out: who uses the artefact installs them from the package index; "
            "a licence that is unknown is reviewed in toolchain/provenance/policy.toml",
        )


def _judge(member: Member, rules: Rules) -> list[tuple[str, str]]:
    """The packages that a file belongs to and may not be given away with, each with how that is known."""
    if member.problem is not None:
        return [("an unknown package", f"it cannot be looked into: {member.problem.args[0]}")]
    if member.content is not None:
        hashed = hashlib.file_digest(member.content, "sha256").hexdigest()  # pyright: ignore[reportArgumentType]
        if hashed in rules.files:
            return [(rules.files[hashed], f"the same sha256, {hashed}; it may be depended on, not bundled")]
    for row in rules.policy.files:
        if fnmatchcase("/" + member.name, row.pattern):
            return [(row.package, f"its path fits {row.pattern}; it may be depended on, not bundled")]
    if member.content is None:
        return []
    member.content.seek(0)
    if member.name == "var/lib/dpkg/status" or member.name.startswith("var/lib/dpkg/status.d/"):
        return _judge_debian(member.content.read())
    return []


def _judge_metadata(text: bytes, rules: Rules) -> list[tuple[str, str]]:
    metadata: Message = BytesParser().parsebytes(text)
    name, version = str(metadata["Name"]), str(metadata["Version"])
    try:
        # Another version than ours: what it says itself counts, unless somebody looked into the package.
        ours = rules.licences.get(normalized(name))
        licence = ours if ours and ours.version == version else rules.policy.licence(name, version, metadata)
    except PolicyError as error:
        return [(f"{name} {version}", str(error.args[0]))]
    if "bundle" in licence.use:
        return []
    return [(f"{name} {version}", f"{licence.expression}: it may be depended on, not bundled")]


def _judge_debian(text: bytes) -> list[tuple[str, str]]:
    """dpkg's list of what is installed (deb-control(5)): all of Debian main may be given away."""
    found: list[tuple[str, str]] = []
    for paragraph in text.decode("utf-8", "replace").split("\n\n"):
        fields = dict(line.split(": ", 1) for line in paragraph.splitlines() if ": " in line)
        if fields.get("Section", "").partition("/")[0] in UNFREE:
            found.append((f"{fields.get('Package')} {fields.get('Version')}", f"its section is {fields['Section']}"))
    return found
