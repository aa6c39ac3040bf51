"""Known vulnerabilities of what the locks pin: `nox -s audit`.

Python packages through pip-audit, the native ones through `conan audit list`. Nothing is installed from the locks for
it but the two tools. An advisory can appear without a change of ours, so this runs once a week and is not a gate.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .. import command
from ..errors import ToolchainError
from ..knobs import CONAN_AUDIT_TOKEN, ROOT, has_conan_audit_token, toolchain_dir
from ..pinned.manifest import REPAIR
from ..setup.uv import LINE, uv

CONAN_TOOLS = "third_party/requirements.lock"  # Conan itself
S3 = "tests/compile/toolchain/s3.lock"  # the shared cache's client and test server
LOCKS = ("requirements.lock", "bootstrap.lock", CONAN_TOOLS, S3)
CONAN_LOCK = "conan.lock"


def pip_audit(lock: Path) -> bool:
    """Whether the packages of a lock have no known vulnerability. A package that could not be looked up fails too.

    Raises ToolchainError if there is no such lock, or no pip-audit in the toolchain.
    """
    tool = toolchain_dir() / "venv/bin/pip-audit"
    for path, hint in ((tool, REPAIR), (lock, f"git checkout {lock.name}")):
        if not path.is_file():
            raise ToolchainError(f"{path}: missing", hint=hint)
    options = ["--strict", "--progress-spinner=off", "--require-hashes", "--disable-pip"]
    return subprocess.run([str(tool), *options, "-r", str(lock)], check=False).returncode == 0


def conan_skipped(root: Path) -> str | None:
    """Why the native packages cannot be looked up here, or None if they can."""
    if not (root / CONAN_LOCK).is_file():
        return f"there is no {CONAN_LOCK}"
    if not has_conan_audit_token():
        return f"{CONAN_AUDIT_TOKEN.name} is not set: {CONAN_AUDIT_TOKEN.doc}"
    return None


def conan_audit(root: Path) -> bool:
    """Whether the packages of conan.lock have no known vulnerability. Raises ToolchainError if they cannot be had."""
    folder = root / "build/conan"
    python = str(folder / "bin/python")
    uv(["venv", "-q", "--clear", "--python", sys.executable, str(folder)], cwd=root, doing="making Conan's environment")
    wheels = ["--require-hashes", "--only-binary", ":all:"]
    uv(
        ["pip", "sync", "-q", *wheels, "--python", python, str(root / CONAN_TOOLS)],
        cwd=root,
        doing=f"installing {CONAN_TOOLS}",
    )
    command = [str(folder / "bin/conan"), "audit", "list", "--lockfile", str(root / CONAN_LOCK), "--format", "json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    try:
        report: Any = json.loads(done.stdout)
        if done.returncode or report.get("conan_error"):
            raise ValueError(report.get("conan_error") or f"exited {done.returncode}")
        rows = {package: verdict(row) for package, row in report["data"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        what = f"{' '.join(command)}\n  {type(error).__name__}: {error}\n{done.stdout[:2000]}"
        raise ToolchainError(what, hint="check the token and the network") from error
    for package, (_, words) in rows.items():
        print(f"{package}: {words}")
    return all(well for well, _ in rows.values())


def verdict(row: Mapping[str, Any]) -> tuple[bool, str]:
    """Whether a package is well, and the words for it, of its row in what `conan audit list --format json` prints.

    A package that Conan's service does not know, as cuda-tile, has an `error` in its row: nothing can be said of it.
    """
    if "error" in row:
        return True, f"not audited: {row['error']['details']}"
    found = [f"{edge['node']['name']} ({edge['node']['severity']})" for edge in row["vulnerabilities"]["edges"]]
    return not found, ", ".join(found) or "no known vulnerability"


def audit(root: Path = ROOT) -> list[str]:
    """Look everything up, say what comes out, and return what is not well."""
    failed: list[str] = []
    for lock in LOCKS:
        print(f"{lock}:", flush=True)
        if not pip_audit(root / lock):
            failed.append(lock)
    print(f"{CONAN_LOCK}:", flush=True)
    if reason := conan_skipped(root):
        print(f"skipped: {reason}")
    elif not conan_audit(root):
        failed.append(CONAN_LOCK)
    return failed


def main() -> int:
    return command.run(_main, set_up=LINE)


def _main() -> int:
    failed = audit()
    if failed:
        print(f"error: not audited or not well: {', '.join(failed)}; see above", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
