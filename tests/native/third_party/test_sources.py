"""Where sources come from, for real: Conan runs our recipes in a container, with a mirror that has what it should, or
something else. Nothing large is built: what is given is refused, or missing."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from toolchain.errors import ToolFailed
from toolchain.pinned.pins import file_sha256

from .conftest import Bench, git

pytestmark = [pytest.mark.needs("engine"), pytest.mark.needs("native")]


@pytest.fixture
def archive(bench: Bench) -> Path:
    path = bench.mirror / "thing-1.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        member = tarfile.TarInfo("thing-1/file.txt")
        member.size = 4
        tar.addfile(member, io.BytesIO(b"text"))
    return path


@pytest.fixture(scope="module")
def clone(bench: Bench) -> tuple[Path, str, str]:
    """A clone in the mirror, with its commit and tree. Its .gitignore excludes one of its files."""
    folder = bench.mirror / "thing"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "file.txt").write_text("text")
    (folder / "kept.log").write_text("log")
    (folder / ".gitignore").write_text("*.log\n")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    git(folder, "add", "-f", ".")
    git(folder, "commit", "-q", "-m", "all")
    return folder, git(folder, "rev-parse", "HEAD"), git(folder, "rev-parse", "HEAD^{tree}")


URL = "https://nowhere.invalid/thing-1.tar.gz"
GIT = "https://nowhere.invalid/thing.git"


def get_archive(sha256: str) -> str:
    return f"get.get_archive(self, [{{'url': {URL!r}, 'sha256': {sha256!r}}}])"


def get_git(commit: str, tree: str | None) -> str:
    return f"get.get_git(self, {GIT!r}, ['https://mirror.invalid/thing.git'], {commit!r}, {tree!r}, 'thing')"


def test_an_archive_comes_from_the_mirror(bench: Bench, archive: Path):
    assert "CAME: ['file.txt']" in bench.fetch(get_archive(file_sha256(archive)))


@pytest.mark.usefixtures("archive")
def test_an_archive_that_is_another_is_refused(bench: Bench):
    with pytest.raises(ToolFailed, match=r"thing-1\.tar\.gz: sha256 \w{64}, pinned is 0{64}"):
        bench.fetch(get_archive("0" * 64))


def test_an_archive_that_cannot_be_had_names_each_place_and_what_to_do(bench: Bench):
    (bench.mirror / "thing-1.tar.gz").unlink(missing_ok=True)
    with pytest.raises(ToolFailed) as caught:
        bench.fetch(get_archive("0" * 64))
    said = str(caught.value)
    assert "/mirror/thing-1.tar.gz: no such file" in said
    assert URL in said
    assert "put thing-1.tar.gz into a folder and give it" in said
    assert "--source-mirror DIR" in said


def test_a_commit_comes_from_a_clone_in_the_mirror(bench: Bench, clone: tuple[Path, str, str]):
    _, commit, tree = clone
    assert "'file.txt', 'kept.log', 'run.sh']" in bench.fetch(get_git(commit, tree))


def test_a_commit_comes_as_it_is_whatever_is_set_for_git(bench: Bench, clone: tuple[Path, str, str]):
    assert r"SCRIPT: b'#!/bin/sh\n'" in bench.fetch(get_git(clone[1], clone[2]))


def test_a_commit_alone_is_enough(bench: Bench, clone: tuple[Path, str, str]):
    assert "'file.txt', 'kept.log', 'run.sh']" in bench.fetch(get_git(clone[1], None))


def test_a_tree_that_is_another_is_refused(bench: Bench, clone: tuple[Path, str, str]):
    with pytest.raises(ToolFailed, match=rf"git tree {clone[2]}, pinned is 1{{40}}"):
        bench.fetch(get_git(clone[1], "1" * 40))


@pytest.mark.parametrize("damaged", [False, True])
def test_an_archive_of_a_tree_is_checked_by_the_trees_hash(bench: Bench, clone: tuple[Path, str, str], damaged: bool):
    folder, commit, tree = clone
    path = bench.mirror / f"thing-{commit}.tar.gz"
    git(folder, "archive", "--prefix=thing/", "-o", str(path), commit)
    hidden = folder.rename(bench.mirror / "hidden")
    try:
        if damaged:
            with tarfile.open(path, "w:gz") as tar:
                tar.addfile(tarfile.TarInfo("thing/other.txt"), io.BytesIO(b""))
            with pytest.raises(ToolFailed, match=rf"git tree \w{{40}}, pinned is {tree}"):
                bench.fetch(get_git(commit, tree))
        else:
            assert "'file.txt', 'kept.log', 'run.sh']" in bench.fetch(get_git(commit, tree))
    finally:
        hidden.rename(folder)
        path.unlink()


@pytest.mark.usefixtures("clone")
def test_a_commit_that_cannot_be_had_names_each_place(bench: Bench):
    with pytest.raises(ToolFailed) as caught:
        bench.fetch(get_git("2" * 40, "3" * 40))
    said = str(caught.value)
    for place in ("/mirror/thing:", "/mirror/thing.git: no such clone", GIT, "https://mirror.invalid/thing.git"):
        assert place in said
    assert "a clone named thing" in said


def test_a_link_that_leads_nowhere_is_named_as_one(bench: Bench):
    link = bench.mirror / "thing-1.tar.gz"
    link.unlink(missing_ok=True)
    link.symlink_to("/nowhere/thing-1.tar.gz")
    with pytest.raises(ToolFailed, match=r"/mirror/thing-1\.tar\.gz: a symbolic link to /nowhere/thing-1\.tar\.gz, "):
        bench.fetch(get_archive("0" * 64))
    link.unlink()
