"""Checks style, kernels in MLIR text, types, import rules and the GitHub workflows: `nox -s lint`.

Every tool is part of the toolchain and pinned in requirements.lock. All of them run even after one has failed, so that
one run shows everything to fix.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from toolchain.knobs import ROOT

BIN = Path(sys.executable).parent


def commands() -> list[list[str]]:
    """The tools with their arguments. They run in this order, the fast ones first."""
    workflows = [str(path.relative_to(ROOT)) for path in sorted((ROOT / ".github/workflows").glob("*.y*ml"))]
    forms = [
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"))
        if path.stem != "config"
    ]
    return [
        ["ruff", "check", "."],
        ["ruff", "format", "--check", "."],
        ["python", "-m", "tilestack", "fmt", "--check", "kernels_mlir"],
        ["lint-imports", "--no-logo"],
        ["actionlint", "-no-color", "-shellcheck=", "-pyflakes=", *workflows],  # ci.scripts runs shellcheck
        ["zizmor", "--offline", "--quiet", "--no-progress", *workflows],
        ["check-jsonschema", "--builtin-schema", "vendor.github-workflows", *workflows],
        ["check-jsonschema", "--builtin-schema", "vendor.github-issue-forms", *forms],
        ["python", "-m", "ci.scripts"],
        ["python", "-m", "ci.root"],
        ["python", "-m", "ci.bench", "check"],
        ["basedpyright"],
    ]


def lint(wanted: Sequence[Sequence[str]]) -> list[str]:
    """Run each command and return the failed ones, as one would type them."""
    failed: list[str] = []
    for name, *arguments in wanted:
        line = shlex.join([name, *arguments])
        print(f"lint: {line}", flush=True)
        if subprocess.run([BIN / name, *arguments], cwd=ROOT, check=False).returncode:
            failed.append(line)
    return failed


def main() -> int:
    start = time.monotonic()
    wanted = commands()
    failed = lint(wanted)
    seconds = time.monotonic() - start
    if failed:
        print(f"lint: {len(failed)} of {len(wanted)} failed after {seconds:.0f} s:", *failed, sep="\n  ")
        return 1
    print(f"lint: all {len(wanted)} passed in {seconds:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
