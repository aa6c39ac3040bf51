"""Build the native toolchain of a stack in a container, with a progress bar, into `.toolchain/native/<digest>/`.

`nox -s build_toolchain -- --native` runs it. The work is recipes.py's, in the container; here is what is around it: the
image, the mounts, what the user sees, and a prefix that is whole or not there.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from .. import command
from ..errors import TilestackError, ToolchainError, ToolFailed, UsageError
from ..files import only_one
from ..knobs import ROOT, cache_dir, certificates, jobs, network_settings, toolchain_dir
from ..pinned.manifest import REPAIR
from ..pinned.stacks import stacks
from .engine import Container, Engine
from .images import image
from .make_images import ensure
from .mirror import mirror
from .recipes import DOES_NOT_BUILD, OWN
from .wrappers import write_wrappers

# Inside a container.
CHECKOUT, WORK, PREFIX, PACKAGES, SOURCES, CERTIFICATES = (
    "/checkout", "/work", "/prefix", "/packages", "/sources", "/etc/ssl/tilestack.crt",
)  # fmt: skip
# The files that decide what is built, beside the image.
INPUTS = (
    "conanfile.py", "conan.lock", "toolchain/pinned/pins.toml", "toolchain/profiles", "third_party",
    "toolchain/native/recipes.py", "toolchain/native/conan.py", "toolchain/native/wrappers.py", "toolchain/knobs.py",
)  # fmt: skip


class DoesNotBuildError(ToolchainError):
    """A package does not build or fails its test, because of its source or of the tools that it is built with."""


@dataclass(frozen=True)
class Folders:
    """The folders of a build: for the tools, Conan's home and ccache, built packages, and sources already there."""

    prefix: Path
    work: Path
    packages: Path
    sources: Path | None


@dataclass(frozen=True)
class BuildPlan:
    """What to build. `llvm_version`: another LLVM than the stack's, as the canary tries."""

    stack: str
    llvm: str
    only_llvm: bool = False
    without_nvptx: bool = False
    llvm_version: str | None = None

    @property
    def image(self) -> str:
        """The name of the image to build it in."""
        if self.llvm == "source":
            return "compilers"
        version = self.llvm_version or stacks().stack(self.stack).llvm["system"]
        return f"llvm-{version.partition('.')[0]}"

    def digest(self, built_in: str) -> str:
        """A name for the outcome: of the plan, the files in INPUTS, and the image's id or `here`."""
        hashed = hashlib.sha256(json.dumps([asdict(self), built_in]).encode())
        for name in INPUTS:
            path = ROOT / name
            for file in sorted(path.rglob("*")) if path.is_dir() else (path,):
                if file.is_file() and "__pycache__" not in file.parts:
                    hashed.update(f"{file.relative_to(ROOT)}\0".encode() + file.read_bytes())
        return hashed.hexdigest()[:16]

    def arguments(self, folders: Folders) -> list[str]:
        """recipes.py's, for folders as it sees them."""
        command = ["-m", "toolchain.native.recipes", "--stack", self.stack, "--llvm", self.llvm, "--jobs", str(jobs())]
        command += ["--work", str(folders.work), "--prefix", str(folders.prefix), "--packages", str(folders.packages)]
        command += ["--source-mirror", str(folders.sources)] if folders.sources else []
        command += ["--llvm-version", self.llvm_version] if self.llvm_version else []
        command += ["--only-llvm"] if self.only_llvm else []
        command += ["--without-nvptx"] if self.without_nvptx else []
        with contextlib.suppress(ToolchainError):  # none known: the recipe says so, if it comes to need one
            command += ["--debian-mirror", mirror()]
        return command


def prefixes() -> Path:
    """Where native toolchains are, each in a folder of its digest; the link `current` leads to the one last built."""
    return toolchain_dir() / "native"


def build(
    plan: BuildPlan, *, engine: Engine | None, sources: Path | None, packages: Path, on_line: Callable[[str], None]
) -> Path:
    """Returns the plan's prefix, and builds it if it is not there. With `engine` None it builds on this machine.

    Raises ToolchainError; the prefix is whole or not there.
    """
    if sources:
        _check_sources(sources)
    built_in = ensure(engine, image(plan.image)) if engine else "here"
    prefix = prefixes() / plan.digest(built_in)
    if (prefix / "tools.json").exists():
        return prefix
    work = cache_dir() / "native" / (plan.image if engine else "here")
    for folder in (work, packages, prefixes()):
        folder.mkdir(parents=True, exist_ok=True)
    with only_one(work, "the native toolchain"):  # Conan's home there is for one build at a time
        if not (prefix / "tools.json").exists():
            folders = Folders(prefix, work, packages.absolute(), sources.absolute() if sources else None)
            _make(plan, folders, engine, built_in, on_line)
    return prefix


