"""Which commit is measured: this checkout's, or the one that is noted in a bundle for machines without git."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import subprocess
from pathlib import Path

from ..errors import UsageError
from ..files import write_whole
from ..knobs import ROOT
from .bundle import MANIFEST

COMMIT = "commit.json"  # a file in a bundle that names the commit it was compiled from, for a machine without git
UNMEASURED = (":!benchmarks/results", ":!docs", ":!tests")  # as git's pathspecs


def commit(bundle: Path) -> dict[str, str]:
    """Which tree is measured, and which one the bundle was compiled from.

    `commit`, and `changes`: the digest of uncommitted changes, empty for a clean tree. They come from git; without a
    checkout, from the note of `stamp` in the bundle; without either they are empty.
    `bundle_commit`, `bundle_changes`: the note of `stamp`, if there is one. It can differ from the checkout if a bundle
    was copied to a machine with an older checkout.
    Raises UsageError if git fails.
    """
    here, note = _git(), stamped(bundle)
    tree = here or note or {"commit": "", "changes": ""}
    return {**tree, **{f"bundle_{name}": value for name, value in note.items()}}


def stamped(bundle: Path) -> dict[str, str]:
    """The note of `stamp` in a bundle; empty if there is none."""
    try:
        written = json.loads((bundle / COMMIT).read_text())
        return {"commit": str(written["commit"]), "changes": str(written["changes"])}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def stamp(bundle: Path) -> Path:
    """Write the checkout's commit into a bundle. Raises UsageError outside a checkout, and OSError."""
    found = _git()
    if found is None:
        raise UsageError(f"{ROOT} is not a git checkout, or git is not installed: the commit is unknown")
    if not (bundle / MANIFEST).is_file():
        raise UsageError(f"no bundle in {bundle}", hint="tilestack compile writes one")
    path = bundle / COMMIT
    write_whole(path, json.dumps(found) + "\n", parents=True)
    return path


def _git() -> dict[str, str] | None:
    """The commit and its changes; None without a checkout or git. Two kinds of changes do not count, because they do
    not affect what is measured: results written into the tree, and new files outside the commit's folders, such as the
    output and the log of this run."""
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        return None
    head = _run("rev-parse", "HEAD").decode().strip()
    changed = _run("diff", "HEAD", "--", ".", *UNMEASURED)
    folders = _names("ls-tree", "-d", "-z", "--name-only", "HEAD")
    new = _names("ls-files", "-z", "--others", "--exclude-standard", "--", *folders, *UNMEASURED) if folders else []
    if not changed and not new:
        return {"commit": head, "changes": ""}
    digest = hashlib.sha256(changed)
    for name in sorted(new):
        digest.update(os.fsencode(name) + b"\0" + _content(ROOT / name) + b"\0")
    return {"commit": head, "changes": digest.hexdigest()[:16]}


def _content(path: Path) -> bytes:
    """The content of a path that git lists: of a file, or the target of a link. A nested checkout has none."""
    if path.is_symlink():
        return b"link to " + os.fsencode(path.readlink())
    return b"a checkout of its own" if path.is_dir() else path.read_bytes()


def _names(*words: str) -> list[str]:
    """The names that git lists with -z. Without that option, git quotes names that are not ASCII."""
    return [os.fsdecode(name) for name in _run(*words).split(b"\0") if name]


def _run(*words: str) -> bytes:
    done = subprocess.run(["git", *words], capture_output=True, cwd=ROOT, check=False)
    if done.returncode:
        raise UsageError(
            f"the commit that is measured is unknown: git {shlex.join(words)} failed in {ROOT}:\n"
            f"{os.fsdecode(done.stderr).strip()}",
            hint="fix what git reports, or remove .git in a copy of the tree: then the bundle's stamp names the commit",
        )
    return done.stdout
