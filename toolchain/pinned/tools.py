"""The external tools: found in the toolchain, checked against their pins, and run in a fixed environment."""

from __future__ import annotations

import errno
import functools
import hashlib
import os
import signal
import subprocess
import sysconfig
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ..errors import ToolchainError, ToolFailed
from ..knobs import tool_environment, toolchain_dir
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
        """Runs it and returns its output. Raises ToolFailed with its stderr if its exit code is not 0, ToolchainError
        if it cannot be started.

        It gets nothing of the caller's environment, and it finds other tools only in its own folder. Its temporary
        files are in a folder of their own. However the run ends, the folder is removed and the processes that the tool
        started are ended.
        """
        command = [str(self.path), *args]
        with tempfile.TemporaryDirectory(prefix="tilestack-") as own:
            try:
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL if input is None else subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    cwd=cwd,
                    env={**tool_environment(), "TMPDIR": own, "PATH": str(self.path.parent)},
                    text=True,
                    errors="replace",
                    process_group=0,
                )
            except OSError as error:
                raise self._unstartable(error) from error
            with process, _running(process):
                out, err = process.communicate(input)
        if process.returncode:
            raise ToolFailed(command, process.returncode, err or out, version=f"{self.name} {self.version}")
        return subprocess.CompletedProcess(command, process.returncode, out, err)

    def _unstartable(self, error: OSError) -> ToolchainError:
        hints = {
            errno.EACCES: f"chmod +x {self.path}; if it is executable, its file system is mounted noexec",
            errno.ENOEXEC: "it is for another kind of machine, or damaged: tilestack doctor",
        }
        why = error.strerror or str(error)
        return ToolchainError(
            f"{self.path} ({self.name} {self.version}) cannot be started: {why}",
            hint=hints.get(error.errno or 0, "tilestack doctor"),
        )


_processes: set[subprocess.Popen[str]] = set()  # of the tools that run now


@contextmanager
def _running(process: subprocess.Popen[str]) -> Generator[None]:
    """Where this is left early, or by `stop_all`, the tool and the processes that it started end at once."""
    _processes.add(process)
    try:
        yield
    finally:
        _processes.discard(process)
        _kill(process)


def _kill(process: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError):  # all have ended
        os.killpg(process.pid, signal.SIGKILL)


def stop_all() -> None:
    """Ends the tools that run now, in whichever thread: each fails with ToolFailed."""
    for process in list(_processes):
        _kill(process)


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
    return Tool(name, paths[name], pins().wheels[pin.wheel], pin.expected(), pinned_fingerprint(name))


def pinned_fingerprint(name: str) -> str:
    """The fingerprint that the pinned tool has, from pins.toml: also where it is not installed."""
    parts = (name, *pins().tools[name].uses)
    return hashlib.sha256("".join(pins().tools[part].expected() for part in parts).encode()).hexdigest()


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
