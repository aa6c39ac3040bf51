"""The two copies of the checkout, and the commands that are run in them."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from toolchain import knobs
from toolchain.contract.sources import packages
from toolchain.errors import ToolchainError, UsageError

from .artefacts import Artefact
from .variation import Side, Varied

PACKAGES = ("ci", *packages().values(), "tilestack", "toolchain")  # those that decide what is built
TAIL = 40  # lines of a failed command that are shown


@dataclass(frozen=True)
class Commit:
    """The commit to build. `epoch`: when it was committed. `dirty`: the checkout has changes that are not in it."""

    sha: str
    epoch: int
    dirty: bool


@dataclass(frozen=True)
class ArtefactRun:
    """One run of an artefact's command. `failure`: why there is nothing to compare, or None. Times in seconds."""

    command: Sequence[str]
    started: float
    seconds: float
    output: Path
    failure: str | None


def git(*words: str) -> str:
    """The output of a git command in the checkout. Raises UsageError if it fails."""
    command = ["git", "-C", str(knobs.ROOT), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UsageError(
            f"{' '.join(command)}\n{done.stderr.strip()}", hint="this needs a git clone: only committed files are built"
        )
    return done.stdout.strip()


def commit(name: str) -> Commit:
    """The commit of that name. Raises UsageError."""
    sha = git("rev-parse", "--verify", f"{name}^{{commit}}")
    return Commit(sha, int(git("show", "-s", "--format=%ct", sha)), bool(git("status", "--porcelain")))


def prepare(side: Side, sha: str) -> None:
    """Make the folders of one build and its copy of a commit's files."""
    for folder in (side.checkout, side.home, side.tmp, side.folder / "out", side.folder / "cache"):
        folder.mkdir(parents=True)
    archive = side.folder / "checkout.tar"
    git("archive", "--format=tar", f"--output={archive}", sha)
    with tarfile.open(archive) as opened:
        members = sorted(opened, key=lambda member: member.name, reverse=side.backwards)
        for member in members:
            # Read, not run: the commit is the user's own. No owner, and permissions less what umask takes away.
            opened.extract(member, side.checkout, set_attrs=False, filter="data")
            path = side.checkout / member.name
            if member.issym():
                continue
            path.chmod((0o777 if member.isdir() or member.mode & 0o100 else 0o666) & ~side.umask)
            if member.isfile() and not side.backwards:
                os.utime(path, (member.mtime, member.mtime))
    archive.unlink()
    if side.toolchain != knobs.toolchain_dir():
        _link_tree(knobs.toolchain_dir(), side.toolchain)
    if side.uid is not None:
        ours = (p for p in side.folder.rglob("*") if side.toolchain not in (p, *p.parents))
        for path in (side.folder, *ours, side.checkout, *side.checkout.rglob("*")):
            os.chown(path, side.uid, side.uid, follow_symlinks=False)


def _link_tree(source: Path, target: Path) -> None:
    """Put the same files under another path: as hard links if the file system allows it, else as copies."""
    if not source.is_dir():
        return
    done = subprocess.run(
        ["cp", "--archive", "--link", str(source), str(target)], capture_output=True, text=True, check=False
    )
    if done.returncode:  # another file system
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target, symlinks=True)


