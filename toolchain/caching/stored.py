"""The form of an entry of the compile cache: what was made, how long that took, a digest that binds both to the key.

    16 bytes   FORM
    32 bytes   SHA-256 of FORM, key, seconds and content
     8 bytes   seconds that making it took, as a little-endian float64
     the rest  content

A shared cache puts a signature of the first 56 bytes before that (shared_cache.py).
"""

from __future__ import annotations

import hashlib
import math
import struct
from dataclasses import dataclass

FORM = b"tilestack-entry1"
DIGEST = hashlib.sha256().digest_size
HEAD = len(FORM) + DIGEST + 8


@dataclass(frozen=True)
class Entry:
    """`seconds`: the wall time of the step that made it; None for an entry written before that was recorded."""

    content: bytes
    seconds: float | None


def _digest(name: str, seconds: bytes, content: bytes) -> bytes:
    digest = hashlib.sha256(FORM)
    for part in (name.encode(), seconds, content):
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.digest()


def pack(name: str, content: bytes, seconds: float) -> bytes:
    """An entry's bytes under a key."""
    taken = struct.pack("<d", seconds)
    return FORM + _digest(name, taken, content) + taken + content


def unpack(name: str, raw: bytes) -> Entry | None:
    """The entry in these bytes, or None if they are damaged or belong under another key."""
    if not raw.startswith(FORM):
        # Without a head: the digest of the content, then the content. Caches still hold such entries.
        content = raw[DIGEST:]
        return Entry(content, None) if hashlib.sha256(content).digest() == raw[:DIGEST] else None
    digest, taken, content = raw[len(FORM) : HEAD - 8], raw[HEAD - 8 : HEAD], raw[HEAD:]
    if len(taken) != 8 or _digest(name, taken, content) != digest:
        return None
    seconds = struct.unpack("<d", taken)[0]
    return Entry(content, seconds) if math.isfinite(seconds) and seconds >= 0 else None
