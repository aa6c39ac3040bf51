"""A compile cache that machines share: objects under an fsspec URL, each signed by who wrote it. docs/cache.md

An object is an Ed25519 signature and then an entry (cache_entry.py). The signature covers the entry's head, whose
digest covers key, content and seconds. Readers need the public key alone, so they cannot write what others would use.
An object is written in one step, so that nobody sees a part of it: object stores promise that of a put, and in a
folder we rename. Whatever the store did, a part has another digest and is not used.
"""

from __future__ import annotations

import base64
import binascii
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from .. import knobs
from ..errors import UsageError
from ..files import write_whole
from .stored import HEAD, Entry, pack, unpack

T = TypeVar("T")
SIGNATURE = 64  # bytes
KEY = 64  # hexadecimal digits
FOLDERS = ("file", "local")
PROTOCOLS = (*FOLDERS, "memory", "s3", "s3a", "gs", "gcs")  # a put of theirs is seen whole or not at all
MARKER = "tilestack-cache"  # the object that says that here is a cache
GIVE_UP = 3  # failed requests, one after the other, after which a run goes on without the shared cache
INSTALL = "pip install 'tilestack[cache]', and s3fs for s3:// or gcsfs for gs://"


class Problem(Exception):
    """Why an object was not read or written. `kind`: what it is counted as."""

    def __init__(self, kind: Literal["damaged", "refused", "errors"], message: str) -> None:
        super().__init__(message)
        self.kind: Literal["damaged", "refused", "errors"] = kind


def new_keys() -> tuple[str, str]:
    """A new signing key and its public key, as the environment variables take them."""
    made = _ed25519().Ed25519PrivateKey.generate()
    return _text(made.private_bytes_raw()), _text(made.public_key().public_bytes_raw())


def _text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def _ed25519() -> Any:
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        raise UsageError(f"a shared cache needs a package: {error}", hint=INSTALL) from error
    return ed25519


def _key(kind: Any, text: str, knob: knobs.Knob) -> Any:
    try:
        return kind(base64.b64decode(text, validate=True))
    except (ValueError, binascii.Error) as error:
        # Not the text itself: it may be a secret.
        raise UsageError(
            f"{knob.name} is not the base64 of 32 bytes", hint="tilestack cache key makes a pair"
        ) from error


