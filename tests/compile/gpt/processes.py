"""Ranks that are processes, for tests."""

from __future__ import annotations

import multiprocessing
import secrets
from collections.abc import Callable

from toolchain.errors import TilestackError
from toolchain.runtime.peers import Place


def run_in_processes(count: int, run: Callable[[Place], str]) -> list[str]:
    """What each of so many processes, one a rank, says: what `run` returns, its error, or how the process ended."""
    fork = multiprocessing.get_context("fork")
    pipes = [fork.Pipe(duplex=False) for _ in range(count)]
    meeting = secrets.token_hex(8)

    def child(rank: int) -> None:
        try:
            said = run(Place(rank, count, rank, meeting))
        except (TilestackError, RuntimeError) as error:
            said = f"{type(error).__name__}: {error.args[0]}"
        pipes[rank][1].send(said)

    processes = [fork.Process(target=child, args=(rank,)) for rank in range(count)]
    for process in processes:
        process.start()
    for _, end in pipes:
        end.close()
    found: list[str] = []
    for (start, _), process in zip(pipes, processes, strict=True):
        try:
            found.append(start.recv())
        except EOFError:
            process.join()
            found.append(f"exit code {process.exitcode}")
    for process in processes:
        process.join()
    return found
