"""The NVIDIA driver, the GPUs, and how a process and a container reach them."""

from __future__ import annotations

import ctypes
import os
import re
from dataclasses import dataclass
from pathlib import Path

from ..contract.targets import targets
from ..errors import DeviceError
from ..pinned.compatibility import table
from .check import Check

CPU = "the CPU interpreter runs everything, slowly"
DRIVER = Path("/proc/driver/nvidia/version")
CONTROL = Path("/dev/nvidiactl")
LIBRARY = "libcuda.so.1"
_VERSION = re.compile(r"\b\d{3,}\.\d+(\.\d+)?\b")
_SAID = {
    100: ("the driver finds no GPU", "nvidia-smi -L; in a container: start it with all GPUs"),
    802: ("the GPUs' NVSwitch fabric is not ready", "sudo systemctl restart nvidia-fabricmanager"),
    803: ("the driver's library and its kernel module are of different versions", "sudo reboot"),
    804: ("this GPU has no forward compatibility, and the library is newer than the kernel module", "sudo reboot"),
    999: ("the driver fails for a reason it does not know", "sudo dmesg | grep -i xid"),
}


@dataclass(frozen=True)
class Library:
    """What libcuda answers: the CUDA version that it offers, and the status of cuInit."""

    cuda: tuple[int, int]
    status: int


def kernel_module() -> str | None:
    """The version of the loaded kernel module, or the line that holds it; None without one."""
    try:
        first, *_ = DRIVER.read_text().splitlines()
    except FileNotFoundError:
        return None
    version = _VERSION.search(first)
    return version[0] if version else first


def library() -> Library | None:
    """Asks libcuda, as far as it can be loaded. It needs no package."""
    try:
        cuda = ctypes.CDLL(LIBRARY)
    except OSError:
        return None
    version = ctypes.c_int()
    cuda.cuDriverGetVersion(ctypes.byref(version))
    return Library((version.value // 1000, version.value % 1000 // 10), int(cuda.cuInit(0)))


def driver(module: str | None, found: Library | None) -> list[Check]:
    """The kernel module, and the library that belongs to it."""
    if module is None and found is None:
        return [Check("driver", "note", f"no NVIDIA driver ({DRIVER} is missing)", CPU)]
    minimum = table().min_driver(13).minimum
    install = f"install NVIDIA driver {minimum} or newer"
    if module is None:
        return [
            Check("driver", "bad", f"{LIBRARY} is here, but no kernel module is loaded", "sudo modprobe nvidia", True)
        ]
    if (release := re.match(r"\d+", module)) and int(release[0]) < minimum:
        said = f"{module}, older than {minimum}, which cubins of CUDA 13 need"
        return [Check("driver", "bad", said, install, True)]
    lines = [Check("driver", "ok", module, device=True)]
    if found is None:
        give = "in a container: give it the GPUs (--gpus all); else install the driver's library, libcuda1"
        lines.append(Check("libcuda", "bad", f"driver {module} is loaded, but {LIBRARY} cannot be", give, True))
    elif found.status:
        what, advice = _SAID.get(found.status, (f"cuInit fails with {found.status}", "nvidia-smi"))
        lines.append(Check("libcuda", "bad", f"{what} (cuInit: {found.status})", advice, True))
    else:
        lines.append(Check("libcuda", "ok", f"CUDA {found.cuda[0]}.{found.cuda[1]}", device=True))
    if CONTROL.exists() and not os.access(CONTROL, os.R_OK | os.W_OK):
        advice = f"sudo usermod -aG {CONTROL.group()} $USER, then log in again"
        lines.append(Check("gpu access", "bad", f"{CONTROL} may not be opened by this user", advice, True))
    return lines


def gpus() -> list[Check]:
    """The GPUs and the targets whose cubins they run."""
    try:
        from ..runtime import gpus as list_gpus
    except ImportError as error:  # numpy or ml_dtypes: the lines above say what to do
        return [Check("gpu", "note", f"cannot be listed: {error}")]
    try:
        found = list_gpus()
    except DeviceError as error:
        return [Check("gpu", "bad", str(error.args[0]), error.hint or "", True)]
    if not found:
        return [Check("gpu", "note", "none", CPU)]
    lines: list[Check] = []
    for gpu in found:
        served = [target.name for target in targets().values() if target.runs_on(gpu.compute_capability)]
        said = f"{gpu.name}, {gpu.target}, {gpu.sms} multiprocessors, {gpu.memory / 2**30:.0f} GiB"
        name = f"cuda:{gpu.index}"
        if served:
            lines.append(Check(name, "ok", f"{said}; runs cubins for {' '.join(served)}", device=True))
        else:
            lines.append(Check(name, "note", f"{said}; none of our targets fits it", CPU))
    return lines
