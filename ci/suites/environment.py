"""The Python environment in which a suite runs: PyTorch for CPUs, the suite's requirements and the interpreter's."""

from __future__ import annotations

import sys
from pathlib import Path

from toolchain.setup.uv import uv

OURS = ("ml-dtypes", "numpy", "pytest", "pytest-timeout", "pytest-xdist", "xdsl")


def environment(folder: Path, requirements: tuple[str, ...]) -> Path:
    """The Python of an environment in `folder` with these requirements, ours without any. Raises ToolchainError."""
    if not requirements:
        return Path(sys.executable)
    home = folder / "venv"
    python = home / "bin" / "python"
    doing = "making the environment of the suites"
    if not python.is_file():
        uv(["venv", "--quiet", "--python", sys.executable, str(home)], cwd=folder, doing=doing)
    words = ["pip", "install", "--quiet", "--python", str(python), "--torch-backend", "cpu"]
    uv([*words, "torch", *OURS, *requirements], cwd=folder, doing=doing)
    return python
