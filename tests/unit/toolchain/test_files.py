from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from toolchain.errors import UsageError
from toolchain.files import check_makable, everything, filling, only_one, replacing, write_whole
from toolchain.knobs import ROOT


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_text_and_bytes_are_written_with_the_permissions_of_any_file(tmp_path: Path):
    for content in ("café\n", b"\x00\xff"):
        write_whole(tmp_path / "file", content)
        assert (tmp_path / "file").read_bytes() == (content if isinstance(content, bytes) else content.encode())
    (tmp_path / "any").touch()
    assert (tmp_path / "file").stat().st_mode == (tmp_path / "any").stat().st_mode
    assert names(tmp_path) == ["any", "file"]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt(), ValueError()])
@pytest.mark.parametrize("before", [None, "old"])
def test_what_ends_early_leaves_all_as_it_was(tmp_path: Path, error: BaseException, before: str | None):
    path = tmp_path / "file"
    if before is not None:
        path.write_text(before)

    def write() -> None:
        with replacing(path) as beside:
            beside.write_text("a part of")
            raise error

    with pytest.raises(type(error)):
        write()
    assert names(tmp_path) == ([] if before is None else ["file"])
    assert before is None or path.read_text() == before


def test_of_two_files_neither_is_replaced_where_the_second_fails(tmp_path: Path):
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("old")

    def write() -> None:
        with replacing(one) as first, replacing(two):
            first.write_text("new")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write()
    assert one.read_text() == "old" and names(tmp_path) == ["one"]


def test_what_cannot_be_written_is_an_oserror(tmp_path: Path):
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "missing" / "file", tmp_path / "folder"):
        with pytest.raises(OSError, match=r"missing/\.file|folder"):
            write_whole(path, "")
    assert names(tmp_path) == ["folder"]


@pytest.mark.parametrize("before", [None, "old"])
def test_a_link_stays_a_link(tmp_path: Path, before: str | None):
    (tmp_path / "there").mkdir()
    if before is not None:
        (tmp_path / "there" / "file").write_text(before)
    (tmp_path / "link").symlink_to("there/file")
    write_whole(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "there" / "file").read_text() == "new"
    assert names(tmp_path / "there") == ["file"]


def test_a_pipe_is_written_to_and_stays(tmp_path: Path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    write_whole(pipe, b"content")
    reader.join(60)
    assert read == [b"content"] and pipe.is_fifo() and names(tmp_path) == ["pipe"]


def test_a_folder_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "file").touch()
    monkeypatch.chdir(tmp_path)
    for folder in (tmp_path, tmp_path / "new" / "deep", Path("new"), Path()):
        check_makable(folder)
    for folder in (Path("file"), Path("file/below"), tmp_path / "file"):
        with pytest.raises(UsageError, match=f"{folder} cannot be created: .*file is not a folder"):
            check_makable(folder)
    monkeypatch.setattr(os, "access", lambda *_: False)  # root, who may run the tests, may write anywhere
    with pytest.raises(UsageError, match=f"{tmp_path}/new cannot be written: no permission to write to {tmp_path}"):
        check_makable(tmp_path / "new")
    assert names(tmp_path) == ["file"]


def test_a_folder_is_made_where_that_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_whole(tmp_path / "a" / "b" / "file", "")
    write_whole(tmp_path / "a" / "b" / "file", "new", parents=True)
    assert (tmp_path / "a" / "b" / "file").read_text() == "new"


def test_an_error_of_an_open_file_names_it(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=f"No space left on device: '{tmp_path}/file'"), replacing(tmp_path / "file"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("there", [[], ["b", "mine"]])
def test_a_folder_is_filled_as_a_whole_or_not_at_all(tmp_path: Path, there: list[str]) -> None:
    folder = tmp_path / "folder"
    for name in there:
        write_whole(folder / name, "old", parents=True)

    def fill(fails: bool) -> None:
        with filling(folder) as scratch:
            for name in "ab":
                (scratch / name).write_text("new")
            if fails:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(UsageError, match=f"{folder} cannot be written: No space left"):
        fill(True)
    assert names(tmp_path) == ["folder"][: len(there)]
    assert [(folder / name).read_text() for name in there] == ["old"] * len(there)
    assert not there or names(folder) == there
    fill(False)
    assert names(tmp_path) == ["folder"] and names(folder) == sorted({"a", "b", *there})
    assert (folder / "b").read_text() == "new"


def test_everything_in_a_folder_is_listed(tmp_path: Path) -> None:
    (tmp_path / "a" / "empty").mkdir(parents=True)
    (tmp_path / "a" / "file").touch()
    for name, to in (("folder", "a"), ("nowhere", "gone"), ("z", "a/file")):
        (tmp_path / name).symlink_to(to)
    os.mkfifo(tmp_path / "pipe")
    found = everything(tmp_path)
    assert [str(path.relative_to(tmp_path)) for path in found] == ["a/file", "folder", "nowhere", "pipe", "z"]


def test_a_folder_that_cannot_be_listed_is_not_passed_over(tmp_path: Path, closed: Path) -> None:
    assert list(tmp_path.rglob("*")) == [closed]
    with pytest.raises(PermissionError):
        everything(tmp_path)


def test_a_second_build_waits_for_the_first(tmp_path: Path) -> None:
    code = "import sys, pathlib as p, toolchain.files as b\nwith b.only_one(p.Path(sys.argv[1]), 'it'): print('in')"
    with only_one(tmp_path, "it"):
        second = subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert second.stderr is not None
        assert "waiting" in second.stderr.readline()
        assert second.poll() is None
    out, _ = second.communicate(timeout=60)
    assert (out, second.returncode) == ("in\n", 0)


def test_the_lock_outlives_a_killed_build_for_as_long_as_its_uv_runs(tmp_path: Path) -> None:
    with only_one(tmp_path, "it") as lock:
        orphan = subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, pass_fds=[lock])
    with (tmp_path / "lock").open() as file:
        with pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        orphan.communicate(timeout=60)
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
