"""The compile cache: results by the inputs that they were made from.

A key is a digest of everything that decides the result (source fingerprint or bytecode, tools, options), so an entry
is never out of date. A damaged entry is not used but made again. Writes go to a temporary file that is then renamed,
so any number of processes may share a cache. Behind the folder there may be a cache that machines share
(shared_cache.py): what it holds is copied to the folder, and what is made is sent to it. docs/cache.md
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .. import knobs
from ..errors import ToolchainError
from ..files import write_whole
from .counts import Counts
from .shared import Problem, Shared
from .stored import Entry, pack, unpack

RUNS = "runs.jsonl"
DAY_S = 86400.0


def key(*parts: str | bytes) -> str:
    """The key of a result that was made from these parts, in this order."""
    digest = hashlib.sha256()
    for part in parts:
        raw = part.encode() if isinstance(part, str) else part
        digest.update(len(raw).to_bytes(8, "little") + raw)  # so that ("ab", "c") is not ("a", "bc")
    return digest.hexdigest()


@dataclass(frozen=True)
class Cache:
    """A folder of entries, which is created by the first write, and the shared cache behind it, if there is one."""

    root: Path
    shared: Shared | None = None
    counts: Counts = field(default_factory=Counts, compare=False)

    @classmethod
    def configured(cls) -> Cache:
        """The cache that the environment names. Raises UsageError if the shared one is named wrongly or refuses us."""
        cache = cls(knobs.cache_dir(), Shared.configured())
        if cache.shared and cache.shared.trouble:
            cache.counts.fail(cache.shared.trouble)
        return cache

    def _path(self, name: str) -> Path:
        return self.root / name[:2] / name[2:]

    def find(self, name: str) -> bytes | None:
        """The content under a key in the folder, or None if there is none or it is damaged."""
        try:
            raw = self._path(name).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ToolchainError(
                f"{self._path(name)}: the compile cache cannot be read: {error}", hint=_HINT
            ) from error
        entry = unpack(name, raw)
        if entry is None:
            self.counts.add(damaged=1)
            return None
        self.counts.hit(entry, len(raw), shared=False)
        _used(self._path(name))
        return entry.content

    def fetch(self, name: str) -> bytes | None:
        """The content under a key that the folder lacks, from the shared cache, or None. Counts a miss."""
        entry = self._fetched(name) if self.shared else None
        if entry is None:
            self.counts.add(misses=1)
            return None
        self.counts.add(written=self._store(name, entry.content, entry.seconds or 0.0))
        return entry.content

    def _fetched(self, name: str) -> Entry | None:
        assert self.shared
        try:
            found = self.shared.get(name)
        except Problem as problem:
            self.counts.problem(problem)
            return None
        if found is None:
            return None
        entry, size = found
        self.counts.hit(entry, size, shared=True)
        return entry

    def get(self, name: str) -> bytes | None:
        """The content under a key, or None if there is none or it is damaged."""
        found = self.find(name)
        return self.fetch(name) if found is None else found

    def put(self, name: str, content: bytes, seconds: float = 0.0) -> None:
        """Stores content under a key in the folder. `seconds`: what making it took. Raises ToolchainError if it cannot
        be written."""
        self.counts.add(written=self._store(name, content, seconds), spent=seconds)

    def _store(self, name: str, content: bytes, seconds: float) -> int:
        path, raw = self._path(name), pack(name, content, seconds)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, raw)
        except OSError as error:
            raise ToolchainError(f"{path}: the compile cache cannot be written: {error}", hint=_HINT) from error
        return len(raw)

    def share(self, name: str, content: bytes, seconds: float) -> None:
        """Sends content to the shared cache, if there is one and we may write to it. What fails is counted."""
        if self.shared is None:
            return
        try:
            self.counts.add(sent=self.shared.put(name, content, seconds))
        except Problem as problem:
            self.counts.problem(problem)

    def get_or_make(self, name: str, make: Callable[[], bytes]) -> bytes:
        """The content under a key; if it is not there, it is made and stored."""
        found = self.get(name)
        if found is None:
            started = time.perf_counter()
            found = make()
            seconds = time.perf_counter() - started
            self.put(name, found, seconds)
            self.share(name, found, seconds)
        return found

    def names(self) -> Iterator[tuple[str, Path]]:
        """The keys of the folder's entries, with their files. The cache's folder also has other things in it."""
        for folder in sorted(self.root.glob("[0-9a-f][0-9a-f]")):
            yield from ((folder.name + path.name, path) for path in sorted(folder.glob("[0-9a-f]" * 62)))

    def runs(self) -> list[dict[str, Any]]:
        """The counts of all compiles so far, oldest first. Raises ToolchainError if the file is damaged."""
        path = self.root / RUNS
        return read_runs(path) if path.exists() else []

    def record(self) -> None:
        """Adds a line with the counts to `runs.jsonl` in the folder, for `tilestack cache stats`."""
        line = {"time": round(time.time()), **self.counts.to_json()}
        path = self.root / RUNS
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            with path.open("a") as file:  # one small write, so that lines of processes do not mix
                file.write(json.dumps(line) + "\n")
        except OSError as error:
            raise ToolchainError(f"{path}: cannot be written: {error}", hint=_HINT) from error


def _used(path: Path) -> None:
    """Notes that an entry is in use: its time of change, at most a day late, is what `cache clean` goes by."""
    with suppress(OSError):  # another process deleted it, or the folder is only to be read: neither matters here
        if time.time() - path.stat().st_mtime > DAY_S:
            os.utime(path)


def read_runs(path: Path) -> list[dict[str, Any]]:
    """The counts in a `runs.jsonl`, oldest first. Raises ToolchainError if it cannot be read."""
    try:
        return [json.loads(line) for line in path.read_text().splitlines()]
    except (OSError, ValueError) as error:
        raise ToolchainError(f"{path}: {error}", hint=f"rm {path}, or name another file") from error


_HINT = "free some space, or set TILESTACK_CACHE_DIR to a folder that can be written"
