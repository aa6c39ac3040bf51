"""Reads the GPU's clocks, temperature, power and throttle reasons with `nvidia-smi`. It never changes a setting."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping

from .driver import check, load

# Our names of nvidia-smi's fields; clocks_throttle_reasons is what drivers before 535 call clocks_event_reasons.
FIELDS = {
    "sm_clock_mhz": ("clocks.sm",),
    "memory_clock_mhz": ("clocks.mem",),
    "temperature_c": ("temperature.gpu",),
    "power_w": ("power.draw",),
    "throttle": ("clocks_event_reasons.active", "clocks_throttle_reasons.active"),
}
TIMEOUT_S = 20
# The bits of `throttle`, as NVML's nvmlClocksEventReasons numbers them.
REASONS = {
    0x1: "idle", 0x2: "application clocks", 0x4: "power cap", 0x8: "hardware slowdown", 0x10: "sync boost",
    0x20: "thermal (software)", 0x40: "thermal (hardware)", 0x80: "power brake", 0x100: "display clocks",
}  # fmt: skip


def query(fields: Iterable[str], gpu: str) -> list[str] | None:
    """The values of some fields; None if there is no nvidia-smi, or if it does not know one of them."""
    command = ["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits", "-i", gpu]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return [value.strip() for value in done.stdout.strip().split(",")] if done.returncode == 0 else None


def name_of(index: int) -> str:
    """The name of the driver's GPU `index` for nvidia-smi, which numbers GPUs differently: its PCI address, or the
    index where nvidia-smi does not know the address. Raises DeviceError."""
    api = load()
    device = check("cuDeviceGet", api.cuDeviceGet(index))
    address: bytes = check("cuDeviceGetPCIBusId", api.cuDeviceGetPCIBusId(32, device))
    name = address.split(b"\0", 1)[0].decode()
    return name if query(["name"], name) else str(index)


def read(gpu: str = "0") -> Mapping[str, str]:
    """All fields that can be read now; empty if none can. `gpu`: its index or UUID."""
    for generation in (0, -1):
        values = query([names[generation] for names in FIELDS.values()], gpu)
        if values is not None and len(values) == len(FIELDS):
            found = dict(zip(FIELDS, values, strict=True))
            return {**found, "throttle": reasons(found["throttle"])}
    return {}


def reasons(bits: str) -> str:
    """The names of the throttle reasons in nvidia-smi's hexadecimal number."""
    try:
        number = int(bits, 16)
    except ValueError:
        return bits
    known = [name for bit, name in REASONS.items() if number & bit]
    rest = number & ~sum(REASONS)
    return ", ".join([*known, *([f"0x{rest:x}"] if rest else [])]) or "none"


def clock_range(readings: Iterable[Mapping[str, str]]) -> list[int] | None:
    """The lowest and highest SM clock among readings, MHz."""
    clocks = [int(r["sm_clock_mhz"]) for r in readings if r.get("sm_clock_mhz", "").isdecimal()]
    return [min(clocks), max(clocks)] if clocks else None
