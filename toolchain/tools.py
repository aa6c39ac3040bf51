"""The external tools: found where the toolchain has them, checked against their pins, run in a fixed environment."""

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
    """A pinned tool. `sha256` is of its own file; `fingerprint` covers the files that it runs or loads as well: what it
    writes is a function of `fingerprint`, its input and its options."""

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
        """Run it and return what it printed. Raises ToolFailed, with its stderr, if it exits other than 0.

        It sees nothing of the caller's environment but TMPDIR, and finds other tools in its own folder only.
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
    """The tool `name` of pins.toml, with all that it uses checked.

    It comes from the toolchain folder; where there is none, from the running Python's own packages, if they are the
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
    """Where the running Python's packages would have the tool."""
    return Path(sysconfig.get_path("purelib")) / pins().tools[name].path


def _in_packages(name: str) -> Path:
    path = packaged(name)
    check_file(path, pins().tools[name].expected())
    return path
