"""Looking after the folder of the compile cache while others use it: what it holds, deleting what is old, too much or
damaged.

Nothing here needs a lock. An entry is written under another name and then renamed, so it is there whole or not at all.
Who has opened one can read it to its end after it is deleted, and who does not find one makes it anew.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ..errors import UsageError
from .cache import Cache
from .stored import unpack

LEFT_OVER_S = 3600.0  # a file that was being written so long ago belongs to a process that was killed
_AGES = {"m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_SIZES = {"": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


@dataclass(frozen=True)
class Stored:
    """An entry's file. `used`: when it was last used or made, in seconds since 1970, to a day."""

    path: Path
    size: int
    used: float


@dataclass(frozen=True)
class Cleaned:
    """What a cleaning deleted and what it left, in entries and bytes."""

    deleted: int
    freed: int
    left: int
    bytes_left: int


def stored(cache: Cache) -> Iterator[Stored]:
    """All entries of the folder. One that another process deletes meanwhile is left out."""
    for _, path in cache.names():
        with suppress(FileNotFoundError):
            seen = path.stat()
            yield Stored(path, seen.st_size, seen.st_mtime)


def clean(
    cache: Cache, *, older_than_s: float | None = None, most_bytes: int | None = None, dry: bool = False,
    now: float | None = None,
) -> Cleaned:  # fmt: skip
    """Deletes entries that were not used for so long, then those used longest ago until the others have at most so many
    bytes; also what a killed process left half-written. With `dry` nothing is deleted, only counted."""
    now = time.time() if now is None else now
    kept: list[Stored] = []
    gone: list[Stored] = []
    found = sorted(stored(cache), key=lambda entry: entry.used)
    left = sum(entry.size for entry in found)
    for entry in found:
        old = older_than_s is not None and now - entry.used > older_than_s
        if old or (most_bytes is not None and left > most_bytes):
            gone.append(entry)
            left -= entry.size
        else:
            kept.append(entry)
    half = list(_half_written(cache, now))
    for entry in () if dry else (*gone, *half):
        entry.path.unlink(missing_ok=True)
    freed = sum(entry.size for entry in (*gone, *half))
    return Cleaned(len(gone), freed, len(kept), left)


def _half_written(cache: Cache, now: float) -> Iterator[Stored]:
    """Files under the names that `files.replacing` writes to, of processes that are long gone."""
    for path in cache.root.glob("[0-9a-f][0-9a-f]/.*"):
        with suppress(FileNotFoundError):
            seen = path.stat()
            if now - seen.st_mtime > LEFT_OVER_S:
                yield Stored(path, seen.st_size, seen.st_mtime)


def verify(cache: Cache) -> tuple[int, int]:
    """Reads every entry and deletes those that are damaged. Returns how many were read and how many deleted."""
    checked = damaged = 0
    for name, path in cache.names():
        try:
            raw = path.read_bytes()
        except FileNotFoundError:  # another process deleted it
            continue
        checked += 1
        if unpack(name, raw) is None:
            damaged += 1
            path.unlink(missing_ok=True)
    return checked, damaged


def parse_age(text: str) -> float:
    """Seconds in an age such as 30d, 12h or 2w. Raises UsageError."""
    found = re.fullmatch(r"(\d{1,6})([mhdw])", text)
    if found is None:
        raise UsageError(f"{text!r} is not an age", hint="a number with m, h, d or w: 12h, 30d")
    return float(int(found[1]) * _AGES[found[2]])


def parse_size(text: str) -> int:
    """Bytes in a size such as 500MB or 2GB. Raises UsageError."""
    found = re.fullmatch(r"(\d{1,15})\s*([A-Za-z]*)", text)
    if found is None or found[2] not in _SIZES:
        raise UsageError(f"{text!r} is not a size", hint=f"a number with {', '.join(filter(None, _SIZES))}: 500MB")
    return int(found[1]) * _SIZES[found[2]]
