"""Folders that are full, closed, somebody else's, or not folders."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import NamedTuple
from unittest.mock import Mock

import pytest

from toolchain.caching.shared import new_keys
from toolchain.doctor import Check, machine
from toolchain.doctor.machine import MIB


class Usage(NamedTuple):
    """As shutil has it."""

    total: int
    used: int
    free: int


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("TILESTACK_CACHE_DIR", str(folder))
    monkeypatch.setattr(machine, "SMALL", machine.TOO_SMALL)  # whatever this machine has left
    return folder


def free(monkeypatch: pytest.MonkeyPatch, mebibytes: int) -> None:
    def usage(folder: Path) -> Usage:
        del folder
        return Usage(2**40, 0, mebibytes * MIB)

    monkeypatch.setattr(shutil, "disk_usage", usage)


def is_bad(line: Check, subject: str, found: str, advice: str) -> None:
    assert (line.subject, line.status) == (subject, "bad")
    assert found in line.found and advice in line.advice and not line.device


def test_a_cache_that_is_not_there_yet_is_right(cache: Path):
    assert machine.cache().status == "ok"
    cache.mkdir()
    assert machine.cache().status == "ok"


def test_a_cache_that_is_a_file(cache: Path):
    cache.touch()
    is_bad(machine.cache(), "TILESTACK_CACHE_DIR", f"{cache} is a file", f"rm {cache}")


def test_a_file_above_the_cache(cache: Path, monkeypatch: pytest.MonkeyPatch):
    cache.touch()
    monkeypatch.setenv("TILESTACK_CACHE_DIR", str(cache / "below"))
    is_bad(machine.cache(), "TILESTACK_CACHE_DIR", "a file, is in the way", "set TILESTACK_CACHE_DIR")


def test_a_cache_that_may_not_be_written(cache: Path, monkeypatch: pytest.MonkeyPatch):
    cache.mkdir()

    def unwritable(folder: Path) -> str:
        return "Permission denied" if folder == cache else ""

    monkeypatch.setattr(machine, "unwritable", unwritable)
    is_bad(machine.cache(), "TILESTACK_CACHE_DIR", f"{cache}: Permission denied", "sudo chown -R $USER")


def test_a_cache_that_everybody_may_write(cache: Path):
    cache.mkdir()
    cache.chmod(0o777)
    is_bad(machine.cache(), "TILESTACK_CACHE_DIR", "can be written by every user", f"chmod -R o-w {cache}")


def test_somebody_elses_cache_is_a_note(cache: Path, monkeypatch: pytest.MonkeyPatch):
    cache.mkdir()
    owner = os.getuid() + 1
    monkeypatch.setattr(os, "getuid", lambda: owner)
    line = machine.cache()
    assert line.status == "note" and "belongs to user" in line.found and "chown" in line.advice


def test_no_room_for_the_cache(cache: Path, monkeypatch: pytest.MonkeyPatch):
    free(monkeypatch, 50)
    is_bad(machine.cache(), "TILESTACK_CACHE_DIR", "50 MiB free", f"rm -r {cache}")


def test_little_room_is_a_note(monkeypatch: pytest.MonkeyPatch):
    free(monkeypatch, 1000)
    line = machine.toolchain()
    assert line.status == "note" and "1000 MiB free" in line.found and "TILESTACK_TOOLCHAIN" in line.advice


def test_no_inodes(cache: Path, monkeypatch: pytest.MonkeyPatch):
    del cache
    monkeypatch.setattr(machine, "free_inodes", Mock(return_value=0))
    is_bad(machine.cache(), "TILESTACK_CACHE_DIR", "no free inodes", "rm -r")


def test_no_home_and_no_cache(monkeypatch: pytest.MonkeyPatch):
    def home() -> Path:
        raise RuntimeError("no home")

    for name in ("TILESTACK_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", home)
    is_bad(machine.cache(), "TILESTACK_CACHE_DIR", "no home folder is known", "set TILESTACK_CACHE_DIR")


def test_a_toolchain_of_an_unknown_user(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TILESTACK_TOOLCHAIN", "~nobody-of-this-name/x")
    is_bad(machine.toolchain(), "TILESTACK_TOOLCHAIN", "~nobody-of-this-name", "without ~")


def test_a_tmpdir_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "gone"))
    is_bad(machine.tmpdir(), "TMPDIR", "gone: No such file or directory", "mkdir -p ")


def test_a_small_tmpdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    free(monkeypatch, 10)
    is_bad(machine.tmpdir(), "TMPDIR", "10 MiB free", "on a larger file system")


def test_a_tmpdir_mounted_noexec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(machine, "noexec", Mock(return_value=True))
    line = machine.tmpdir()
    assert line.status == "note" and "mounted noexec" in line.found and "another file system" in line.advice


def test_jobs_that_are_no_number(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TILESTACK_JOBS", "many")
    is_bad(machine.parallel(), "TILESTACK_JOBS", "'many' is not an integer", "unset TILESTACK_JOBS")


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    pytest.importorskip("fsspec")
    for name in ("URL", "PUBLIC_KEY", "SIGNING_KEY"):
        monkeypatch.delenv(f"TILESTACK_CACHE_{name}", raising=False)
    return f"file://{tmp_path}/shared"


@pytest.mark.usefixtures("shared")
def test_without_a_shared_cache_none_is_used(monkeypatch: pytest.MonkeyPatch):
    assert machine.shared_cache().status == "ok" and "none is used" in machine.shared_cache().found
    monkeypatch.setenv("TILESTACK_CACHE_PUBLIC_KEY", "key")
    assert machine.shared_cache().status == "note" and "no address" in machine.shared_cache().found


def test_a_shared_cache_that_we_write_and_that_we_read(shared: str, monkeypatch: pytest.MonkeyPatch):
    signing, public = new_keys()
    monkeypatch.setenv("TILESTACK_CACHE_URL", shared)
    is_bad(machine.shared_cache(), "TILESTACK_CACHE_URL", "no key says whose entries", "TILESTACK_CACHE_PUBLIC_KEY")
    monkeypatch.setenv("TILESTACK_CACHE_PUBLIC_KEY", public)
    assert machine.shared_cache().status == "note" and "no cache is there yet" in machine.shared_cache().found
    monkeypatch.setenv("TILESTACK_CACHE_SIGNING_KEY", signing)
    assert machine.shared_cache().found == f"{shared}: we read and write it"
    monkeypatch.delenv("TILESTACK_CACHE_SIGNING_KEY")
    assert machine.shared_cache().found == f"{shared}: we read it"


@pytest.mark.usefixtures("shared")
def test_a_shared_cache_with_a_wrong_address_or_key(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TILESTACK_CACHE_URL", "ftp://somewhere/else")
    monkeypatch.setenv("TILESTACK_CACHE_PUBLIC_KEY", new_keys()[1])
    is_bad(machine.shared_cache(), "TILESTACK_CACHE_URL", "is not an address of a shared cache", "begin it with")
    monkeypatch.setenv("TILESTACK_CACHE_PUBLIC_KEY", "short")
    is_bad(machine.shared_cache(), "TILESTACK_CACHE_URL", "TILESTACK_CACHE_PUBLIC_KEY is not the base64", "cache key")
