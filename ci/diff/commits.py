"""Finds the commit that made a difference: `git bisect` in a worktree of its own, each commit compiled by its own code.

The user's checkout, and a bisection that they may have begun there, stay as they are: git keeps both per worktree.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolchain.bundles.bundle import MANIFEST
from toolchain.caching.cache import Cache
from toolchain.errors import BundleError, ToolchainError, UsageError
from toolchain.knobs import ROOT

from .bisect import by_resources, run_check

NONE_LEFT = 2  # the exit code of `git bisect` when only skipped commits are left
PYTHON = ".toolchain/venv/bin/python"

Judge = Callable[[Path], tuple[bool | None, str]]  # of the worktree: whether it shows the difference, and words
Compile = Callable[[Path], Path]  # of the worktree: a bundle with the one kernel, written by the commit's own code


@dataclass(frozen=True)
class Step:
    """A commit that was tried. `shows`: None if it cannot be said, and `said` has the reason."""

    commit: str
    shows: bool | None
    said: str


@dataclass(frozen=True)
class BisectResult:
    """`commits`: the one that made the difference, or those among which skipped ones leave it open.
    `subjects`: of these."""

    commits: tuple[str, ...]
    subjects: tuple[str, ...]
    steps: tuple[Step, ...]

    def to_json(self) -> dict[str, Any]:
        named = {"commits": list(self.commits), "subjects": list(self.subjects)}
        return {**named, "steps": [vars(step) for step in self.steps]}

    def lines(self) -> list[str]:
        """For a terminal."""
        marks = {True: "shows it", False: "does not", None: "unknown"}
        lines = [f"{step.commit[:12]} {marks[step.shows]:9} {step.said}" for step in self.steps]
        named = (f"{commit[:12]} {subject}" for commit, subject in zip(self.commits, self.subjects, strict=True))
        return [*lines, f"made by: {', or by '.join(named)}"]


def git(folder: Path, *words: str, answers: Sequence[int] = (0,)) -> tuple[int, str]:
    """The exit code and output of a git command. Raises UsageError if it fails."""
    done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=False)
    if done.returncode not in answers:
        raise UsageError(f"git {' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.returncode, done.stdout


@contextmanager
def worktree(commit: str, repository: Path = ROOT) -> Generator[Path]:
    """A worktree at a commit, which is gone afterwards. Raises UsageError if there is no such commit."""
    with tempfile.TemporaryDirectory(prefix="tilestack-bisect-") as folder:
        tree = Path(folder, "tree")
        git(repository, "worktree", "add", "--quiet", "--detach", str(tree), commit)
        try:
            yield tree
        finally:
            git(repository, "worktree", "remove", "--force", str(tree))


def search(good: str, bad: str, judge: Judge, tree: Path) -> BisectResult:
    """The first commit after `good` and up to `bad` that shows the difference. `tree`: a worktree that is free to be
    checked out. Raises UsageError if `good` is no ancestor of `bad`."""
    if git(tree, "merge-base", "--is-ancestor", good, bad, answers=(0, 1))[0]:
        raise UsageError(f"{good} is no ancestor of {bad}", hint="name the older commit first")
    said = git(tree, "bisect", "start", bad, good)[1]
    steps: list[Step] = []
    code = 0
    while not code and "is the first bad commit" not in said:
        head = git(tree, "rev-parse", "HEAD")[1].strip()
        shows, why = judge(tree)
        steps.append(Step(head, shows, why))
        word = {True: "bad", False: "good", None: "skip"}[shows]
        code, said = git(tree, "bisect", word, answers=(0, NONE_LEFT))
    left = re.findall(r"^[0-9a-f]{40}$", said, re.MULTILINE) if code else [git(tree, "rev-parse", "refs/bisect/bad")[1]]
    subjects = [git(tree, "show", "--no-patch", "--format=%s", commit.strip())[1].strip() for commit in left]
    return BisectResult(tuple(commit.strip() for commit in left), tuple(subjects), tuple(steps))


def compiler(cell: str, output: Path, nox: str) -> Compile:
    """Compiles one kernel with a worktree's own toolchain. `cell`: `source/symbol target`."""
    name, _, target = cell.rpartition(" ")

    def compile_cell(tree: Path) -> Path:
        shutil.rmtree(output, ignore_errors=True)  # rather than an option that an older commit may lack
        for words in (
            [nox, "-s", "build_toolchain"],
            [str(tree / PYTHON), "-m", "tilestack", "compile", "--entries", f"^{re.escape(name)}$",
             "--target", target, "--output", str(output)],
        ):  # fmt: skip
            try:
                done = subprocess.run(words, cwd=tree, capture_output=True, text=True, check=False)
            except OSError as error:
                raise UsageError(f"{words[0]} cannot be started: {error.strerror}", hint="--nox PATH") from error
            if done.returncode:
                last = (done.stderr or done.stdout).strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
                raise ToolchainError(f"{' '.join(words[:4])}: {last[0]}")
        return output

    return compile_cell


def cubin_of(bundle: Path, cell: str) -> bytes:
    """The cubin of `source/symbol target`. It reads only what the formats of manifests since the second have in
    common, since a commit writes the format of its day. Raises BundleError, also if there is no such kernel yet."""
    name, _, target = cell.rpartition(" ")
    try:
        rows: list[dict[str, Any]] = json.loads((bundle / MANIFEST).read_text())["entries"]
        own = [row["cubins"] for row in rows if f"{row['spec']['source']}/{row['spec']['symbol']}" == name]
        if not own or target not in own[0]:
            raise BundleError(f"it has no kernel {cell}", hint="tilestack diff lists those of two bundles")
        sha256 = str(own[0][target])
        cubin = (bundle / "files" / f"{sha256}.cubin").read_bytes()
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BundleError(f"{bundle} is no bundle that can be read: {type(error).__name__}: {error}") from error
    if hashlib.sha256(cubin).hexdigest() != sha256:
        raise BundleError(f"{bundle} is damaged: {sha256}.cubin has another content")
    return cubin


def bisect_commits(
    good: str, bad: str, cell: str, compile_cell: Compile, cache: Cache, check: str | None = None,
    repository: Path = ROOT,
) -> BisectResult:  # fmt: skip
    """The commit that made the difference of one kernel. A commit that does not compile is skipped.

    `check`: as `bisect` has it. Raises UsageError if the two ends do not differ, and what compiling them raises."""
    with tempfile.TemporaryDirectory(prefix="tilestack-") as folder, worktree(good, repository) as tree:
        first = _kept(compile_cell(tree), Path(folder, "first"))
        git(tree, "checkout", "--quiet", "--detach", bad)
        second = _kept(compile_cell(tree), Path(folder, "second"))
        one, two = cubin_of(first, cell), cubin_of(second, cell)
        if check is None and one == two:
            raise UsageError(f"{cell} is the same at {good} and at {bad}", hint="nothing is to be found")
        symbol = cell.rpartition(" ")[0].partition("/")[2]
        by_usage = by_resources(one, two, symbol, cache) if check is None else None

        def judge(tree: Path) -> tuple[bool | None, str]:
            try:
                made = compile_cell(tree)
                cubin = cubin_of(made, cell)
            except (ToolchainError, BundleError) as error:
                return None, str(error.args[0]).splitlines()[0]
            return by_usage(cubin) if by_usage else run_check(check or "", base=first, bundle=made)

        return search(good, bad, judge, tree)


def _kept(bundle: Path, place: Path) -> Path:
    """A copy: the next commit is compiled to the same folder."""
    return Path(shutil.copytree(bundle, place))
