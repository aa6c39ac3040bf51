"""Every error a user can meet, each with its own exit code.

An error says what happened, where, which tool and version, and what to do next. `hint` is that last part: the command
line prints it on a line of its own.
"""

from __future__ import annotations

import functools
import shlex
from collections.abc import Sequence
from typing import Any


class TilestackError(Exception):
    """Base of all our errors. `exit_code` is what the `tilestack` command ends with."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint

    def __str__(self) -> str:
        message = super().__str__()
        return f"{message}\n  next: {self.hint}" if self.hint else message


class UsageError(TilestackError):
    """Bad input from the user: a wrong name, value, shape or file."""

    exit_code = 2


class SourceError(TilestackError):
    """A kernel source that does not parse, verify or export. The message starts with `file:line:col`."""

    exit_code = 3


class BytecodeError(TilestackError):
    """Tile IR bytecode that is damaged, truncated or of a version we do not read."""

    exit_code = 3


class ToolchainError(TilestackError):
    """A tool of the toolchain is missing, damaged or of the wrong version."""

    exit_code = 4


class ToolFailed(ToolchainError):
    """A tool ran and failed. The error keeps the command and its stderr. `why`: the parts that do not fit, if known."""

    def __init__(
        self,
        command: Sequence[str],
        returncode: int,
        stderr: str,
        *,
        version: str,
        hint: str | None = None,
        why: str = "",
    ):
        self.command, self.returncode, self.stderr, self.version = list(command), returncode, stderr, version
        self.why = why
        shown = shlex.join(self.command)
        reason = f"{why}\n" if why else ""
        super().__init__(f"{reason}{shown}\n  exited {returncode} ({version})\n{stderr.strip()}", hint=hint)

    def because(self, why: str, hint: str) -> ToolFailed:
        """The same failure with its reason."""
        return ToolFailed(self.command, self.returncode, self.stderr, version=self.version, hint=hint, why=why)

    def __reduce__(self) -> tuple[Any, ...]:  # lets pickle pass it from one process to another
        rebuild = functools.partial(ToolFailed, version=self.version, hint=self.hint, why=self.why)
        return rebuild, (self.command, self.returncode, self.stderr)


class BundleError(TilestackError):
    """A bundle that is missing a file, damaged, or lacks the entry, target or dtype that was asked for."""

    exit_code = 5


class LaunchError(TilestackError):
    """Arguments that do not fit an entry: count, dtype, rank, shape, strides, alignment or device."""

    exit_code = 6


class NoRoom(LaunchError):
    """A kernel whose blocks must all run at the same time, on a GPU that does not hold them."""


class NotInterpretable(LaunchError):
    """A launch on the CPU interpreter of an entry that has no Tile IR bytecode."""


class DeviceError(TilestackError):
    """The base of all errors on the GPU side. `code`: the driver's CUresult, None where no call of it failed."""

    exit_code = 7
    code: int | None = None


class NoGPU(DeviceError):
    """No GPU, or no driver."""


class DriverTooOld(DeviceError):
    """The driver is too old for the cubins that this toolchain compiles."""


class WrongTarget(DeviceError):
    """The bundle has no cubin that this GPU can run."""


class OutOfMemory(DeviceError):
    """The device has no room for an allocation."""


class SanitizerError(TilestackError):
    """The interpreter trapped undefined behaviour in a kernel: out-of-bounds, a race, a broken assumption.

    `place`: file, line and column of the operation's source, if they are known."""

    exit_code = 8
    place: tuple[str, int, int] | None = None


class ConformanceError(TilestackError):
    """A result is outside its bound."""

    exit_code = 9


class PolicyError(TilestackError):
    """A licence that nobody has reviewed, or an artefact with files that may not be distributed."""

    exit_code = 10
