"""The GPUs of this machine, and what is kept of each: its lock, and the reason why it takes no jobs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from toolchain.errors import DeviceError, UsageError

from .health import Finding, Unreadable, query, write_reason

FIELDS = ("index", "uuid", "name", "pci.bus_id")


@dataclass(frozen=True)
class Gpu:
    """One GPU. `index`: nvidia-smi's. `address`: on the PCI bus, such as 00000000:18:00.0."""

    index: str
    uuid: str
    name: str
    address: str

    def __str__(self) -> str:
        return f"gpu {self.index} ({self.name}, {self.uuid})"

    @property
    def device(self) -> str:
        """Its name for a container engine with CDI: `podman run --device NAME`."""
        return f"nvidia.com/gpu={self.uuid}"

    def lock(self, folder: Path) -> Path:
        return folder / f"tilestack-{self.uuid}.lock"

    def reason(self, state: Path) -> Path:
        return state / f"sick-{self.uuid}.json"


def gpus(seconds: int) -> list[Gpu]:
    """Those that the driver lists. Raises DeviceError if it does not answer in so many seconds."""
    try:
        rows = query("gpu", FIELDS, seconds)
    except Unreadable as error:
        raise DeviceError(f"the GPUs cannot be listed: {error}", hint="python3 -m ci.runner health") from error
    return [Gpu(*(row[name] for name in FIELDS)) for row in rows]


def find(word: str, seconds: int) -> Gpu:
    """A GPU by its index or UUID. Raises UsageError for one that is not there."""
    there = gpus(seconds)
    for gpu in there:
        if word in (gpu.index, gpu.uuid):
            return gpu
    raise UsageError(f"no GPU {word} here", hint=f"one of {', '.join(map(str, there)) or 'none'}")


def out_of_service(gpu: Gpu, state: Path) -> str:
    """Why this GPU takes no jobs until somebody brings it back; empty if it does. A file that cannot be read counts."""
    path = gpu.reason(state)
    if not path.exists():
        return ""
    try:
        written = json.loads(path.read_text())
        faults = [str(Finding(**fault)) for fault in written["faults"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        return f"{path} cannot be read: {error}"
    return f"since {written['time']}: {'; '.join(faults)}"


def take_out(gpu: Gpu, state: Path, findings: Sequence[Finding]) -> None:
    """Write why it takes no more jobs. Raises UsageError."""
    try:
        write_reason(gpu.reason(state), findings)
    except OSError as error:
        what = f"{gpu} is sick, and {gpu.reason(state)} cannot say so: {error.strerror}"
        raise UsageError(what, hint="--state names a folder of this user") from error
