"""The external tools: found in the toolchain, checked against their pins, and run in a fixed environment."""

from __future__ import annotations

import functools
import hashlib
import subprocess
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .errors import ToolchainError, ToolFailed
from .knobs import tool_environment, toolchain_dir
from .manifest import Manifest, check_file, check_tool
from .pins import pins


@dataclass(frozen=True)
class Tool:
    """A pinned tool. `sha256`: of its own file. `fingerprint`: a hash that also covers the files that it runs or loads;
    the tool's output depends only on `fingerprint`, its input and its options."""

    name: str
    path: Path
    version: str
    sha256: str
    fingerprint: str

    def run(
        self,
        args: Sequence[str],
        *,
        input: str | None = None,  # noqa: A002, as subprocess.run has it
        cwd: Path | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Runs it and returns its output. Raises ToolFailed with its stderr if its exit code is not 0.

        Of the caller's environment it gets only TMPDIR, and it finds other tools only in its own folder.
        """
        command = [str(self.path), *args]
        done = subprocess.run(
            command,
            input=input,
            stdin=subprocess.DEVNULL if input is None else None,
            cwd=cwd,
            env={**tool_environment(), "PATH": str(self.path.parent)},
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode:
            said = done.stderr or done.stdout
            raise ToolFailed(command, done.returncode, said, version=f"{self.name} {self.version}")
        return done


@functools.cache
def tool(name: str) -> Tool:
    """The tool `name` of pins.toml. It and all files that it uses are checked.

    It comes from the toolchain folder or, without such a folder, from the running Python's packages if they are the
    pinned ones; never from PATH. Raises ToolchainError if it is missing or not the pinned one.
    """
    if name not in pins().tools:
        raise ToolchainError(f"no tool {name!r} in pins.toml", hint=f"one of {', '.join(sorted(pins().tools))}")
    pin = pins().tools[name]
    folder = toolchain_dir()
    locate = _in_toolchain if folder.exists() else _in_packages
    paths = {part: locate(part) for part in (name, *pin.uses)}
    digest = hashlib.sha256("".join(pins().tools[part].expected() for part in paths).encode()).hexdigest()
    return Tool(name, paths[name], pins().wheels[pin.wheel], pin.expected(), digest)


def _in_toolchain(name: str) -> Path:
    folder = toolchain_dir()
    return check_tool(folder, Manifest.load(folder), name)


def packaged(name: str) -> Path:
    """The path that the tool would have in the running Python's packages."""
    return Path(sysconfig.get_path("purelib")) / pins().tools[name].path


def _in_packages(name: str) -> Path:
    path = packaged(name)
    check_file(path, pins().tools[name].expected())
    return path
