"""A GPU belongs to one job: a lock on a file, which names who holds it.

The kernel gives a lock back when the last process that has the file open ends, however it ends. The job's processes
have it open too, so a job whose supervisor was killed still holds its GPU: a stale holder, which `end_stale` ends.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from toolchain.errors import DeviceError, UsageError

STAT_SESSION, STAT_STARTED = 3, 19  # fields of /proc/PID/stat behind the name, from 0: proc_pid_stat(5)
WAIT = 10.0  # seconds for a killed process to be gone


@dataclass(frozen=True)
class Holder:
    """Who wrote that it has the lock. `started`: of its process, in the kernel's ticks since boot, because numbers of
    processes are used again. `job`: in words."""

    pid: int
    started: int
    job: str

    @property
    def alive(self) -> bool:
        return _stat(self.pid, STAT_STARTED) == self.started


class Held(DeviceError):
    """The lock belongs to another one. `stale`: whose supervisor is gone."""

    def __init__(self, path: Path, holder: Holder | None) -> None:
        self.stale = holder is not None and not holder.alive
        who = f"process {holder.pid} with {holder.job}" if holder else "a process that has not said who it is"
        gone = f", which is gone; processes of its job are left: {_listed(path)}" if self.stale else ""
        super().__init__(f"{path} is held by {who}{gone}", hint="wait for its end")
        self.holder = holder


@contextmanager
def hold(path: Path, job: str) -> Generator[tuple[int, Holder | None]]:
    """Have the lock in here: its file descriptor, to be passed to the job's process, and who had it before and ended
    without giving it back. Raises Held, UsageError if there can be no such file."""
    descriptor = _open(path)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Held(path, read(path)) from error
        before = read(path)
        mine = Holder(os.getpid(), _stat(os.getpid(), STAT_STARTED) or 0, job)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(asdict(mine)).encode(), 0)
        try:
            yield descriptor, before
        finally:
            os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def read(path: Path) -> Holder | None:
    """Who holds the lock, or held it and did not give it back; None if the file does not say."""
    try:
        return Holder(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):  # nobody, or one that is just writing
        return None


def end_stale(path: Path) -> list[int]:
    """End the processes of a job whose supervisor is gone, with their sessions; their numbers. Raises DeviceError if
    one cannot be ended."""
    victims = {pid: _stat(pid, STAT_STARTED) for pid in _holding(path)}
    for pid in victims:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
        except PermissionError as error:
            raise DeviceError(f"process {pid} of a job that is lost cannot be ended", hint=f"kill {pid}") from error
    ends = time.monotonic() + WAIT
    while left := _holding(path) | {
        pid for pid, started in victims.items() if started is not None and _stat(pid, STAT_STARTED) == started
    }:
        if time.monotonic() > ends:
            raise DeviceError(f"processes {sorted(left)} of a lost job do not end", hint="the driver may hang: boot")
        time.sleep(0.02)
    return sorted(victims)


def _open(path: Path) -> int:
    """Not created where it is: in a folder that anybody may write to, Linux refuses that for a file of another user."""
    try:
        with suppress(FileNotFoundError):
            return os.open(path, os.O_RDWR | os.O_CLOEXEC)
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_CREAT, 0o666)
        with suppress(PermissionError):  # made by another user in between
            os.fchmod(descriptor, 0o666)
        return descriptor
    except OSError as error:
        raise UsageError(
            f"no lock {path}: {error.strerror}", hint="--locks names a folder that all may write"
        ) from error


def _holding(path: Path) -> set[int]:
    """Processes that have the lock, and all of their sessions; not this one, nor its session."""
    own, wanted = os.getsid(0), path.resolve()
    opened = {pid for pid in _processes() if wanted in _locks(pid)}
    sessions = {_stat(pid, STAT_SESSION) for pid in opened} - {own, None}
    return {pid for pid in _processes() if pid in opened or _stat(pid, STAT_SESSION) in sessions} - {os.getpid()}


def _listed(path: Path) -> str:
    return ", ".join(map(str, sorted(_holding(path)))) or "none that this user may see"


def _processes() -> Iterator[int]:
    return (int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal())


def _locks(pid: int) -> set[Path]:
    """The files on which a process has a lock. One that only tries to get it has the file open too, so the kernel is
    asked for the lock itself."""
    found: set[Path] = set()
    with suppress(OSError):  # ended, or of another user
        for path in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                if "FLOCK" in Path(f"/proc/{pid}/fdinfo/{path.name}").read_text():
                    found.add(path.readlink())
    return found


def _stat(pid: int, field: int) -> int | None:
    """A field of a process that is there and no zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else int(fields[field])
