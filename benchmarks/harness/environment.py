"""Records the environment of a run: GPU, driver, libraries, commit, the bundle and the tools that compiled it."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from toolchain.bundle import MANIFEST, Bundle
from toolchain.errors import UsageError
from toolchain.files import write_whole
from toolchain.knobs import ROOT

COMMIT = "commit.json"  # a file in a bundle that names the commit it was compiled from, for a machine without git
UNMEASURED = (":!benchmarks/results", ":!docs", ":!tests")  # as git's pathspecs
PACKAGES = ("torch", "triton", "cupy-cuda13x", "cuda-bindings", "numpy", "ml-dtypes")


def commit(bundle: Path) -> dict[str, str]:
    """Which tree is measured, and which one the bundle was compiled from.

    `commit`, and `changes`: the digest of uncommitted changes, empty for a clean tree. They come from git; without a
    checkout, from the note of `stamp` in the bundle; without either they are empty.
    `bundle_commit`, `bundle_changes`: the note of `stamp`, if there is one. It can differ from the checkout if a bundle
    was copied to a machine with an older checkout.
    Raises UsageError if git fails.
    """
    here, stamped = _git(), _stamped(bundle)
    tree = here or stamped or {"commit": "", "changes": ""}
    return {**tree, **{f"bundle_{name}": value for name, value in stamped.items()}}


def _stamped(bundle: Path) -> dict[str, str]:
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


def tools(bundle: Bundle) -> dict[str, Any]:
    """The bundle's hash and the tools that compiled it."""
    manifest = (bundle.root / MANIFEST).read_bytes()
    return {
        "bundle": hashlib.sha256(manifest).hexdigest(),
        "tools": {name: dict(row) for name, row in bundle.tools.items()},
    }


def host() -> dict[str, Any]:
    """Machine and packages."""
    versions: dict[str, str] = {}
    for name in PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "python": platform.python_version(),
        "machine": platform.platform(),
        "packages": versions,
    }


def describe(
    bundle: Bundle, others: Mapping[str, Bundle], gpu: Mapping[str, Any], tree: Mapping[str, str]
) -> dict[str, Any]:
    """The whole environment. `others`: bundles to compare with, by name. `gpu`: the GPU's name, driver and so on, as
    the caller read them. `tree`: the answer of `commit`."""
    against = {name: {**_stamped(other.root), **tools(other)} for name, other in others.items()}
    return {**gpu, **host(), **tree, **tools(bundle), **({"against": against} if against else {})}
