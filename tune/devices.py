"""Reads `tune/devices.toml`: the published rates and resources of a GPU of each target that is predicted for."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from toolchain.contract.targets import targets
from toolchain.errors import UsageError
from toolchain.tables import Check, check_keys, header, is_table, natural, one_of, place, positive, read_table, text
from toolchain.tables import some_texts as texts

DEVICES = Path(__file__).with_suffix(".toml")
KEYS: Mapping[str, Check] = {
    "gpu": text, "sms": positive, "mhz": positive, "tflops": positive, "gbytes": positive, "l2_bytes": positive,
    "shared": positive, "shared_block": positive, "f32": positive, "operands": one_of("warp", "group", "block"),
    "copying": natural, "from": texts,
}  # fmt: skip
REGISTERS = 65536  # 32-bit registers of a multiprocessor, of each compute capability from 8.0 on
WARP = 32


@dataclass(frozen=True)
class Device:
    """A GPU as NVIDIA publishes it. The head of devices.toml explains the fields."""

    gpu: str
    sms: int
    mhz: int
    tflops: float
    gbytes: float
    l2_bytes: int
    shared: int
    shared_block: int
    f32: int
    operands: str
    copying: int

    @property
    def flops(self) -> float:
        """Operations of 16-bit products, that a multiprocessor does in a clock: two for a product and its sum."""
        return self.tflops * 1e6 / self.sms / self.mhz

    @property
    def rates(self) -> str:
        """The numbers that a prediction rests on, for people."""
        return (
            f"{self.sms} multiprocessors, {self.mhz} MHz, {self.tflops:g} TFLOP/s in 16 bits, {self.gbytes:g} GB/s, "
            f"{self.shared // 1024} KiB of shared memory"
        )

    def readers(self, warps: int) -> int:
        """How many of a block's `warps` read an operand from shared memory on their own."""
        return {"warp": warps, "group": -(-warps // 4), "block": 1}[self.operands]

    def holds(self, registers: int, shared: int, warps: int, blocks: int) -> bool:
        """True if a multiprocessor has room for so many blocks, each of `warps` workers with so many registers a thread
        and bytes of shared memory. Registers of the warps that only copy are few and not counted."""
        enough = blocks * registers * warps * WARP <= REGISTERS
        return enough and shared <= self.shared_block and blocks * (shared + 1024) <= self.shared + 1024


@functools.cache
def devices() -> Mapping[str, Device]:
    """The devices by target. Raises UsageError naming the file and line of a row that is wrong."""
    found: dict[str, Device] = {}
    for name, row in read_table(DEVICES).items():
        where = f"{place(DEVICES, header(name))}: {name}"
        if wanted := is_table(row):
            raise UsageError(f"{where} is {row!r}, not {wanted}")
        if name not in targets():
            raise UsageError(f"{where}: there is no such target", hint=f"one of {', '.join(targets())}")
        check_keys(row, KEYS, where)
        found[name] = Device(**{key: value for key, value in row.items() if key != "from"})
    return found


def device_of(target: str) -> Device:
    """The device that is predicted for. Raises UsageError for a target without one."""
    if target not in devices():
        raise UsageError(
            f"the rates of no GPU of {target} are in {DEVICES.name}",
            hint=f"add a row to it, with where the numbers are published; it has {', '.join(devices())}",
        )
    return devices()[target]
