"""Refuses files in the repository's root, and names with a leading dot, that are not in the lists below.

Part of `nox -s lint`. It looks at the files that git tracks, so that a note added by accident is not committed.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import PurePosixPath

from toolchain.knobs import ROOT

FOLDERS = frozenset({
    ".ci", ".devcontainer", ".github", "benchmarks", "ci", "conformance", "containers", "cute_runtime", "docs",
    "entries", "examples", "gpt", "kernels_cute", "kernels_mlir", "kernels_py", "tests", "third_party", "tilestack",
    "toolchain", "tune",
})  # fmt: skip
FILES = frozenset({
    ".gitignore", ".pre-commit-config.yaml", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "README.md", "SECURITY.md",
    "bootstrap.lock", "conan.lock", "conanfile.py", "noxfile.py", "pyproject.toml", "requirements.lock",
})  # fmt: skip


def strays(paths: Iterable[str]) -> list[str]:
    """The paths that are neither in a folder nor a file of the root that is known, or have another name with a dot
    first."""

    def known(path: PurePosixPath) -> bool:
        first, *rest = path.parts
        return first in (FOLDERS if rest else FILES) and not any(part.startswith(".") for part in rest)

    return [path for path in paths if not known(PurePosixPath(path))]


def main() -> int:
    """Prints what is not declared. Returns 1 if there is anything."""
    if not (ROOT / ".git").exists():
        print("not a checkout: nobody commits from here")
        return 0
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found = strays(filter(None, listed.split("\0")))
    for path in found:
        print(f"{path}: not declared in ci/root.py: remove it, or add it there")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
