"""What a run ran on and with: GPU, driver, libraries, commit, the bundle and the tools that compiled it."""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from toolchain.bundle import MANIFEST, Bundle
from toolchain.errors import UsageError
from toolchain.knobs import ROOT

COMMIT = "commit.json"  # in a bundle: the tree that it is of, for a machine without git
PACKAGES = ("torch", "triton", "cupy-cuda13x", "cuda-bindings", "numpy", "ml-dtypes")


def commit(bundle: Path) -> dict[str, str]:
    """`commit`, and `changes`: the digest of what differs from it, empty for a clean tree. From git; where there is no
    checkout, from what `stamp` wrote into the bundle; else empty. `bundle_commit`, `bundle_changes`: what `stamp`
    wrote, where it did: a tree that was copied to the GPU may stand on an older checkout there."""
    try:
        written = json.loads((bundle / COMMIT).read_text())
        stamped = {"commit": str(written["commit"]), "changes": str(written["changes"])}
    except (OSError, ValueError, KeyError, TypeError):
        return _git() or {"commit": "", "changes": ""}
    return {**(_git() or stamped), **{f"bundle_{name}": value for name, value in stamped.items()}}


def stamp(bundle: Path) -> Path:
    """Notes the checkout's commit in a bundle. Raises UsageError outside of a checkout."""
    found = _git()
    if found is None:
        raise UsageError(f"{ROOT} is no git checkout: there is no commit to note")
    if not (bundle / MANIFEST).is_file():
        raise UsageError(f"no bundle in {bundle}", hint="tilestack compile writes one")
    path = bundle / COMMIT
    path.write_text(json.dumps(found) + "\n")
    return path


def _git() -> dict[str, str] | None:
    """Results that are written into the tree do not change what was measured."""
    head = _run("git", "rev-parse", "HEAD")
    if head is None or not (ROOT / ".git").exists():
        return None
    measured = ("--", ".", ":!benchmarks/results", ":!docs", ":!tests")
    changed = _run("git", "diff", "HEAD", *measured) or b""
    new = _run("git", "ls-files", "--others", "--exclude-standard", *measured) or b""
    names = sorted(new.decode().splitlines())
    content = b"".join(name.encode() + (ROOT / name).read_bytes() for name in names)
    dirty = hashlib.sha256(changed + content).hexdigest()[:16] if changed or names else ""
    return {"commit": head.decode().strip(), "changes": dirty}


def _run(*command: str) -> bytes | None:
    try:
        done = subprocess.run(command, capture_output=True, cwd=ROOT, check=False)
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


def tools(bundle: Bundle) -> dict[str, Any]:
    """The bundle's identity and what compiled it."""
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


def describe(bundle: Bundle, gpu: Mapping[str, Any]) -> dict[str, Any]:
    """All of it. `gpu`: its name, driver and so on, from who asked the device."""
    return {**gpu, **host(), **commit(bundle.root), **tools(bundle)}
