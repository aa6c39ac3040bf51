"""Conan itself: installed from third_party/requirements.lock, with a home of its own, and no remote."""

from __future__ import annotations

import hashlib
import json
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import ToolchainError, ToolFailed
from ..knobs import ROOT, build_environment

LOCK = ROOT / "third_party/requirements.lock"
WHEELS = ("--require-hashes", "--no-deps", "--only-binary", ":all:")  # sources would be built by what nobody pinned


@dataclass(frozen=True)
class Conan:
    """Conan's program and its home. `ccache`: the folder of compiled objects that its builds share."""

    program: Path
    home: Path
    ccache: Path

    def run(self, *arguments: str) -> None:
        """Run a command, its output as it comes on our own. Raises ToolFailed."""
        sys.stdout.flush()
        done = subprocess.run(
            [self.program, *arguments], env=self._environment(), stderr=subprocess.STDOUT, check=False, cwd=ROOT
        )
        if done.returncode:
            raise ToolFailed(["conan", *arguments], done.returncode, "what it said stands above", version=self.version)

    def quietly(self, *arguments: str) -> str:
        """Run a command and return its standard output. Raises ToolFailed with the end of what else it said."""
        command = [self.program, *arguments]
        done = subprocess.run(command, env=self._environment(), capture_output=True, text=True, check=False, cwd=ROOT)
        if done.returncode:
            raise ToolFailed(["conan", *arguments], done.returncode, done.stderr[-4000:], version=self.version)
        return done.stdout

    def ask(self, *arguments: str) -> Any:
        """What a command prints with --format=json. Raises ToolFailed."""
        return json.loads(self.quietly(*arguments, "--format=json"))

    @property
    def version(self) -> str:
        return f"Conan {self.program.parent.parent.name.split('-')[1]}"

    def _environment(self) -> dict[str, str]:
        own = {"CONAN_HOME": str(self.home), "CCACHE_DIR": str(self.ccache), "LC_ALL": "C.UTF-8"}
        return {**build_environment(), **own}


def install(folder: Path) -> Conan:
    """Conan in `folder`, installed there if it is not there yet. Raises ToolchainError."""
    lock = LOCK.read_bytes()
    found = re.search(r"^conan==(\S+)", lock.decode(), re.MULTILINE)
    if not found:
        raise ToolchainError(f"{LOCK}: no conan in it", hint="git checkout third_party/requirements.lock")
    digest = hashlib.sha256(lock + platform.python_version().encode()).hexdigest()[:8]
    environment = folder / f"conan-{found[1]}-{digest}"
    made = Conan(environment / "bin/conan", folder / "home", folder / "ccache")
    if (environment / "whole").exists():
        return made
    print(f"== installing Conan {found[1]}", flush=True)
    if environment.exists():  # an install that was cut off
        shutil.rmtree(environment)
    steps = (
        [sys.executable, "-m", "venv", str(environment)],
        [str(environment / "bin/pip"), "install", "-q", *WHEELS, "-r", str(LOCK)],
    )
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ToolchainError(
                f"installing Conan failed:\n  {' '.join(step)}\n{(done.stdout + done.stderr)[-3000:].rstrip()}",
                hint="it is downloaded from the package index that pip is configured for: check the network",
            )
    (environment / "whole").touch()
    return made


@dataclass(frozen=True)
class Package:
    """A package that a build needs: its reference with the recipe's revision, its id, whether Conan's home has it."""

    reference: str
    package_id: str
    there: bool

    @property
    def name(self) -> str:
        return self.reference.partition("/")[0]

    @property
    def version(self) -> str:
        return self.reference.partition("/")[2].partition("#")[0]


def graph(conan: Conan, arguments: Sequence[str]) -> list[Package]:
    """The packages that `conan install` with these arguments needs, those that others need first."""
    nodes: dict[str, dict[str, Any]] = conan.ask("graph", "info", *arguments)["graph"]["nodes"]
    rows = [node for node in nodes.values() if node["recipe"] != "Consumer"]
    for node in rows:
        if node["binary"] == "Invalid":
            raise ToolchainError(f"{node['ref']}: {node['info_invalid']}")
    packages = [Package(node["ref"], node["package_id"], node["binary"] == "Cache") for node in rows]
    return sorted(packages, key=lambda package: package.name != "llvm")
