"""The compile cache: results by the inputs that they were made from.

A key is a digest of everything that decides the result (source fingerprint or bytecode, tools, options), so an entry
is never out of date. An entry holds the SHA-256 of its content, then the content; a damaged entry is not used but made
again. Writes go to a temporary file that is then renamed, so any number of processes may share a cache.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .errors import ToolchainError
from .files import write_whole

_DIGEST = hashlib.sha256().digest_size


def key(*parts: str | bytes) -> str:
    """The key of a result that was made from these parts, in this order."""
    digest = hashlib.sha256()
    for part in parts:
        raw = part.encode() if isinstance(part, str) else part
        digest.update(len(raw).to_bytes(8, "little") + raw)  # so that ("ab", "c") is not ("a", "bc")
    return digest.hexdigest()


@dataclass(frozen=True)
class Cache:
    """A folder of entries, which is created by the first write."""

    root: Path

    def _path(self, name: str) -> Path:
        return self.root / name[:2] / name[2:]

    def get(self, name: str) -> bytes | None:
        """The content under a key, or None if there is none or it is damaged."""
        try:
            raw = self._path(name).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ToolchainError(
                f"{self._path(name)}: the compile cache cannot be read: {error}", hint=_HINT
            ) from error
        content = raw[_DIGEST:]
        return content if hashlib.sha256(content).digest() == raw[:_DIGEST] else None

    def put(self, name: str, content: bytes) -> None:
        """Stores content under a key. Raises ToolchainError if it cannot be written."""
        path = self._path(name)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, hashlib.sha256(content).digest() + content)
        except OSError as error:
            raise ToolchainError(f"{path}: the compile cache cannot be written: {error}", hint=_HINT) from error

    def get_or_make(self, name: str, make: Callable[[], bytes]) -> bytes:
        """The content under a key; if it is not there, it is made and stored."""
        found = self.get(name)
        if found is None:
            found = make()
            self.put(name, found)
        return found


_HINT = "free some space, or set TILESTACK_CACHE_DIR to a folder that can be written"
