"""Artifact: the code that a kernel source hands to the pipeline, and the facts about it that a launch needs.

There are two kinds: Tile IR bytecode, which tileiras compiles and the CPU interpreter runs, and PTX, which ptxas
compiles and which only a GPU runs. The bundle stores the form beside the code, so that a launch needs no source.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from .entry import CALLING_CONVENTION
from .errors import UsageError

Kind = Literal["tile-ir", "ptx"]
SUFFIXES: Mapping[Kind, str] = {"tile-ir": "tilebc", "ptx": "ptx"}  # of the files in a bundle
WAITS_SINCE = (13, 4)  # from this bytecode version on, every Tile IR kernel waits for the previous launch
_VERSION = r"\d+\.\d+"
MAX_THREADS = 1024  # of a block, on every GPU
MAX_SHARED = 227 * 1024  # bytes of a block, on the GPU that has the most


@dataclass(frozen=True)
class TensorMap:
    """A descriptor of an array for TMA (CUtensorMap) that a launch makes and passes to the kernel. `array`: an op's
    parameter. `box`: what one copy moves, in elements along each of the array's dimensions. `swizzle`,
    `l2_promotion`: in bytes, 0 for none."""

    array: str
    box: tuple[int, ...]
    swizzle: int = 0
    l2_promotion: int = 256


@dataclass(frozen=True)
class Form:
    """How an entry's code is to be compiled and launched.

    `version`: the bytecode version; empty for PTX, which states its own. `convention`: how arguments are passed.
    `block`: threads in x, y and z; (1, 1, 1) for Tile IR, whose compiler chooses them. `shared_bytes`: dynamic shared
    memory of a block. `waits`: the kernel itself waits for the previous launch (see `tileir/passes/overlap.py`), so it
    may begin before that launch ends.
    """

    kind: Kind = "tile-ir"
    version: str = ""
    convention: str = CALLING_CONVENTION
    block: tuple[int, int, int] = (1, 1, 1)
    shared_bytes: int = 0
    waits: bool = False

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise UsageError(f"no artifact of kind {self.kind!r}", hint=f"one of {', '.join(get_args(Kind))}")
        if (self.kind == "tile-ir") != bool(re.fullmatch(_VERSION, self.version)):
            raise UsageError(
                f"{self.version!r} is not a version of {self.kind}: bytecode has a version such as 13.4, PTX has none"
            )
        if self.convention != CALLING_CONVENTION:
            raise UsageError(f"no calling convention {self.convention!r}", hint=f"launches use {CALLING_CONVENTION}")
        x, y, z = self.block
        if not (min(self.block) >= 1 and x * y * z <= MAX_THREADS and z <= 64):
            raise UsageError(f"no GPU runs a block of {x} x {y} x {z} threads")
        if self.kind == "tile-ir" and (self.block, self.shared_bytes) != ((1, 1, 1), 0):
            raise UsageError("Tile IR needs block (1, 1, 1) and no dynamic shared memory: its compiler chooses both")
        if not 0 <= self.shared_bytes <= MAX_SHARED:
            raise UsageError(f"{self.shared_bytes} bytes of shared memory: a block has 0 to {MAX_SHARED}")

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Form:
        """The form in a row of a manifest. Raises UsageError, KeyError, TypeError or ValueError if it is not one."""
        x, y, z = row["block"]
        if not all(type(number) is int for number in (x, y, z, row["shared_bytes"])):
            raise TypeError("block and shared_bytes are integers")
        if row["version"] and not re.fullmatch(_VERSION, row["version"]):
            raise ValueError(f"{row['version']!r} is not a version of the bytecode")
        return cls(row["kind"], row["version"], row["convention"], (x, y, z), row["shared_bytes"], row["waits"] is True)


@dataclass(frozen=True)
class Artifact:
    """The code of an entry, as its source made it."""

    payload: bytes
    form: Form


def tile_ir(bytecode: bytes, version: str) -> Artifact:
    """Tile IR bytecode of a version such as "13.4"."""
    if not re.fullmatch(_VERSION, version):
        raise UsageError(f"{version!r} is not a bytecode version", hint="write it as 13.4")
    waits = tuple(map(int, version.split("."))) >= WAITS_SINCE
    return Artifact(bytecode, Form("tile-ir", version, waits=waits))


def ptx(text: str, *, block: tuple[int, int, int], shared_bytes: int = 0, waits: bool = False) -> Artifact:
    """PTX that has a `.visible .entry` named as the entry's symbol."""
    return Artifact(text.encode(), Form("ptx", block=block, shared_bytes=shared_bytes, waits=waits))


def dump(artifact: Artifact) -> bytes:
    """The bytes of an artifact in the compile cache: a line of JSON, then the code."""
    return json.dumps(artifact.form.to_json()).encode() + b"\n" + artifact.payload


def load(dumped: bytes) -> Artifact:
    """The artifact that `dump` wrote."""
    head, _, payload = dumped.partition(b"\n")
    return Artifact(payload, Form.from_json(json.loads(head)))
