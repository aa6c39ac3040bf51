"""Folders: for temporary files, for the toolchain, for the cache. Can they be written, and is there room?"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from pathlib import Path

from ..caching.shared import Shared
from ..errors import UsageError
from ..knobs import (
    CACHE_DIR,
    CACHE_PUBLIC_KEY,
    CACHE_SIGNING_KEY,
    CACHE_URL,
    JOBS,
    TOOLCHAIN,
    cache_dir,
    cache_public_keys,
    cache_signing_key,
    cache_url,
    chosen_tmpdir,
    jobs,
    toolchain_dir,
)  # fmt: skip
from .check import Check

MIB = 2**20
TOO_SMALL, SMALL = 200 * MIB, 2048 * MIB  # a compile of all entries takes some 100 MiB, the toolchain 1.1 GiB


def tmpdir() -> Check:
    """The folder of temporary files. Python takes another one if TMPDIR cannot be used, other tools fail."""
    asked = chosen_tmpdir()
    if asked is not None and (problem := unwritable(asked)):
        return Check("TMPDIR", "bad", f"{asked}: {problem}", f"mkdir -p {asked}, or unset TMPDIR")
    try:
        folder = asked or Path(tempfile.gettempdir())
    except OSError as error:
        return Check("TMPDIR", "bad", f"no folder for temporary files: {error.strerror}", "export TMPDIR=FOLDER")
    if noexec(folder):
        said = f"{folder} is mounted noexec: programs that builds put there cannot run"
        return Check("TMPDIR", "note", said, "export TMPDIR=FOLDER on another file system")
    return room("TMPDIR", folder, "export TMPDIR=FOLDER on a larger file system")


def unwritable(folder: Path) -> str:
    """Why nothing can be written into a folder; empty if something can."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            return ""
    except OSError as error:
        return error.strerror or str(error)


def noexec(folder: Path) -> bool:
    return bool(os.statvfs(folder).f_flag & os.ST_NOEXEC)


def free_inodes(folder: Path) -> int | None:
    """How many files may still be made there; None on a file system without a limit."""
    found = os.statvfs(folder)
    return found.f_favail if found.f_files else None


def room(subject: str, folder: Path, advice: str, about: str = "") -> Check:
    """The free space of a folder's file system."""
    free = shutil.disk_usage(folder).free
    said = f"{folder}: {free // MIB} MiB free{about}"
    if free < TOO_SMALL:
        return Check(subject, "bad", said, advice)
    if free_inodes(folder) == 0:
        return Check(subject, "bad", f"{folder}: no more files can be made there (no free inodes)", advice)
    return Check(subject, "note" if free < SMALL else "ok", said, advice if free < SMALL else "")


def nearest(folder: Path) -> Path:
    """The folder, or the first above it that exists."""
    return next(path for path in (folder, *folder.parents) if path.exists())


def toolchain() -> Check:
    """Room where the toolchain is, or will be."""
    try:
        folder = toolchain_dir()
    except UsageError as error:
        return Check(TOOLCHAIN.name, "bad", str(error.args[0]), error.hint or "")
    return room(TOOLCHAIN.name, nearest(folder), f"free some space, or set {TOOLCHAIN.name}", f" ({TOOLCHAIN.doc})")


def cache() -> Check:
    """The compile cache: a folder of this user's own, with room. Who may write there can put kernels into bundles."""
    try:
        folder = cache_dir()
    except UsageError as error:
        return Check(CACHE_DIR.name, "bad", str(error.args[0]), error.hint or "")
    if folder.exists() and not folder.is_dir():
        return Check(CACHE_DIR.name, "bad", f"{folder} is a file", f"rm {folder}, or set {CACHE_DIR.name}")
    there = nearest(folder)
    if not there.is_dir():
        return Check(CACHE_DIR.name, "bad", f"{there}, a file, is in the way of {folder}", f"set {CACHE_DIR.name}")
    if problem := unwritable(there):
        own = f"sudo chown -R $USER {there}" if there == folder else f"set {CACHE_DIR.name}"
        return Check(CACHE_DIR.name, "bad", f"{there}: {problem}", own)
    if there == folder:
        about = folder.stat()
        if about.st_uid != os.getuid():
            said = f"{folder} belongs to user {about.st_uid}, who can change what is compiled"
            return Check(CACHE_DIR.name, "note", said, f"sudo chown -R $USER {folder}")
        if about.st_mode & stat.S_IWOTH:
            said = f"{folder} can be written by every user, who can change what is compiled"
            return Check(CACHE_DIR.name, "bad", said, f"chmod -R o-w {folder}")
    return room(CACHE_DIR.name, there, f"rm -r {folder}, or set {CACHE_DIR.name}", f" ({CACHE_DIR.doc})")


def shared_cache() -> Check:
    """The cache that machines share, if one is named: can it be reached, and may we read or write it? Asks the store as
    a compile does; a writer renews the marker there."""
    subject = CACHE_URL.name
    url, keys = cache_url(), bool(cache_public_keys() or cache_signing_key())
    if url is None:
        if keys:
            said = "keys of a shared cache are set, but no address: it is not used"
            return Check(
                subject, "note", said, f"set {subject}, or unset {CACHE_PUBLIC_KEY.name}, {CACHE_SIGNING_KEY.name}"
            )
        return Check(subject, "ok", f"{CACHE_URL.default} ({CACHE_URL.doc})")
    try:
        shared = Shared.open(url, cache_public_keys(), cache_signing_key())
    except UsageError as error:
        return Check(subject, "bad", str(error.args[0]), error.hint or "")
    if shared.trouble:
        return Check(subject, "note", shared.trouble, f"compiles go on without it; else unset {subject}")
    return Check(subject, "ok", f"{url}: we {'read and write' if shared.signing else 'read'} it")


def parallel() -> Check:
    try:
        return Check(JOBS.name, "ok", f"{jobs()} ({JOBS.doc})")
    except UsageError as error:
        return Check(JOBS.name, "bad", str(error.args[0]), error.hint or "")
