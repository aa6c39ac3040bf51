"""The owner of a container. A killed process cannot remove its containers, so the next process does.

A container outlives the process that started it. An orphan would go on writing to its mounts, into the same folders as
the next build.
"""

from __future__ import annotations

import os
from pathlib import Path

LABEL = "tilestack.owner"
_PROC = Path("/proc")


def this_process() -> str:
    """A name of this process that is unique over all machines: boot, PID namespace, PID and start time."""
    began = _began(os.getpid())
    assert began is not None
    return f"{_here()} {os.getpid()} {began}"


def is_gone(owner: str) -> bool:
    """True if a process is known to have ended; False for one of another machine or PID namespace."""
    where, _, began = owner.rpartition(" ")
    where, _, pid = where.rpartition(" ")
    if where != _here() or not pid.isdecimal():
        return False
    try:
        os.kill(int(pid), 0)  # asks, and ends nothing
    except (ProcessLookupError, OverflowError):
        return True
    except PermissionError:
        return False  # another user's, of which /proc may hide all
    return _began(int(pid)) not in (began, None)


def _here() -> str:
    boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    return f"{boot} {(_PROC / 'self/ns/pid').readlink()}"


def _began(pid: int) -> str | None:
    """When a process began, in ticks since boot (proc_pid_stat(5), field 22); None if that is not to be read."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    return stat.rpartition(")")[2].split()[19]  # the second field, in parentheses, may hold anything
