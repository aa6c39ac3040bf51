"""A bundle as one `.tar.xz` file for distribution. The same bundle gives the same bytes.

POSIX ustar (IEEE Std 1003.1, pax, "ustar Interchange Format") in one xz stream. The members are the manifest, then
`files/` in the order of their names: plain files, mode 0644, owner 0, no owner's name, time 0. The bytes of the
archive also depend on the version of liblzma; those of the bundle in it do not.
"""

from __future__ import annotations

import hashlib
import io
import lzma
import os
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

from ..errors import BundleError, UsageError
from ..files import everything, folder_beside, replacing
from ..pinned.pins import file_sha256
from .bundle import MANIFEST, Bundle, FileRef, check_replaceable, replace_folder

SUFFIX = ".tar.xz"
PRESET = 6  # of xz: 9 gives 2 % less
MANIFEST_LIMIT = 64 << 20  # bytes; a manifest has some 800 an entry
FILE_LIMIT = 256 << 20  # bytes; a cubin has some 100 thousand
_AGAIN = "get the archive again, or make it again with `tilestack pack`"


def listed(bundle: Bundle) -> dict[str, str]:
    """The files that a manifest lists, in the order of their names: `files/<sha256>.cubin` to sha256."""
    files = [ref for entry in bundle.entries for ref in entry.files]
    return dict(sorted((ref.path.relative_to(bundle.root).as_posix(), ref.sha256) for ref in files))


def unlisted(bundle: Bundle) -> list[str]:
    """The names of files, links and anything else but folders that are in a bundle's folder but not in its manifest."""
    known = {MANIFEST, *listed(bundle)}
    names = (path.relative_to(bundle.root).as_posix() for path in everything(bundle.root))
    return sorted(name for name in names if name not in known)


def pack(folder: Path, path: Path) -> str:
    """Writes the bundle in `folder` to `path`, whole or not at all, and returns the archive's sha256.

    Raises BundleError that names every file that is missing, damaged or not of the bundle; UsageError if `path` cannot
    be written.
    """
    if path.exists() and not path.is_file():
        raise UsageError(f"{path} cannot be written: it exists and is not a plain file")
    bundle = Bundle.load(folder)
    if extra := unlisted(bundle):
        raise BundleError(
            f"{folder} contains files that its manifest does not list:\n  " + "\n  ".join(extra),
            hint="move them elsewhere: an archive contains a bundle and nothing else",
        )
    content = _contents(bundle)
    try:
        with replacing(path) as beside:
            with lzma.open(beside, "wb", check=lzma.CHECK_CRC64, preset=PRESET) as packed:
                _write_members(packed, content)
            beside.chmod(0o644)  # whatever the umask is, others may read it
            return file_sha256(beside)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}") from error


def _contents(bundle: Bundle) -> dict[str, bytes]:
    """The content of every file, checked. A bundle has some tens of megabytes."""
    content = {MANIFEST: (bundle.root / MANIFEST).read_bytes()}
    damaged: list[str] = []
    for name, sha256 in listed(bundle).items():
        try:
            content[name] = bundle.read(FileRef(bundle.root / name, sha256))
        except BundleError as error:
            damaged.append(str(error.args[0]))
    if damaged:
        raise BundleError("\n".join(damaged), hint="compile it again with `tilestack compile`")
    return content


def _write_members(packed: IO[bytes], content: Mapping[str, bytes]) -> None:
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name in (MANIFEST, *sorted(content.keys() - {MANIFEST})):
            member = tarfile.TarInfo(name)  # mode 0644, owner 0, time 0
            member.size = len(content[name])
            archive.addfile(member, io.BytesIO(content[name]))


