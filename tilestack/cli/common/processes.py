"""A command run by several processes of this host, one a GPU, as torchrun runs them."""

from __future__ import annotations

import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

from toolchain import knobs

PATIENCE_S = 20.0  # the most that the others take to end, once one has failed
_TICK_S = 0.05


def run_processes(words: Sequence[str], count: int) -> int:
    """Runs `tilestack` with these words in so many processes. Only the first one's output is shown, and the errors of
    all. Returns the exit code of the first that fails, once all have ended; those that do not end are killed."""
    run = secrets.token_hex(8)  # stands for a port: no other run has it
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "tilestack", *words], env=knobs.in_process_group(rank, count, run),
            stdin=subprocess.DEVNULL, stdout=None if rank == 0 else subprocess.DEVNULL,
        )
        for rank in range(count)
    ]  # fmt: skip
    try:
        return _wait(processes)
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.wait()


def _wait(processes: Sequence[subprocess.Popen[bytes]]) -> int:
    first, until = 0, 0.0  # the exit code of the first that failed, and when the others must have ended
    known: set[int] = set()
    while len(known) < len(processes) and not (first and time.monotonic() > until):
        time.sleep(_TICK_S)
        for rank, process in enumerate(processes):
            if rank in known or (code := process.poll()) is None:
                continue
            known.add(rank)
            if code < 0:
                print(f"rank {rank} was ended by {signal.Signals(-code).name}", file=sys.stderr)
            if code and not first:
                first, until = (128 - code if code < 0 else code), time.monotonic() + PATIENCE_S
    for rank in sorted({*range(len(processes))} - known):
        print(f"rank {rank} has not ended within {PATIENCE_S:g} s: killed", file=sys.stderr)
    return first
