"""Conan in a container, with our recipes and a mirror of sources that a test fills."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from toolchain.knobs import ROOT
from toolchain.native.build import CHECKOUT, container
from toolchain.native.engine import Engine
from toolchain.native.images import image
from toolchain.native.make_images import ensure

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
        self.run(
            "python3",
            "-c",
            "import pathlib; from toolchain.native.conan import install; install(pathlib.Path('/work'))",
        )
        (self.conan,) = [f"/work/{path.name}/bin/conan" for path in (folder / "work").glob("conan-*")]
        self.run(self.conan, "export", f"{CHECKOUT}/third_party/sources")

    def run(self, *command: str) -> str:
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
        """The output of Conan for a recipe that makes this call. Raises ToolFailed if it fails."""
        # Conan gets the sources of a recipe once: each call is a recipe of its own.
        self._calls += 1
        (self.recipe / "conanfile.py").write_text(RECIPE.format(call=call) + f"# {self._calls}\n")
        given = ["-c", "user.tilestack:source_mirror=/mirror"] if mirror else []
        return self.run(
            self.conan, "create", "/recipe", "--no-remote", "-pr:a", f"{CHECKOUT}/toolchain/profiles/trixie", *given
        )


def git(folder: Path, *args: str) -> str:
    settings = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main"]
    command = ["git", "-C", str(folder), *settings, *args]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("sources"))
