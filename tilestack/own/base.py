"""Records the kernels of another commit of somebody's repository, in a worktree that is gone afterwards."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from toolchain.errors import ToolchainError, UsageError
from toolchain.knobs import with_our_packages

REQUIREMENTS = "requirements.txt"


def commit_of(folder: Path) -> Mapping[str, str]:
    """The commit of a folder's repository, and a digest of what is changed there; empty if it is in none."""
    if (
        _git(folder, "rev-parse", "--is-inside-work-tree") is None
        or (head := _git(folder, "rev-parse", "HEAD")) is None
    ):
        return {}
    changed = (_git(folder, "status", "--porcelain", "--", ".") or "") + (_git(folder, "diff", "HEAD", "--", ".") or "")
    digest = hashlib.sha256(changed.encode()).hexdigest()[:16] if changed.strip() else ""
    return {"commit": head.strip(), "changes": digest}


def record_base(table: Path, base: str, output: Path, options: Sequence[str]) -> None:
    """Records the same table as the commit `base` has it, with that commit's tilestack: this one, unless its
    requirements.txt differs. Raises UsageError for a name that is no commit, or that has no such table, and
    ToolchainError if a command fails there."""
    folder = table.absolute().parent
    top = _git(folder, "rev-parse", "--show-toplevel")
    if top is None:
        raise UsageError(f"{folder} is in no git repository, so there is no {base}")
    sha = _git(folder, "rev-parse", "--verify", "--quiet", f"{base}^{{commit}}")
    if sha is None:
        raise UsageError(f"{folder} has no commit {base}", hint="in a shallow clone: git fetch --unshallow")
    inside = table.absolute().relative_to(Path(top.strip()).resolve())
    with tempfile.TemporaryDirectory(prefix="tilestack-before-") as scratch:
        tree = Path(scratch) / "tree"
        _run(["git", "worktree", "add", "--quiet", "--detach", str(tree), sha.strip()], folder)
        try:
            if not (tree / inside).is_file():
                raise UsageError(f"{base} has no {inside}: there is nothing to compare with", hint="leave --base out")
            python = _python(folder, (tree / inside).parent)
            words = [python, "-m", "tilestack", "record", inside.name, *options, "--output", str(output.absolute())]
            _run(words, (tree / inside).parent, with_our_packages() if python == sys.executable else None)
        finally:
            _run(["git", "worktree", "remove", "--force", str(tree)], folder)


def _python(now: Path, then: Path) -> str:
    """A Python with the tilestack that the other commit asks for."""
    wanted = then / REQUIREMENTS
    if not wanted.is_file() or _text(wanted) == _text(now / REQUIREMENTS):
        return sys.executable
    _run([sys.executable, "-m", "venv", "--clear", str(then / ".venv")], then)
    _run([str(then / ".venv/bin/pip"), "install", "--quiet", "--requirement", REQUIREMENTS], then)
    return str(then / ".venv/bin/python")


def _text(path: Path) -> str:
    return path.read_text() if path.is_file() else ""


def _git(folder: Path, *words: str) -> str | None:
    """What git says, or None if it fails or is not there."""
    try:
        done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return None if done.returncode else done.stdout


def _run(words: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> None:
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False, env=environment)
    print(done.stdout, end="", flush=True)
    if done.returncode:
        raise ToolchainError(
            f"exit code {done.returncode} from: {' '.join(words)}\n  in {folder}\n{done.stderr.strip()}",
            hint="the commit before must record too, or there is nothing to compare with",
        )
