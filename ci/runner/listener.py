"""GitHub's runner as a process: its listener, what the exit codes mean, and an end to every wait for it.

`run.sh`, which comes with it, is not used: it ends with 0 whatever the listener gave, and starts that again for ever.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from toolchain.errors import ToolchainError
from toolchain.tables import check_keys, natural, read_table

TABLE = Path(__file__).with_name("runner.toml")
HOOK = "ACTIONS_RUNNER_HOOK_JOB_STARTED"
TOO_OLD = (
    "ACTIONS_RUNNER_RETURN_VERSION_DEPRECATED_EXIT_CODE"  # with it a version that GitHub refuses ends with 7, not 1
)
LISTENER = "bin/Runner.Listener"
UPDATED = "update.finished"  # what an update leaves, in the runner's folder
RAISE = "raise version, url and sha256 in ci/runner/runner.toml, then python3 -m ci.runner setup"


@dataclass(frozen=True)
class Waits:
    """How long the service waits, in seconds, and `tries`; runner.toml explains them."""

    quick: float
    pause: float
    longest: float
    ask: float
    gone: float
    idle: float
    job: float
    update: float
    tries: int

    @classmethod
    def load(cls, path: Path = TABLE) -> Waits:
        """Raises UsageError."""
        table = read_table(path)["waits"]
        check_keys(table, dict.fromkeys(cls.__dataclass_fields__, natural), f"{path}: [waits]")
        return cls(**table)


@dataclass(frozen=True)
class End:
    """How a runner ended, and what follows: `done` a job; `idle` no job came; `again` the same one is started again;
    `updated` so too, after its update; `anew` another one is registered; `stop` the service ends."""

    then: Literal["done", "idle", "again", "updated", "anew", "stop"]
    means: str
    hint: str = "its words are above"


# Constants.Runner.ReturnCode in src/Runner.Common/Constants.cs of actions/runner 2.336.0.
ENDS = {
    0: End("done", "has ended after its job"),
    1: End("stop", "was terminated by an error (1)", "its words are above; does the repository still take runners?"),
    2: End("again", "met an error that may pass (2)"),
    3: End("updated", "updates itself (3)"),
    4: End("updated", "updates itself before its job (4)"),
    5: End("anew", "found another one in its session (5)"),
    6: End("again", "was given another configuration (6)"),
    7: End("stop", "is too old for GitHub (7)", RAISE),
}


def end_of(code: int) -> End:
    """The meaning of an exit code. A negative code is a signal, as in `subprocess`."""
    if code < 0:
        return End("anew", f"was killed by {signal.Signals(-code).name}", "is there enough memory?")
    return ENDS.get(code) or End("stop", f"ended with {code}, which its source does not explain", RAISE)


class Watch:
    """Says when a runner has been waited for long enough. `is_busy`: whether it has a job, None if GitHub knows it no
    more; raises ToolchainError if GitHub does not answer."""

    def __init__(
        self, is_busy: Callable[[], bool | None], waits: Waits, say: Callable[[str], object],
        now: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._is_busy, self._waits, self._say, self._now = is_busy, waits, say, now
        self._since = now()
        self._busy: bool | None = False

    def over(self) -> End | None:
        """How the wait ends, or None to go on."""
        try:
            busy = self._is_busy()
        except ToolchainError as error:  # a job may go on without GitHub; what is known holds, and its time runs
            self._say(f"GitHub was asked for the runner: {error.args[0]}")
            busy = self._busy
        if busy != self._busy:
            self._busy, self._since = busy, self._now()
        seconds = self._now() - self._since
        if busy is None:
            gone = End("anew", f"went on for {seconds:.0f} s after GitHub had removed it, and was ended")
            return gone if seconds >= self._waits.gone else None
        if busy:
            late = End("anew", f"had a job for {seconds:.0f} s, and was ended", "raise `job` in ci/runner/runner.toml")
            return late if seconds >= self._waits.job else None
        return End("idle", f"got no job in {seconds:.0f} s") if seconds >= self._waits.idle else None


@dataclass(frozen=True)
class Listener:
    """An unpacked runner. `environment`: all that it sees of ours. `user`: whose process it is; None for ours. `lock`:
    the file descriptor of its GPU's lock, which it has until its last process ends."""

    folder: Path
    environment: dict[str, str]
    user: pwd.struct_passwd | None = None
    lock: int | None = None

    def job(self, configuration: str, watch: Watch, waits: Waits, say: Callable[[str], object]) -> End:
        """Start it, and again where it asks for that, until it has had a job or is to have none."""
        end = ENDS[2]
        for _ in range(waits.tries):
            end = self._run(configuration, watch, waits.ask)
            if end.then == "updated":
                say(f"GitHub's runner {end.means}")
                if not self._updated(waits.update):
                    return End("anew", f"did not end its update in {waits.update:g} s", RAISE)
            elif end.then == "again":
                say(f"GitHub's runner {end.means}: it is started again")
                time.sleep(waits.pause)
            else:
                return end
        return replace(end, then="anew", means=f"{end.means}, {waits.tries} times")

    def _run(self, configuration: str, watch: Watch, ask: float) -> End:
        started = subprocess.Popen(
            [str(self.folder / LISTENER), "run", "--jitconfig", configuration],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=[] if self.lock is None else [self.lock],
            user=self.user.pw_uid if self.user else None,
            group=self.user.pw_gid if self.user else None,
            extra_groups=os.getgrouplist(self.user.pw_name, self.user.pw_gid) if self.user else None,
        )
        kept = False
        try:
            while True:
                try:
                    end = end_of(started.wait(timeout=ask))
                except subprocess.TimeoutExpired:
                    if late := watch.over():
                        return late
                else:
                    kept = end.then == "updated"  # its update goes on in the same session
                    return end
        finally:
            if not kept:
                _end(started)

    def _updated(self, seconds: float) -> bool:
        """Whether an update is finished within these seconds."""
        ends = time.monotonic() + seconds
        while not (self.folder / UPDATED).exists():
            if time.monotonic() >= ends:
                return False
            time.sleep(min(1.0, seconds / 10))
        (self.folder / UPDATED).unlink()
        return True


@contextmanager
def unpacked(
    archive: Path, folder: Path, hook: Path, name: str, gpu: str = "", lock: int | None = None
) -> Generator[Listener]:
    """A fresh runner of the user `name`; with all that its job left it is gone afterwards. `gpu`: the UUID of the only
    one that its jobs see; empty for all. `lock`: the file descriptor of that one's lock."""
    if folder.exists():  # of a service that was killed
        shutil.rmtree(folder)
    user = pwd.getpwnam(name)
    folder.mkdir(parents=True)
    try:
        subprocess.run(["tar", "--no-same-owner", "-xzf", str(archive), "-C", str(folder)], check=True)
        (folder / ".env").write_text(f"{HOOK}={hook}\n" + f"CUDA_VISIBLE_DEVICES={gpu}\n" * bool(gpu))
        root = os.getuid() == 0
        for path in (folder, *folder.rglob("*")) if root else ():
            os.chown(path, user.pw_uid, user.pw_gid, follow_symlinks=False)
        environment = {"HOME": str(folder), "USER": user.pw_name, "PATH": os.defpath, TOO_OLD: "1"}
        yield Listener(folder, environment, user if root else None, lock)
    finally:
        shutil.rmtree(folder)


def _end(started: subprocess.Popen[bytes]) -> None:
    """Ends what the job left running: it has a session of its own."""
    if started.poll() is None:
        started.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):  # it is killed below
            started.wait(timeout=60)
    try:
        os.killpg(started.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    started.wait()