@dataclass
class Shared:
    """An open shared cache. `signing` is None if we only read. `trouble`: why it is not used, if it is not."""

    url: str
    files: Any  # an fsspec file system
    root: str
    public: Sequence[Any]
    signing: Any = None
    trouble: str = ""
    _failed: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @classmethod
    def configured(cls) -> Shared | None:
        """The one that the environment names, or None. Raises UsageError as `open` does."""
        url = knobs.cache_url()
        return cls.open(url, knobs.cache_public_keys(), knobs.cache_signing_key()) if url else None

    @classmethod
    def open(cls, url: str, public: Sequence[str], signing: str | None) -> Shared:
        """Looks whether the cache is there and we may use it. A network that fails is no error: `trouble` says it.

        Raises UsageError for a wrong address, key or bucket, for missing packages, and if the store refuses us.
        """
        kinds = _ed25519()
        private = (
            _key(kinds.Ed25519PrivateKey.from_private_bytes, signing, knobs.CACHE_SIGNING_KEY) if signing else None
        )
        own = [_text(private.public_key().public_bytes_raw())] if private else []
        if not (public or own):
            raise UsageError(
                f"{knobs.CACHE_URL.name} is set, but no key says whose entries to trust",
                hint=f"set {knobs.CACHE_PUBLIC_KEY.name}; `tilestack cache key` makes a pair",
            )
        if private and public and own[0] not in public:
            raise UsageError(f"{knobs.CACHE_SIGNING_KEY.name} does not belong to {knobs.CACHE_PUBLIC_KEY.name}")
        trusted = [
            _key(kinds.Ed25519PublicKey.from_public_bytes, text, knobs.CACHE_PUBLIC_KEY) for text in public or own
        ]
        made = cls(url, *_file_system(url), trusted, private)
        made._look()
        return made

    def _look(self) -> None:
        """Reads the marker; writes it if we may write, which shows whether that is so."""
        try:
            if self.signing:
                self._write(MARKER, b"tilestack compile cache\n")
            else:
                self.files.cat_file(f"{self.root}/{MARKER}")
        except FileNotFoundError as error:
            if self.signing:
                raise UsageError(
                    f"{self.url}: {error}", hint="make the bucket or folder, or correct the name"
                ) from error
            self.trouble = f"{self.url}: no cache is there yet; the first compile of a writer makes it"
        except Exception as error:  # each store has errors of its own
            # So have the ways to log in: NoCredentialsError, DefaultCredentialsError
            if isinstance(error, PermissionError) or "Credentials" in type(error).__name__:
                does = "write to" if self.signing else "read"
                raise UsageError(
                    f"{self.url}: we may not {does} this cache: {error}",
                    hint=f"correct the store's credentials, or unset {knobs.CACHE_URL.name}",
                ) from error
            self.trouble = f"{self.url}: cannot be reached, so it is not used: {error}"

    def get(self, name: str) -> tuple[Entry, int] | None:
        """The entry under a key and how many bytes came, or None. Raises Problem if it cannot be used or had."""
        try:
            raw = self._try(f"reading {name}", lambda: self.files.cat_file(self._path(name)))
        except FileNotFoundError:
            return None
        return None if raw is None else (self._checked(name, raw), len(raw))

    def _checked(self, name: str, raw: bytes) -> Entry:
        signature, packed = raw[:SIGNATURE], raw[SIGNATURE:]
        entry = unpack(name, packed)
        if entry is None or entry.seconds is None:
            raise Problem("damaged", f"{self.url}: {name} is damaged")
        if not any(_verifies(key, signature, packed[:HEAD]) for key in self.public):
            raise Problem("refused", f"{self.url}: no trusted key has signed {name}")
        return entry

    def put(self, name: str, content: bytes, seconds: float) -> int:
        """Writes an entry if we may; returns how many bytes were sent. Raises Problem."""
        if self.signing is None:
            return 0
        packed = pack(name, content, seconds)
        raw = self.signing.sign(packed[:HEAD]) + packed

        def write() -> int:
            self._write(f"{name[:2]}/{name[2:]}", raw)
            return len(raw)

        try:
            return self._try(f"writing {name}", write) or 0
        except FileNotFoundError as error:  # the bucket is gone
            raise Problem("errors", f"{self.url}: writing {name}: {error}") from error

    def names(self) -> Iterator[str]:
        """The keys of all objects. Raises what the store raises."""
        for path in self.files.find(self.root):
            *_, folder, rest = path.split("/")
            if len(folder + rest) == KEY:
                yield folder + rest

    def _path(self, name: str) -> str:
        return f"{self.root}/{name[:2]}/{name[2:]}"

    def _write(self, place: str, raw: bytes) -> None:
        if self.files.protocol[0] in FOLDERS:
            write_whole(Path(self.root, place), raw, parents=True)
        else:
            self.files.pipe_file(f"{self.root}/{place}", raw)

    def _try(self, doing: str, request: Callable[[], T]) -> T | None:
        """The result of a request, or None once too many have failed. Raises Problem, and FileNotFoundError."""
        if self.trouble or self._failed >= GIVE_UP:
            return None
        try:
            result = request()
        except FileNotFoundError:
            raise
        except Exception as error:  # each store has errors of its own: they are counted, and the first is shown
            with self._lock:
                self._failed += 1
            raise Problem("errors", f"{self.url}: {doing}: {type(error).__name__}: {error}") from error
        with self._lock:
            if self._failed < GIVE_UP:
                self._failed = 0
        return result


def _verifies(key: Any, signature: bytes, message: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature

    try:
        key.verify(signature, message)
    except InvalidSignature:
        return False
    return True


def _file_system(url: str) -> tuple[Any, str]:
    try:
        import fsspec.core
        from fsspec.utils import get_protocol

        protocol = get_protocol(url)
        if protocol not in PROTOCOLS or "://" not in url:
            raise UsageError(
                f"{knobs.CACHE_URL.name}: {url!r} is not an address of a shared cache",
                hint=f"begin it with one of {', '.join(f'{each}://' for each in PROTOCOLS)}",
            )
        files, root = fsspec.core.url_to_fs(url)
    except ImportError as error:
        raise UsageError(f"{knobs.CACHE_URL.name}={url}: {error}", hint=INSTALL) from error
    except ValueError as error:
        raise UsageError(f"{knobs.CACHE_URL.name}={url}: {error}") from error
    return files, root.rstrip("/")