def unpack(path: Path, folder: Path) -> Bundle:
    """Unpacks the bundle in the archive `path` to `folder`, all of it or nothing. An existing bundle is replaced.

    Only files that the archive's own manifest lists are written, each under the name of its sha256. Raises BundleError
    if the archive is damaged or not one of ours, or if a file is missing, is not in the manifest or has another sha256;
    UsageError if `path` cannot be read or `folder` is not a bundle.
    """
    folder = Path(os.path.realpath(folder))  # the target of a link is replaced, not the link
    check_replaceable(folder)
    with folder_beside(folder) as scratch:
        fresh = scratch / "new"
        (fresh / "files").mkdir(parents=True)
        try:
            with path.open("rb") as file:
                _read_members(path, file, fresh)
        except OSError as error:
            raise UsageError(f"{path} cannot be unpacked: {error.strerror or error}") from error
        except (lzma.LZMAError, tarfile.TarError, EOFError) as error:
            raise BundleError(f"{path} is damaged, or not a {SUFFIX}: {error}", hint=_AGAIN) from error
        replace_folder(folder, fresh, scratch / "old")
    return Bundle.load(folder)


def _members(packed: IO[bytes]) -> Iterator[tarfile.TarInfo]:
    """The members in the form that `pack` writes; behind each header `packed` stands at the content. Other forms are
    refused by their header: for the names, attributes and sparse maps of the pax and GNU forms, `tarfile.open` reads
    any amount of data before it shows the member, and in its own way in each release of Python."""
    while (block := packed.read(tarfile.BLOCKSIZE)).strip(b"\0"):
        member = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE):
            raise tarfile.TarError(f"{member.name!r} is not a plain file: links and folders are refused")
        yield member


def _read_members(path: Path, file: IO[bytes], fresh: Path) -> None:
    wanted: dict[str, str] = {}
    wrong: list[str] = []
    with lzma.open(file, "rb") as packed:
        for number, member in enumerate(_members(packed)):
            if number == 0:
                wanted = _read_manifest(path, packed, member, fresh)
                continue
            if member.name not in wanted:
                raise BundleError(f"{path}: {member.name!r} is not in its manifest, or is in the archive twice")
            expected = wanted.pop(member.name)
            content = _content(path, packed, member, FILE_LIMIT)
            if (found := hashlib.sha256(content).hexdigest()) != expected:
                wrong.append(f"{member.name}: sha256 {found}, the manifest says {expected}")
            (fresh / member.name).write_bytes(content)
        while rest := packed.read(1 << 20):  # read to the end, where xz has its check sum
            if rest.strip(b"\0"):
                raise BundleError(f"{path}: there is data after the end of the archive", hint=_AGAIN)
    if not (fresh / MANIFEST).is_file():
        raise BundleError(f"{path} is empty", hint=_AGAIN)
    wrong += [f"{name}: missing" for name in wanted]
    if wrong:
        raise BundleError(f"{path} is damaged:\n  " + "\n  ".join(wrong), hint=_AGAIN)


def _read_manifest(path: Path, packed: IO[bytes], member: tarfile.TarInfo, fresh: Path) -> dict[str, str]:
    if member.name != MANIFEST:
        raise BundleError(f"{path} is not an archive of a bundle: it starts with {member.name!r}, not with {MANIFEST}")
    (fresh / MANIFEST).write_bytes(_content(path, packed, member, MANIFEST_LIMIT))
    try:
        return listed(Bundle.load(fresh))  # names are made from checked sha256s, so none leads outside the folder
    except BundleError as error:
        said = str(error.args[0]).replace(str(fresh), str(path))
        raise BundleError(said, hint=_AGAIN) from error


def _content(path: Path, packed: IO[bytes], member: tarfile.TarInfo, limit: int) -> bytes:
    if not 0 <= member.size <= limit:
        raise BundleError(f"{path}: {member.name!r} has {member.size} bytes: at most {limit} are allowed")
    whole = member.size + -member.size % tarfile.BLOCKSIZE
    content = packed.read(whole)
    if len(content) < whole:
        raise EOFError(f"{member.name!r} is cut off")
    return content[: member.size]