def _make(
    plan: BuildPlan, folders: Folders, engine: Engine | None, built_in: str, on_line: Callable[[str], None]
) -> None:
    prefix = folders.prefix
    with tempfile.TemporaryDirectory(dir=prefixes(), prefix=".building-") as temporary:
        made = Path(temporary, "prefix")
        made.mkdir()
        folders = replace(folders, prefix=made)
        said: list[str] = []

        def take(line: str) -> None:
            said.append(line)
            on_line(line)

        try:
            if engine:
                _in_container(engine, built_in, plan, folders, take)
            else:
                _here(plan, folders, take)
        except ToolFailed as error:
            raise _failure(said, error) from error
        if not (made / "tools.json").is_file():
            raise ToolchainError(f"the build succeeded but wrote no tools.json in {made}")
        facts = json.loads((made / "tools.json").read_text())
        (made / "tools.json").write_text(json.dumps({**facts, "image": built_in}, indent=1, sort_keys=True) + "\n")
        write_wrappers(made)
        if prefix.exists():  # of a build that was cut off
            shutil.rmtree(prefix)
        made.rename(prefix)


def _failure(said: Sequence[str], ended: ToolFailed) -> ToolchainError:
    """The error that a failed build's output tells of: the first errors of compilers and CMake, then what ended it."""
    compilers = [line for line in said if re.search(r"\berror: |undefined reference", line)]
    compilers = [line for line in dict.fromkeys(compilers) if not line.startswith("error: ")][:5]
    tools = [*_cmake_errors(said), *compilers]
    # What a recipe raised; or Conan's own message; or recipes.py's.
    marks = (r"\s*ConanException: ", r"ERROR: ", r"error: ")
    starts = [(mark, index) for mark in marks for index, line in enumerate(said) if re.match(mark, line)]
    if not starts:  # killed, say
        return ended
    mark, start = starts[0]
    last = [re.sub(mark, "", said[start]), *said[start + 1 : start + 30]]
    ours = (DOES_NOT_BUILD, "error: conan ", "  exited ", "what it said stands above")  # recipes.py's, of a failed step
    text = "\n".join((*tools, *(line for line in last if line not in tools and not line.startswith(ours))))
    failed = next((line.removeprefix(DOES_NOT_BUILD) for line in said if line.startswith(DOES_NOT_BUILD)), None)
    return DoesNotBuildError(f"{failed} does not build:\n{text}") if failed else ToolchainError(text)


def _cmake_errors(said: Sequence[str]) -> list[str]:
    """The lines of CMake's first error messages: each is a header and an indented text."""
    found: list[str] = []
    starts = [index for index, line in enumerate(said) if line.startswith("CMake Error")]
    for start in starts[:3]:
        end = start + 1
        while end < len(said) and (not said[end].strip() or said[end].startswith(" ")):
            end += 1
        found += [line for line in said[start:end] if line.strip() and line not in found][:20]
    return found


def container(built_in: str, mounts: Mapping[Path, tuple[str, str]], environment: Mapping[str, str]) -> Container:
    """A container that reaches the network as this machine does."""
    mounts, environment = dict(mounts), {**network_settings(), "HOME": "/tmp", **environment}
    if trusted := certificates():
        mounts[trusted] = (CERTIFICATES, "ro")
        names = ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "GIT_SSL_CAINFO")
        environment |= dict.fromkeys(names, CERTIFICATES)
    return Container(built_in, mounts=mounts, environment=environment, network=True)


