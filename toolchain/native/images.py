"""Making the container images of containers/images.toml, the same bytes wherever they are made.

mmdebstrap with SOURCE_DATE_EPOCH makes a bit-identical tarball from the same packages; docker_archive.py makes it an
image. The packages of each image, with versions and hashes, are in containers/packages.lock.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
import shlex
import shutil
import subprocess
import tarfile
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import ToolchainError, ToolFailed, UsageError
from ..files import write_whole
from ..knobs import ROOT, cache_dir, certificates, network_settings
from ..pinned.pins import file_sha256
from . import docker_archive
from .mirror import mirror

IMAGES = ROOT / "containers/images.toml"
LOCK = ROOT / "containers/packages.lock"
# Files that nobody reads in a container; licences stay.
EXCLUDED = ("/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*", "/usr/share/doc/*")
INCLUDED = ("/usr/share/doc/*/copyright",)


@dataclass(frozen=True)
class Package:
    """A Debian package: `sha256` is its .deb's, `source` name and version of the source package it was built from."""

    name: str
    version: str
    sha256: str
    source: tuple[str, str] = ("", "")

    def __str__(self) -> str:
        return f"{self.name} {self.version} {self.sha256}"


@dataclass(frozen=True)
class Image:
    """An image of images.toml, with its packages of packages.lock. `digest` is empty until it is first made."""

    name: str
    about: str
    suite: str
    packages: tuple[str, ...]
    epoch: int
    digest: str
    pinned: Mapping[str, str] = field(default_factory=dict[str, str])
    locked: tuple[Package, ...] = ()

    @property
    def tag(self) -> str:
        return f"tilestack-{self.name}:{self.suite}"


@dataclass(frozen=True)
class BuiltImage:
    """An image that was made: its docker-archive, its id, and how its packages differ from the lock, in words."""

    archive: Path
    digest: str
    packages: tuple[Package, ...]
    drift: tuple[str, ...]


def images() -> dict[str, Image]:
    """All images, by name."""
    table = tomllib.loads(IMAGES.read_text())
    lock = tomllib.loads(LOCK.read_text()) if LOCK.exists() else {}
    made: dict[str, Image] = {}
    for name, row in table["images"].items():
        locked = tuple(_locked(line) for line in lock.get(name, {}).get("packages", ()))
        made[name] = Image(
            name=name,
            about=row["about"],
            suite=row["suite"],
            packages=tuple(row["packages"]),
            epoch=table["epoch"],
            digest=row["digest"],
            pinned=row.get("pinned", {}),
            locked=locked,
        )
    return made


def _locked(line: str) -> Package:
    name, version, sha256 = line.split(" ")
    return Package(name, version, sha256)


def image(name: str) -> Image:
    """One of them. Raises UsageError."""
    if name not in (known := images()):
        raise UsageError(f"no image {name!r}", hint=f"one of {', '.join(known)}")
    return known[name]


def cached(wanted: Image) -> Path:
    """The path of an image's archive. Its name is a hash of everything that decides its content."""
    decides = f"{docker_archive.FORMAT} {dataclasses.replace(wanted, digest='')!r}"
    key = hashlib.sha256(decides.encode()).hexdigest()
    return cache_dir() / "images" / f"{wanted.name}-{key[:16]}.tar"


