"""Where sources come from, for real: Conan runs our recipes in a container, with a mirror that has what it should, or
something else. Nothing large is built: what is given is refused, or missing."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

import pytest

from toolchain.errors import ToolFailed
from toolchain.knobs import ROOT
from toolchain.native.build import CHECKOUT, container
from toolchain.native.engine import Engine
from toolchain.native.images import image
from toolchain.native.make_images import ensure
from toolchain.pins import file_sha256

pytestmark = [pytest.mark.needs("engine"), pytest.mark.needs("native")]

# A recipe that gets what it is told to, through the same module as ours.
RECIPE = """
from conan import ConanFile
class Fetch(ConanFile):
    name = "fetch"
    version = "1.0"
    python_requires = "tilestack_sources/1.0"
    def source(self):
        get = self.python_requires["tilestack_sources"].module
        {call}
        print("CAME:", sorted(__import__("os").listdir(".")))
        if __import__("os").path.exists("run.sh"):
            print("SCRIPT:", open("run.sh", "rb").read())
"""
# What a user may have set for git: other line ends, and another repository for an address.
SETTINGS = """
[core]
    autocrlf = true
[url "https://elsewhere.invalid/"]
    insteadOf = /mirror/
"""


class Bench:
    """A container with Conan in it, a folder for recipes, and a mirror."""

    def __init__(self, folder: Path) -> None:
        self.engine = Engine.find()
        self.image = ensure(self.engine, image("llvm-22"))
        self.folder, self.mirror, self.recipe = folder, folder / "mirror", folder / "recipe"
        self._calls = 0
        self.mirror.mkdir()
        self.recipe.mkdir()
        (folder / "work").mkdir()
        (folder / "work/gitconfig").write_text(SETTINGS)
        self._run(
            "python3",
            "-c",
            "import pathlib; from toolchain.native.conan import install; install(pathlib.Path('/work'))",
        )
        (self.conan,) = [f"/work/{path.name}/bin/conan" for path in (folder / "work").glob("conan-*")]
        self._run(self.conan, "export", f"{CHECKOUT}/third_party/sources")

    def _run(self, *command: str) -> str:
        mounts = {
            ROOT: (CHECKOUT, "ro"),
            self.folder / "work": ("/work", "rw"),
            self.recipe: ("/recipe", "ro"),
            self.mirror: ("/mirror", "ro"),
        }
        environment = {
            "PYTHONPATH": CHECKOUT, "PYTHONDONTWRITEBYTECODE": "1", "CONAN_HOME": "/work/home",
            "GIT_CONFIG_GLOBAL": "/work/gitconfig",
        }  # fmt: skip
        return self.engine.run(container(self.image, mounts, environment), command)

    def fetch(self, call: str, *, mirror: bool = True) -> str:
        """What Conan says of a recipe that makes this call; raises ToolFailed where it fails."""
        # Conan gets the sources of a recipe once: each call is a recipe of its own.
        self._calls += 1
        (self.recipe / "conanfile.py").write_text(RECIPE.format(call=call) + f"# {self._calls}\n")
        given = ["-c", "user.tilestack:source_mirror=/mirror"] if mirror else []
        return self._run(
            self.conan, "create", "/recipe", "--no-remote", "-pr:a", f"{CHECKOUT}/toolchain/profiles/trixie", *given
        )


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("sources"))


@pytest.fixture
def archive(bench: Bench) -> Path:
    path = bench.mirror / "thing-1.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        member = tarfile.TarInfo("thing-1/file.txt")
        member.size = 4
        tar.addfile(member, io.BytesIO(b"text"))
    return path


def git(folder: Path, *args: str) -> str:
    settings = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main"]
    command = ["git", "-C", str(folder), *settings, *args]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture(scope="module")
def clone(bench: Bench) -> tuple[Path, str, str]:
    """A clone in the mirror, the commit and the tree of what is in it; one file is one that .gitignore names."""
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
