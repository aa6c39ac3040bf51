"""Run the uv that stands beside the running Python."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from ..errors import ToolchainError

LINE = "python3 -m venv .venv && .venv/bin/pip install -qr bootstrap.lock"


def uv_path() -> Path:
    """uv as installed from bootstrap.lock, never one on PATH."""
    path = Path(sys.executable).parent / "uv"
    if not path.is_file():
        raise ToolchainError(f"no uv beside {sys.executable}", hint=f"run: {LINE}")
    return path


def uv(args: Sequence[str], *, cwd: Path, doing: str, keep_open: Sequence[int] = (), tool: Path | None = None) -> None:
    """Run uv, passing on its messages as they come. Raises ToolchainError with all of them if it fails.

    `keep_open`: file descriptors that uv holds open as well. `tool`: where uv is, if not beside this Python.
    """
    command = [str(tool or uv_path()), *args]
    with subprocess.Popen(command, cwd=cwd, stderr=subprocess.PIPE, text=True, pass_fds=keep_open) as process:
        assert process.stderr is not None
        lines: list[str] = []
        for line in process.stderr:
            lines.append(line)
            sys.stderr.write(line)
    if process.returncode:
        raise ToolchainError(
            f"{doing} failed\n  {' '.join(command)}\n  exited {process.returncode}, saying\n{''.join(lines).rstrip()}",
            hint="if uv could not reach the package index: check the network, or name your mirror in UV_DEFAULT_INDEX; "
            "then run the same line again",
        )
