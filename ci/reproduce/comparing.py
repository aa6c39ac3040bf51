"""Finds which files of two builds differ, and why.

If diffoscope is installed, its report is the cause. Otherwise we take a shorter look ourselves: at the members of an
archive, for values that were different in the two builds, for lines in another order, for times. Then the bytes around
the first difference are shown.
"""

from __future__ import annotations

import difflib
import gzip
import hashlib
import io
import lzma
import re
import shutil
import subprocess
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from toolchain.bundles.archive import unlisted
from toolchain.bundles.bundle import IR, MANIFEST, Bundle
from toolchain.contract.artifact import SUFFIXES
from toolchain.files import everything

AROUND = 32  # bytes shown before and after the first difference
LINES = 60  # lines of diffoscope's report that are shown
DIFFOSCOPE_LIMIT_S = 600
NO_DIFFOSCOPE = "diffoscope is not installed: the causes come from a shorter check of our own"


@dataclass(frozen=True)
class Clue:
    """A value that differs between the two builds, such as a path. A file that holds it differs because of it."""

    what: str
    first: str
    second: str


@dataclass(frozen=True)
class File:
    """A file of an artefact: its sha256 and size in both builds (None if it is missing), and why they differ."""

    name: str
    sha256: tuple[str | None, str | None]
    size: tuple[int | None, int | None]
    cause: str = ""

    @property
    def identical(self) -> bool:
        return self.sha256[0] == self.sha256[1]


def files_of(output: Path, form: Literal["files", "bundle"]) -> dict[str, Path]:
    """The files of an output by a name that is the same in both builds; those of a bundle by entry and target."""
    if form == "bundle":
        bundle = Bundle.load(output)
        found = {MANIFEST: output / MANIFEST}
        for entry in bundle.entries:
            name = f"{entry.spec.source}/{entry.spec.symbol}"
            found[f"{name}.{SUFFIXES[entry.form.kind]}"] = entry.code.path
            found |= {f"{name}.{IR}": entry.ir.path} if entry.ir else {}
            found |= {f"{name}.{target}.cubin": ref.path for target, ref in entry.cubins.items()}
        return found | {name: output / name for name in unlisted(bundle)}
    if not output.is_dir() or output.is_symlink():
        return {output.name: output}
    return {path.relative_to(output).as_posix(): path for path in everything(output)}


def content(path: Path) -> bytes:
    """The bytes of a file, or the target of a symbolic link."""
    return str(path.readlink()).encode() if path.is_symlink() else path.read_bytes()


def compare(first: Mapping[str, Path], second: Mapping[str, Path], clues: Sequence[Clue], times: Times) -> list[File]:
    """Every file of both builds, in the order of the first."""
    rows: list[File] = []
    for name in dict.fromkeys([*first, *second]):
        paths = (first.get(name), second.get(name))
        datas = [None if path is None else content(path) for path in paths]
        one, two = (None if data is None else hashlib.sha256(data).hexdigest() for data in datas)
        sizes = tuple(None if data is None else len(data) for data in datas)
        why = ""
        if paths[0] is None or paths[1] is None:
            why = f"only in the {'second' if paths[0] is None else 'first'} build"
        elif one != two:
            why = cause(paths[0], paths[1], clues, times)
        rows.append(File(name, (one, two), (sizes[0], sizes[1]), why))
    return rows


@dataclass(frozen=True)
class Times:
    """When the two builds ran, in seconds since 1970. A number in this range is taken for a time."""

    first: tuple[float, float]
    second: tuple[float, float]

    def in_first(self, seconds: float) -> bool:
        return self.first[0] - 1 <= seconds <= self.first[1] + 1

    def in_second(self, seconds: float) -> bool:
        return self.second[0] - 1 <= seconds <= self.second[1] + 1