@contextmanager
def shuffled(side: Side) -> Generator[str | None]:
    """Mount the side's copy through disorderfs, which lists files in another order. Returns None, or why it failed."""
    program = shutil.which("disorderfs")
    if program is None:
        yield "disorderfs is not installed"
        return
    real = side.checkout.rename(side.checkout.with_name("real"))
    side.checkout.mkdir()
    options = ["--shuffle-dirents=yes", "--sort-dirents=no", "--multi-user=yes"]
    done = subprocess.run(
        [program, *options, str(real), str(side.checkout)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        side.checkout.rmdir()
        real.rename(side.checkout)
        yield f"disorderfs exited {done.returncode}: {done.stderr.strip()}"
        return
    try:
        yield None
    finally:
        subprocess.run(["fusermount", "-u", str(side.checkout)], check=True)


def order_of_files(sides: Sequence[Side], reason: str | None) -> Varied:
    """Says in how many folders the two copies list files in different order. `reason`: why disorderfs was not used."""
    one, two = (
        {
            path.relative_to(side.checkout): [found.name for found in path.iterdir()]
            for path in [side.checkout, *_folders(side.checkout)]
        }
        for side in sides
    )
    other = sum(two.get(name) != names for name, names in one.items())
    found = f"another order in {other} of {len(one)} folders"
    how = "by disorderfs" if reason is None else f"written in reverse order, to memory where there is ({reason})"
    if other == 0:
        return Varied("order of files", "as written", "as written", f"{how}, {found}")
    return Varied("order of files", "as written", f"{how}: {found}")


def _folders(root: Path) -> Iterator[Path]:
    return (path for path in root.rglob("*") if path.is_dir() and not path.is_symlink())


def check_sources(side: Side, python: Path) -> None:
    """Raises ToolchainError unless the side's Python imports our packages from the side's copy."""
    code = f"import {', '.join(PACKAGES)}; print({', '.join(f'{name}.__file__' for name in PACKAGES)}, sep='\\n')"
    done = run(side, [str(python), "-c", code], {}, {})
    if done.returncode:
        raise ToolchainError(f"the {side.name} build cannot import our packages:\n{done.stdout.strip()}")
    for line in done.stdout.splitlines():
        if not Path(line).is_relative_to(side.checkout):
            raise ToolchainError(
                f"the {side.name} build would take {line}, which is not of its own copy {side.checkout}",
                hint="this is a bug of ci/reproduce",
            )


def make(side: Side, artefact: Artefact, selection: Sequence[str], python: Path, uv: Path) -> ArtefactRun:
    """Run an artefact's command for one build; its output goes to `<artefact>.log` too."""
    out = side.out(artefact.name)
    out.mkdir()
    if side.uid is not None:
        os.chown(out, side.uid, side.uid)
    places = {
        "python": str(side.toolchain / python.relative_to(knobs.toolchain_dir()))
        if python.is_relative_to(knobs.toolchain_dir())
        else str(python),
        "uv": str(uv), "checkout": str(side.checkout), "out": str(out), "built": str(out.parent),
    }  # fmt: skip
    words = artefact.words(selection, places)
    started, before = time.time(), time.perf_counter()
    done = run(side, words, artefact.keep, network() if artefact.network else {})
    seconds = time.perf_counter() - before
    (side.folder / f"{artefact.name}.log").write_text(done.stdout)
    output = Path(artefact.filled(artefact.output, places))
    failure = None
    if done.returncode:
        said = "\n".join(done.stdout.rstrip().splitlines()[-TAIL:])
        failure = f"the {side.name} build's command exited {done.returncode}:\n{' '.join(words)}\n{said}"
    elif not output.exists():
        failure = f"the {side.name} build's command made no {output}:\n{' '.join(words)}"
    return ArtefactRun(words, started, seconds, output, failure)


def network() -> dict[str, str]:
    """The environment variables that package clients and the container engine need."""
    found = knobs.network_settings()
    for knob, value in ((knobs.ENGINE, knobs.engine_address()), (knobs.DEBIAN_MIRROR, knobs.debian_mirror())):
        if value:
            found[knob.name] = value
    if folder := knobs.runtime_dir():
        found["XDG_RUNTIME_DIR"] = folder
    if certificates := knobs.certificates():
        found["SSL_CERT_FILE"] = str(certificates)
    return found


def run(
    side: Side, words: Sequence[str], keep: Mapping[str, str], more: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run a command of one build in its copy of the checkout; standard error goes to standard output."""
    command = side.wrapped(words, keep)
    try:
        return subprocess.run(
            command, cwd=side.checkout, env={**more, **side.environment}, umask=side.umask,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", check=False,
        )  # fmt: skip
    except OSError as error:  # no such program
        return subprocess.CompletedProcess(command, 127, f"{error}\n")
