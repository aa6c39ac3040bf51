"""The Python environment in which a suite runs: PyTorch for CPUs, the suite's requirements and the interpreter's.

What requirements.lock has is taken in its version, so that a suite runs with the cuTile that is pinned here.
"""

from __future__ import annotations

import sys
from pathlib import Path

from toolchain.knobs import ROOT
from toolchain.setup.update import read_lock
from toolchain.setup.uv import uv

OURS = ("ml-dtypes", "numpy", "pytest", "pytest-timeout", "pytest-xdist", "xdsl")
LOCK = ROOT / "requirements.lock"


def environment(folder: Path, requirements: tuple[str, ...], tool: Path, torch: Path | None = None) -> Path:
    """The Python of an environment in `folder` with these requirements, ours without any. `tool`: where uv is; `torch`:
    a wheel of PyTorch for CPUs, which is fetched otherwise. Raises ToolchainError."""
    if not requirements:
        return Path(sys.executable)
    home = folder / "venv"
    python = home / "bin" / "python"
    doing = "making the environment of the suites"
    if not python.is_file():
        uv(["venv", "--quiet", "--python", sys.executable, str(home)], cwd=folder, doing=doing, tool=tool)
    words = ["pip", "install", "--quiet", "--python", str(python), "--constraints", str(LOCK)]
    pytorch = ["--torch-backend", "cpu", "torch"] if torch is None else [str(torch.absolute())]
    uv([*words, *pytorch, *OURS, *requirements], cwd=folder, doing=doing, tool=tool)
    return python


def pinned(requirement: str) -> str:
    """A requirement with the version that requirements.lock gives it."""
    name = requirement.partition("[")[0]
    return f"{name} {read_lock(LOCK.read_text())[name].version}"
