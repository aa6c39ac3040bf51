"""Every file in a folder or an archive, however deep: wheels, sdists, zip, tar, compressed tar, images.

What a file is, is told from its first bytes, not from its name. An image as `docker save` writes it is a tar of tars
(https://github.com/moby/docker-image-spec), so a file that a later layer deletes is found in the layer that has it.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import shutil
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

import zstandard

from ..errors import TilestackError, UsageError
from ..files import everything

DEEPEST = 8  # archives within archives: more is nobody's artefact
IN_MEMORY = 64 << 20  # bytes of an unpacked archive that are kept in memory
BLOCK = 512  # bytes of a tar's block
# What the readers raise for an archive that they cannot read; RuntimeError is zipfile's for one that has a password.
DAMAGE = (
    OSError, EOFError, ValueError, RuntimeError, zlib.error, lzma.LZMAError, zstandard.ZstdError,
    tarfile.TarError, zipfile.BadZipFile,
)  # fmt: skip


class Unreadable(TilestackError):
    """An archive that is damaged, locked or too deep: what it holds cannot be told."""


@dataclass(frozen=True, eq=False)
class Member:
    """A file: its path within the outermost archive, `!` after each archive on the way, and the content, to be read
    before the next member is asked for. A link, of which only the name is there, has none."""

    path: str
    content: IO[bytes] | None
    problem: Unreadable | None = None

    @property
    def name(self) -> str:
        """The path within the innermost archive."""
        return self.path.rpartition("!")[2]


def members(artefact: Path) -> Iterator[Member]:
    """The files of a folder or archive, those of archives in it too, compressed ones also as they are unpacked.

    An archive within that cannot be read is a member with a `problem`. Raises UsageError if `artefact` itself cannot.
    """
    if artefact.is_dir():
        try:
            paths = everything(artefact)
        except OSError as error:
            raise UsageError(f"{error.filename} cannot be read: {error.strerror or error}") from error
        yield from _folder(artefact, paths)
        return
    try:
        with artefact.open("rb") as file:
            if _kind(file) is None:
                raise UsageError(
                    f"{artefact} is not an archive of a known format",
                    hint="name a wheel, sdist, zip, tar, image or folder",
                )
            yield from _inside(file, "", 0)
    except Unreadable as error:
        raise UsageError(f"{artefact} cannot be read to its end: {error.args[0]}", hint="make it again") from error
    except OSError as error:
        raise UsageError(f"{artefact} cannot be read: {error.strerror or error}") from error


def _folder(root: Path, paths: Sequence[Path]) -> Iterator[Member]:
    for path in paths:
        name = str(path.relative_to(root))
        if path.is_symlink() and not path.is_file():
            yield Member(name, None)
        elif path.is_file():
            with path.open("rb") as file:
                yield from _member(file, name, 0)


def _member(file: IO[bytes], path: str, depth: int) -> Iterator[Member]:
    """A file, then what is in it."""
    yield Member(path, file)
    try:
        file.seek(0)
        if _kind(file) is not None:
            yield from _inside(file, f"{path}!" if path else "", depth + 1)
    except Unreadable as error:
        yield Member(path, None, error)


def _inside(file: IO[bytes], prefix: str, depth: int) -> Iterator[Member]:
    """What is in an archive, or in a compressed file. Raises Unreadable."""
    if depth > DEEPEST:
        raise Unreadable(f"archives in archives, more than {DEEPEST} deep")
    kind = _kind(file)
    if kind == "tar":
        yield from _tar(file, prefix, depth)
    elif kind == "zip":
        yield from _zip(file, prefix, depth)
    elif kind is not None:
        with _unpacked(file, kind) as content:
            yield from _member(content, prefix.removesuffix("!"), depth)


def _kind(file: IO[bytes]) -> str | None:
    """What an archive's first bytes say it is, None for any other file. Leaves `file` at its start."""
    head = file.read(BLOCK)
    file.seek(0)
    magics = {"zip": b"PK\x03\x04", "gz": b"\x1f\x8b", "xz": b"\xfd7zXZ\0", "zst": b"\x28\xb5\x2f\xfd", "bz2": b"BZh"}
    for kind, magic in magics.items():
        if head.startswith(magic):
            return kind
    return "tar" if head[257:262] == b"ustar" else None


@contextmanager
def _guarded() -> Generator[None]:
    """What a damaged archive raises, as Unreadable. No `yield` of a member stands in it: its reader's errors pass."""
    try:
        yield
    except DAMAGE as error:
        raise Unreadable(f"{type(error).__name__}: {error}") from error


@contextmanager
def _unpacked(file: IO[bytes], kind: str) -> Generator[IO[bytes]]:
    with tempfile.SpooledTemporaryFile(max_size=IN_MEMORY) as content:
        with _guarded():
            if kind == "zst":
                _unpack_zst(file, cast("IO[bytes]", content))
            else:
                opened = {"gz": gzip.open, "xz": lzma.open, "bz2": bz2.open}[kind](file)
                with opened as packed:
                    shutil.copyfileobj(cast("IO[bytes]", packed), content)
        content.seek(0)
        yield cast("IO[bytes]", content)


def _unpack_zst(file: IO[bytes], content: IO[bytes]) -> None:
    """All frames of a zstd file; the library's own copying takes a file that is cut off for a whole one."""
    frame = None
    while chunk := file.read(1 << 20):
        while chunk:
            frame = frame or zstandard.ZstdDecompressor().decompressobj()
            content.write(frame.decompress(chunk))
            chunk = frame.unused_data if frame.eof else b""
            frame = None if frame.eof else frame
    if frame is not None:
        raise EOFError("the zstd data is cut off")


def _tar(file: IO[bytes], prefix: str, depth: int) -> Iterator[Member]:
    with _guarded():
        archive = tarfile.open(fileobj=file, mode="r:")  # noqa: SIM115, closed below
    with archive:
        while True:
            with _guarded():
                info = archive.next()
            if info is None:
                break
            name = prefix + _clean(info.name)
            if info.isfile():
                with _guarded():
                    content = archive.extractfile(info)
                    assert content is not None
                    if info.size and not info.issparse() and file.seek(0, 2) < info.offset_data + info.size:
                        raise EOFError(f"{name} is cut off")
                yield from _member(content, name, depth)
            elif info.issym() or info.islnk():
                yield Member(name, None)
        # tarfile takes a damaged header for the end: after the real end there are only zeros.
        file.seek(archive.offset)
        while block := file.read(1 << 20):
            if block.strip(b"\0"):
                raise Unreadable(f"no file's header at byte {archive.offset}, but more data")


def _zip(file: IO[bytes], prefix: str, depth: int) -> Iterator[Member]:
    with _guarded():
        archive = zipfile.ZipFile(file)
    with archive:
        for info in archive.infolist():
            name = prefix + _clean(info.filename)
            if info.is_dir():
                continue
            if stat.S_ISLNK(info.external_attr >> 16):
                yield Member(name, None)
                continue
            with tempfile.SpooledTemporaryFile(max_size=IN_MEMORY) as content:
                with _guarded(), archive.open(info) as packed:
                    shutil.copyfileobj(packed, content)
                content.seek(0)
                yield from _member(cast("IO[bytes]", content), name, depth)


def _clean(name: str) -> str:
    return name.replace("\\", "/").removeprefix("./").lstrip("/")