def make(wanted: Image, output: Path, *, address: str | None = None) -> BuiltImage:
    """Make an image and write its docker-archive to `output`. `address`: of the Debian mirror, by default this
    machine's. Raises ToolchainError; `output` is whole or not there."""
    if not shutil.which("mmdebstrap"):
        raise ToolchainError(
            "mmdebstrap is not installed: it makes the container images",
            hint="apt-get install mmdebstrap (Debian, Ubuntu), or bring an image made elsewhere: docker load",
        )
    output.parent.mkdir(parents=True, exist_ok=True)
    kept = cache_dir() / "debs"
    kept.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=output.parent, prefix=".image-") as temporary:
        folder = Path(temporary)
        layer = folder / "layer.tar"
        debs = folder / "debs"
        debs.mkdir()
        debs.chmod(0o755)  # whatever the umask: sync-in gives the image's folder this one's permissions
        _take_locked(wanted, kept, debs)
        _debootstrap(wanted, layer, debs, address or mirror())
        packages = installed(layer, debs)
        for deb in debs.glob("*.deb"):
            if not (kept / deb.name).exists():
                shutil.move(deb, kept / deb.name)
        drift = compare(wanted, packages)
        labels = {"org.opencontainers.image.title": wanted.tag, "org.opencontainers.image.description": wanted.about}
        archive = folder / "image.tar"
        digest = docker_archive.write(layer, archive, tag=wanted.tag, epoch=wanted.epoch, labels=labels)
        archive.replace(output)
    return BuiltImage(output, digest, packages, drift)


def _take_locked(wanted: Image, kept: Path, debs: Path) -> None:
    """Copy the locked packages' .debs that are kept into `debs`, so that they need no download."""
    for package in wanted.locked:
        for deb in kept.glob(f"{package.name}_{package.version.replace(':', '%3a')}_*.deb"):
            if file_sha256(deb) == package.sha256:
                shutil.copyfile(deb, debs / deb.name)


def _debootstrap(wanted: Image, layer: Path, debs: Path, address: str) -> None:
    preferences = layer.parent / "preferences"
    preferences.write_text(_preferences(wanted))
    place = shlex.quote(str(debs))
    command = ["mmdebstrap", "--variant=minbase", f"--include={','.join(wanted.packages)}"]
    # The cache of .debs goes in before and comes out after; mmdebstrap's own checks would stop at the files in it.
    command += ["--skip=download/empty", "--skip=essential/unlink"]
    command += ['--setup-hook=mkdir -p "$1"/var/cache/apt/archives "$1"/etc/apt/preferences.d']
    command += [f"--setup-hook=sync-in {place} /var/cache/apt/archives"]
    command += [f"--setup-hook=upload {shlex.quote(str(preferences))} /etc/apt/preferences.d/lock"]
    command += [f"--customize-hook=sync-out /var/cache/apt/archives {place}"]
    command += ['--customize-hook=rm "$1"/etc/apt/preferences.d/lock "$1"/etc/apt/apt.conf.d/99mmdebstrap']
    # The address of the mirror is this machine's: it would make another image of every other one's.
    command += ['--customize-hook=rm -f "$1"/etc/apt/sources.list "$1"/etc/apt/sources.list.d/*']
    command += [f"--dpkgopt=path-exclude={path}" for path in EXCLUDED]
    command += [f"--dpkgopt=path-include={path}" for path in INCLUDED]
    # A mirror that is kept as it was has an old date; the lock's hashes, not freshness, are what we go by.
    command += ['--aptopt=Acquire::Check-Valid-Until "false"']
    command += [wanted.suite, str(layer), f"deb {address} {wanted.suite} main"]
    settings = {"SOURCE_DATE_EPOCH": str(wanted.epoch), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}
    if file := certificates():
        settings["SSL_CERT_FILE"] = str(file)
    done = subprocess.run(
        command, env={**network_settings(), **settings}, capture_output=True, text=True, check=False, umask=0o022
    )
    if done.returncode:
        said = "\n".join(done.stderr.strip().splitlines()[-30:])
        raise ToolFailed(command, done.returncode, said, version="mmdebstrap", hint=f"is {address} a mirror of Debian?")


def _preferences(wanted: Image) -> str:
    """apt preferences: the locked versions first, then others of the pinned source packages, then everything else."""
    rows = [(package.name, package.version, 1002) for package in wanted.locked]
    rows += [(f"src:{source}", f"{version}-*", 1001) for source, version in wanted.pinned.items() if version]
    return "\n".join(f"Package: {name}\nPin: version {at}\nPin-Priority: {first}\n" for name, at, first in rows)


