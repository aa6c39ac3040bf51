"""One job on one GPU of this machine: lock, health, the job, health. It says so in lines of JSON on standard output.

Every `beat` seconds it writes {"alive": true}, so that whoever waits can tell a long job from a machine that hangs; its
last line has `end`, see `pool.py`. What the job writes goes to standard error. If nobody reads the lines any more, the
job is ended: then it has been planned anew elsewhere.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolchain.errors import DeviceError
from toolchain.knobs import with_one_gpu

from . import health
from .gpus import Gpu, out_of_service, take_out
from .lock import Held, end_stale, hold
from .table import Health

GRACE = 10.0  # seconds for a job that is asked to end
SETTLE = 5.0  # seconds for a driver to take back the memory of processes that have ended
NO_PROGRAM = 127  # the exit code of a shell for a program that is not there

End = Mapping[str, Any]
Say = Callable[[Mapping[str, Any]], object]


@dataclass(frozen=True)
class Place:
    """Where a GPU's lock and the reason of a sick one are kept, and how a GPU is judged. Seconds: `beat` between two
    signs of life, `settle` before a GPU that does not look well after a job is looked at again."""

    locks: Path
    state: Path
    health: Health
    beat: float = 5.0
    settle: float = 5.0


def run(place: Place, gpu: Gpu, name: str, words: Sequence[str], seconds: float, say: Say) -> None:
    """Run a command with this GPU alone, for so many seconds at most; without words only look whether a job could run.
    The last thing that is said is how it ended."""
    if why := out_of_service(gpu, place.state):
        say(_sick(gpu, "before", why))
        return
    try:
        end = _locked(place, gpu, name, words, seconds, say)
    except Held as held:
        if held.stale:
            say({"note": f"{held.args[0]}: they are ended"})
            end = _after_stale(place, gpu, name, words, seconds, say)
        else:
            end = {"end": "busy", "why": str(held.args[0])}
    say(end)


def _after_stale(place: Place, gpu: Gpu, name: str, words: Sequence[str], seconds: float, say: Say) -> End:
    """The lock once more, after an end to what is left of a lost job."""
    try:
        end_stale(gpu.lock(place.locks))
        ends = time.monotonic() + SETTLE
        while _faults(place, gpu) and time.monotonic() < ends:
            time.sleep(0.2)
        return _locked(place, gpu, name, words, seconds, say)
    except DeviceError as error:  # they do not end, or another one was quicker
        return {"end": "busy", "why": str(error.args[0])}


def _locked(place: Place, gpu: Gpu, name: str, words: Sequence[str], seconds: float, say: Say) -> End:
    with hold(gpu.lock(place.locks), name) as (descriptor, before):
        if before:
            say({"note": f"process {before.pid} with {before.job} ended without giving {gpu} back"})
        if sick := _faults(place, gpu):
            take_out(gpu, place.state, sick)
            return _sick(gpu, "before", "; ".join(map(str, sick)))
        if not words:
            return {"end": "well"}
        code = _child(place, gpu, words, seconds, descriptor, say)
        if _faults(place, gpu):  # a driver needs a moment to take the memory of an ended program back
            time.sleep(place.settle)
            if sick := _faults(place, gpu):
                take_out(gpu, place.state, sick)
                return _sick(gpu, "after", "; ".join(map(str, sick)))
        return {"end": "late", "why": f"ended after {seconds:g} s"} if code is None else {"end": "done", "code": code}


def _faults(place: Place, gpu: Gpu) -> list[health.Finding]:
    return health.faults(health.check(place.health, place.state, gpu.uuid, gpu.address))


def _sick(gpu: Gpu, when: str, why: str) -> End:
    return {"end": "sick", "when": when, "why": why, "back": f"repair it, then python3 -m ci.runner back {gpu.uuid}"}


def _child(place: Place, gpu: Gpu, words: Sequence[str], seconds: float, descriptor: int, say: Say) -> int | None:
    """The command's exit code; None if it took too long. `{gpu}` in its words is the GPU's name for a container."""
    words = [word.replace("{gpu}", gpu.device) for word in words]
    try:
        started = subprocess.Popen(
            words, env=with_one_gpu(gpu.uuid), stdin=subprocess.DEVNULL, stdout=2, start_new_session=True,
            pass_fds=[descriptor],
        )  # fmt: skip
    except OSError as error:
        say({"note": f"{words[0]} cannot be started: {error.strerror}"})
        return NO_PROGRAM
    ends = time.monotonic() + seconds
    try:
        while (left := ends - time.monotonic()) > 0:
            say({"alive": True})
            with suppress(subprocess.TimeoutExpired):
                return started.wait(timeout=min(place.beat, left))
        return None
    finally:
        _end(started)


def _end(started: subprocess.Popen[bytes]) -> None:
    """Ends the job with all that it started and left running."""
    if started.poll() is None:
        started.terminate()
        with suppress(subprocess.TimeoutExpired):  # it is killed below
            started.wait(timeout=GRACE)
    with suppress(ProcessLookupError):
        os.killpg(started.pid, signal.SIGKILL)
    started.wait()