def _in_container(
    engine: Engine, built_in: str, plan: BuildPlan, folders: Folders, on_line: Callable[[str], None]
) -> None:
    mounts = {
        ROOT: (CHECKOUT, "ro"),
        folders.prefix: (PREFIX, "rw"),
        folders.work: (WORK, "rw"),
        folders.packages: (PACKAGES, "rw"),
    }
    if folders.sources:
        mounts |= _source_mounts(folders.sources)
    inside = Folders(Path(PREFIX), Path(WORK), Path(PACKAGES), Path(SOURCES) if folders.sources else None)
    where = container(built_in, mounts, {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": CHECKOUT})
    engine.run(replace(where, folder=WORK), ["python3", *plan.arguments(inside)], on_line=on_line)


def _source_mounts(mirror: Path) -> dict[Path, tuple[str, str]]:
    """How a container sees the folder of sources: as it is or, if there are symbolic links in it, entry by entry. What
    a link leads to may lie outside of the folder, which is all that a mount of it shows."""
    entries = sorted(mirror.iterdir())
    if not any(entry.is_symlink() for entry in entries):
        return {mirror: (SOURCES, "ro")}
    return {entry: (f"{SOURCES}/{entry.name}", "ro") for entry in entries}


def _check_sources(mirror: Path) -> None:
    if not mirror.is_dir():
        raise UsageError(f"--source-mirror {mirror}: no such folder")
    for entry in sorted(mirror.iterdir()):
        if entry.is_symlink() and not entry.exists():
            raise UsageError(
                f"--source-mirror: {entry} is a symbolic link to {entry.readlink()}, which is not there",
                hint=f"rm {entry}, or put its target there",
            )


def _here(plan: BuildPlan, folders: Folders, on_line: Callable[[str], None]) -> None:
    command = [sys.executable, *plan.arguments(folders)]
    lines: list[str] = []
    # Compilers quote their sources, which need not be text.
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "errors": "replace"}
    with subprocess.Popen(command, cwd=ROOT, **pipes) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line.rstrip("\n"))
            on_line(lines[-1])
    if process.returncode:
        raise ToolFailed(command, process.returncode, "\n".join(lines[-40:]), version=sys.version.split()[0])


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="nox -s build_toolchain --")
    made.add_argument(
        "--native", action="store_true", help="build LLVM/MLIR and cuda-tile too; needs a container engine"
    )
    made.add_argument("--stack", default=stacks().default, choices=list(stacks().stacks), help="default %(default)s")
    made.add_argument("--llvm", default="system", choices=("source", "system"), help="default %(default)s")
    made.add_argument("--only-llvm", action="store_true", help="without cuda-tile")
    made.add_argument("--without-nvptx", action="store_true", help="LLVM from source without the NVPTX back end")
    made.add_argument("--source-mirror", type=Path, metavar="DIR", help="archives and git clones of the sources")
    made.add_argument(
        "--packages", type=Path, metavar="DIR", help="keep built packages there, and take them from there"
    )
    made.add_argument("--output", type=Path, metavar="DIR", help="copy the tools that were built there, too")
    made.add_argument("--no-container", action="store_true", help="build with what this machine has installed")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    args = parser().parse_args(arguments)
    return command.run(lambda: _main(args), set_up=REPAIR) if args.native else 0


def _main(args: argparse.Namespace) -> None:
    from .progress import Progress  # here: a GPU machine looks for native tools without rich

    start = time.monotonic()
    plan = BuildPlan(args.stack, args.llvm, only_llvm=args.only_llvm, without_nvptx=args.without_nvptx)
    log, packages = prefixes() / "build.log", args.packages or cache_dir() / "packages"
    progress = Progress(log)
    try:
        engine = None if args.no_container else Engine.find()
        where = engine.version if engine else "this machine"
        print(f"stack {plan.stack}, LLVM from {plan.llvm}: in {where}", flush=True)
        with progress:
            prefix = build(plan, engine=engine, sources=args.source_mirror, packages=packages, on_line=progress.line)
    except (TilestackError, OSError):
        if progress.began:
            print(f"the whole output: {log}", file=sys.stderr)
        raise
    _make_current(prefix)
    if args.output:
        shutil.copytree(prefix / OWN, args.output, dirs_exist_ok=True)
    print(f"native toolchain in {prefix}, {time.monotonic() - start:.1f} s")
    print(f"its tools, to be run from here: {prefixes() / 'current/bin'}")


def _make_current(prefix: Path) -> None:
    """Makes the link `current` lead to a prefix, in one step, whatever it led to before."""
    beside = prefix.with_name(f".current-{secrets.token_hex(4)}")
    beside.symlink_to(prefix.name)
    try:
        beside.replace(prefix.with_name("current"))
    finally:
        beside.unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(main())