def cause(first: Path, second: Path, clues: Sequence[Clue], times: Times) -> str:
    """Why two files differ."""
    one, two = content(first), content(second)
    found = look(one, two, clues, times)
    program = shutil.which("diffoscope")
    if program is None:
        return found
    command = [program, "--no-progress", "--text", "-", str(first), str(second)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=DIFFOSCOPE_LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return f"{found}\ndiffoscope took longer than {DIFFOSCOPE_LIMIT_S} s"
    if done.returncode != 1:  # 1: they differ
        return f"{found}\ndiffoscope exited {done.returncode}: {done.stderr.strip()}"
    return f"{found}\ndiffoscope:\n" + "\n".join(done.stdout.splitlines()[:LINES])


def look(one: bytes, two: bytes, clues: Sequence[Clue], times: Times, depth: int = 0) -> str:
    """The cause that our own check of two contents finds."""
    if depth < 3 and (members := (_members(one), _members(two))) and members[0] is not None and members[1] is not None:
        if said := _look_at_members(members[0], members[1], clues, times, depth):
            return said
        return f"the same members, packed otherwise\n{neighbourhood(one, two)}"
    reasons = [f"it holds the {clue.what}: {clue.first!r}, {clue.second!r}" for clue in clues if _has(one, two, clue)]
    lines = one.splitlines(), two.splitlines()
    if b"\0" not in one and sorted(lines[0]) == sorted(lines[1]):
        reasons.append("the same lines in another order")
    elif b"\0" not in one and sorted(re.findall(rb"\w+", one)) == sorted(re.findall(rb"\w+", two)):
        reasons.append("the same words in another order")
    if _time_in(one, times.in_first) and _time_in(two, times.in_second):
        reasons.append("it holds the time when it was built")
    return "\n".join([*(reasons or ["the cause is not known"]), neighbourhood(one, two)])


def _has(one: bytes, two: bytes, clue: Clue) -> bool:
    return clue.first.encode() in one and clue.second.encode() in two


def _time_in(data: bytes, inside: Callable[[float], bool]) -> bool:
    """True if the data holds a time of the build, as the digits of seconds since 1970."""
    return any(inside(float(found)) for found in re.findall(rb"(?<!\d)\d{10}(?:\.\d+)?(?!\d)", data))


@dataclass(frozen=True)
class Member:
    """A member of an archive: the fields of its header by name, and its content."""

    head: Mapping[str, object]
    data: bytes


def _members(data: bytes) -> dict[str, Member] | None:
    """The members of a zip or tar archive or of one compressed file, or None if it is none of these, or damaged."""
    try:
        return _read_members(data)
    except (
        zipfile.BadZipFile,
        tarfile.TarError,
        lzma.LZMAError,
        zlib.error,
        EOFError,
        OSError,
        ValueError,
        RuntimeError,
    ):
        return None  # ValueError: bad offsets or names in a zip; RuntimeError: encrypted, or an unknown compression


def _read_members(data: bytes) -> dict[str, Member] | None:
    stream = io.BytesIO(data)
    if zipfile.is_zipfile(stream):
        with zipfile.ZipFile(stream) as archive:
            return {
                info.filename: Member(
                    {"time": info.date_time, "mode": oct(info.external_attr >> 16), "compression": info.compress_type},
                    archive.read(info),
                )
                for info in archive.infolist()
            }
    try:
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            return {
                m.name: Member(
                    {"time": m.mtime, "mode": oct(m.mode), "owner": (m.uid, m.gid, m.uname, m.gname),
                     "kind": m.type, "link": m.linkname},
                    file.read() if (file := archive.extractfile(m) if m.isreg() else None) else b"",
                )
                for m in archive
            }  # fmt: skip
    except (tarfile.TarError, EOFError):  # it is not a tar archive
        pass
    for form, magic in ((gzip, b"\x1f\x8b"), (lzma, b"\xfd7zXZ\0")):
        if data.startswith(magic):
            head: dict[str, object] = {"head": data[:10].hex()} if form is gzip else {}
            return {"its content": Member(head, form.decompress(data))}
    return None


def _look_at_members(
    one: Mapping[str, Member], two: Mapping[str, Member], clues: Sequence[Clue], times: Times, depth: int
) -> str:
    if only := sorted(one.keys() ^ two.keys()):
        return f"members that only one of them has: {', '.join(only[:5])}"
    reasons: list[str] = []
    if list(one) != list(two):
        reasons.append("the same members in another order")
    for field in dict.fromkeys(field for member in one.values() for field in member.head):
        other = [name for name, member in one.items() if member.head[field] != two[name].head[field]]
        if other:
            values = f"{one[other[0]].head[field]}, {two[other[0]].head[field]}"
            reasons.append(f"{field} of {len(other)} members, the first {other[0]}: {values}")
    changed = [name for name, member in one.items() if member.data != two[name].data]
    if changed:
        inner = look(one[changed[0]].data, two[changed[0]].data, clues, times, depth + 1)
        reasons.append(f"content of {len(changed)} members, the first {changed[0]}: {inner}")
    return "\n".join(reasons)


def neighbourhood(one: bytes, two: bytes) -> str:
    """The first difference: as lines of text, or as hexadecimal bytes."""
    at = next((i for i, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two)))
    where = f"first difference at byte {at} of {len(one)} and {len(two)}"
    texts = _text(one), _text(two)
    if texts[0] is not None and texts[1] is not None:
        diff = difflib.unified_diff(
            texts[0].splitlines(), texts[1].splitlines(), "first", "second", n=0, lineterm=""
        ) if len(one) + len(two) < 1 << 20 else ()  # fmt: skip
        return "\n".join([where, *(line[:200] for _, line in zip(range(8), diff, strict=False))])
    start = max(0, at - AROUND) & ~15
    rows = [where]
    for name, data in (("first", one), ("second", two)):
        for row in range(start, min(len(data), at + AROUND), 16):
            part = data[row : row + 16]
            shown = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in part)
            rows.append(f"{name:6} {row:08x}  {part.hex(' '):47}  {shown}")
    return "\n".join(rows)


def _text(data: bytes) -> str | None:
    if b"\0" in data:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