def installed(layer: Path, debs: Path) -> tuple[Package, ...]:
    """The packages that dpkg says are installed in the root file system `layer`, by name. Raises ToolchainError if one
    did not come from a .deb in `debs`."""
    with tarfile.open(layer) as tar:
        file = tar.extractfile("./var/lib/dpkg/status")
        assert file is not None
        status = file.read().decode()
    found: list[Package] = []
    for paragraph in status.split("\n\n"):
        fields = dict(re.findall(r"^([\w-]+): (.*)$", paragraph, re.MULTILINE))
        if not fields:
            continue
        name, version = fields["Package"], fields["Version"]
        # apt writes a version's colon as %3a into a file's name.
        deb = debs / f"{name}_{version.replace(':', '%3a')}_{fields['Architecture']}.deb"
        if not deb.is_file():
            raise ToolchainError(
                f"{deb}: missing, but {name} {version} is installed", hint=f"rm -r {debs}; run it again"
            )
        source, _, source_version = fields.get("Source", name).partition(" ")
        origin = (source, source_version.strip("()") or version)
        found.append(Package(name, version, file_sha256(deb), origin))
    return tuple(sorted(found, key=lambda package: package.name))


def compare(wanted: Image, packages: Sequence[Package]) -> tuple[str, ...]:
    """How `packages` differ from the lock, a line each. Raises ToolchainError if a pinned one is of another upstream
    version."""
    for source, version in wanted.pinned.items():
        built = source_versions(packages, source)
        if version and {upstream(one) for one in built} != {version}:
            raise ToolchainError(
                f"image {wanted.name}: {source} is pinned to {version}, but the mirror has {', '.join(sorted(built))}",
                hint="name a mirror that has it in TILESTACK_DEBIAN_MIRROR, or move the pin: nox -s base_image -- "
                f"{wanted.name} --update",
            )
    before = {package.name: package for package in wanted.locked}
    now = {package.name: package for package in packages}
    lines: list[str] = []
    for name in sorted(before.keys() | now.keys()) if before else ():
        old, new = before.get(name), now.get(name)
        if old is None or new is None:
            lines.append(f"{name}: {'new' if old is None else 'gone'}")
        elif (old.version, old.sha256) != (new.version, new.sha256):
            lines.append(f"{name}: {old.version} is locked, {new.version} was had")
    return tuple(lines)


def upstream(version: str) -> str:
    """A Debian version without the revision of its packaging: 1:22.1.8-1~deb13u4 is 1:22.1.8."""
    return version.rpartition("-")[0] or version


def source_versions(packages: Sequence[Package], source: str) -> set[str]:
    """The versions of a source package that `packages` were built from."""
    return {package.source[1] for package in packages if package.source[0] == source}


def save(name: str, made: BuiltImage) -> None:
    """Write the digest, the pinned versions and the packages of the image that was made into images.toml and
    packages.lock."""
    text, known = IMAGES.read_text(), images()
    start = text.index(f"[images.{name}]")
    end = text.find("\n[", start)
    table = text[start:] if end < 0 else text[start:end]
    changed = re.sub(r'^digest = ".*"$', f'digest = "{made.digest}"', table, flags=re.MULTILINE)
    for source in known[name].pinned:
        (version,) = {upstream(one) for one in source_versions(made.packages, source)}
        changed = re.sub(rf'{source} = ".*?"', f'{source} = "{version}"', changed)
    lines = ["# Written by `nox -s base_image -- --update`: name, version and sha256 of each image's packages.", ""]
    for other, row in known.items():
        if packages := made.packages if other == name else row.locked:
            lines += [f"[{other}]", "packages = [", *(f'  "{package}",' for package in packages), "]", ""]
    write_whole(IMAGES, text.replace(table, changed))
    write_whole(LOCK, "\n".join(lines))
