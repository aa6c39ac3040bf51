"""Whether a process runs that a test, or what it tests, has started."""

from __future__ import annotations

import time
from pathlib import Path

MOST_S = 60.0  # that the end of a process which was killed may take to be seen, however busy the machine is


def runs(pid: int) -> bool:
    """Not a zombie: such a one has ended, and stays where nobody asks for it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def ends(pid: int) -> bool:
    """Waits for the end of a process that is killed. False if it does not come."""
    until = time.monotonic() + MOST_S
    while runs(pid) and time.monotonic() < until:
        time.sleep(0.005)
    return not runs(pid)
