"""A service for each GPU of a machine with several: a process of its own, so that one that fails ends no other.

The token goes to each on its standard input. One whose GPU is sick is started again when somebody brings that back.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from toolchain.errors import DeviceError

from .gpus import Gpu

LOOKS = 15.0  # seconds between two looks at the services


@dataclass
class _Service:
    gpu: Gpu
    process: subprocess.Popen[bytes] | None = None
    code: int | None = None  # the last one


def run(
    there: Sequence[Gpu], command: Callable[[Gpu], Sequence[str]], token: str, state: Path,
    say: Callable[[str], object], looks: float = LOOKS,
) -> int:  # fmt: skip
    """Run the services until all have ended for another reason than a sick GPU; the highest of their exit codes.
    `command`: of a GPU's service. On the way out they are asked to end."""
    services = [_Service(gpu) for gpu in there]
    try:
        while True:
            for service in services:
                _look(service, command, token, state, say)
            if all(service.process is None and service.code != DeviceError.exit_code for service in services):
                return max(service.code or 0 for service in services)
            time.sleep(looks)
    finally:
        running = [service.process for service in services if service.process]
        for process in running:
            process.terminate()
        for process in running:
            process.wait()


def _look(
    service: _Service, command: Callable[[Gpu], Sequence[str]], token: str, state: Path, say: Callable[[str], object]
) -> None:
    if service.process is not None:
        service.code = service.process.poll()
        if service.code is None:
            return
        service.process = None
        say(f"{service.gpu}: its service ended with {service.code}")
    sick = service.code == DeviceError.exit_code
    if service.code is None or (sick and not service.gpu.reason(state).exists()):
        service.process = subprocess.Popen(command(service.gpu), stdin=subprocess.PIPE)
        assert service.process.stdin is not None
        with suppress(BrokenPipeError), service.process.stdin as line:  # one that has ended already: its code says why
            line.write(f"{token}\n".encode())
