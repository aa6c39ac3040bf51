"""Artifact: the code that a kernel source hands to the pipeline, and the facts about it that a launch needs.

There are two kinds: Tile IR bytecode, which tileiras compiles and the CPU interpreter runs, and PTX, which ptxas
compiles and which only a GPU runs. The bundle stores the form beside the code, so that a launch needs no source.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from ..errors import LaunchError, UsageError
from .entry import CALLING_CONVENTION, EntrySpec

Kind = Literal["tile-ir", "ptx"]
SUFFIXES: Mapping[Kind, str] = {"tile-ir": "tilebc", "ptx": "ptx"}  # of the files in a bundle
WAITS_SINCE = (13, 4)  # from this bytecode version on, every Tile IR kernel waits for the previous launch
_VERSION = r"\d+\.\d+"
MAX_THREADS = 1024  # of a block, on every GPU
MAX_SHARED = 227 * 1024  # bytes of a block, on the GPU that has the most
MAX_CLUSTER = 8  # blocks of a cluster on every GPU that has them


# How arguments are passed. The second: as the first, and behind them a CUtensorMap for each of the form's `maps`, as a
# `__grid_constant__` parameter of 128 bytes.
TENSOR_MAPS = "cutile_python_v2_tensor_maps"
CONVENTIONS = (CALLING_CONVENTION, TENSOR_MAPS)


@dataclass(frozen=True)
class TensorMap:
    """A descriptor of an array for TMA (CUtensorMap) that a launch makes and passes to the kernel. `array`: an op's
    parameter. `box`: what one copy moves, in elements along each of the array's dimensions. `swizzle`,
    `l2_promotion`: in bytes, 0 for none. Raises UsageError."""

    array: str
    box: tuple[int, ...]
    swizzle: int = 0
    l2_promotion: int = 256

    def __post_init__(self) -> None:
        if not 2 <= len(self.box) <= 5 or not all(1 <= size <= 256 for size in self.box):
            raise UsageError(f"{self.array}: TMA moves no box of {self.box}: 2 to 5 dimensions, each 1 to 256")
        for what, value, known in (("swizzle", self.swizzle, (0, 32, 64, 128)),
                                   ("l2_promotion", self.l2_promotion, (0, 64, 128, 256))):  # fmt: skip
            if value not in known:
                raise UsageError(f"{self.array}: {what} {value}: it is one of {', '.join(map(str, known))}")

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> TensorMap:
        """Raises UsageError, KeyError or TypeError."""
        box, numbers = tuple(row["box"]), (row["swizzle"], row["l2_promotion"])
        if not all(type(number) is int for number in (*box, *numbers)):
            raise TypeError("the numbers of a tensor map are integers")
        return cls(row["array"], box, *numbers)


@dataclass(frozen=True)
class Form:
    """How an entry's code is to be compiled and launched.

    `version`: the bytecode version; empty for PTX, which states its own. `convention`: how arguments are passed.
    `block`: threads in x, y and z; (1, 1, 1) for Tile IR, whose compiler chooses them. `shared_bytes`: dynamic shared
    memory of a block. `waits`: the kernel itself waits for the previous launch (see `tileir/passes/overlap.py`), so it
    may begin before that launch ends. `maps`: the tensor maps that it takes behind its op's parameters. `index_bits`:
    of the signed integers in which the kernel counts an array's elements, 32 or 64. `together`: of a kernel whose
    blocks must all run at the same time, the blocks of a cluster; 0 for any other kernel.
    """

    kind: Kind = "tile-ir"
    version: str = ""
    convention: str = CALLING_CONVENTION
    block: tuple[int, int, int] = (1, 1, 1)
    shared_bytes: int = 0
    waits: bool = False
    maps: tuple[TensorMap, ...] = ()
    index_bits: int = 64
    together: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.together <= MAX_CLUSTER or (self.together and self.kind == "tile-ir"):
            raise UsageError(f"{self.kind} in clusters of {self.together} blocks: PTX in 1 to {MAX_CLUSTER}")
        if self.index_bits not in (32, 64):
            raise UsageError(f"a kernel counts elements in 32 or 64 bits, not in {self.index_bits}")
        if self.kind not in get_args(Kind):
            raise UsageError(f"no artifact of kind {self.kind!r}", hint=f"one of {', '.join(get_args(Kind))}")
        if (self.kind == "tile-ir") != bool(re.fullmatch(_VERSION, self.version)):
            raise UsageError(
                f"{self.version!r} is not a version of {self.kind}: bytecode has a version such as 13.4, PTX has none"
            )
        if self.convention not in CONVENTIONS:
            raise UsageError(f"no calling convention {self.convention!r}", hint=f"one of {', '.join(CONVENTIONS)}")
        if (self.convention == TENSOR_MAPS) != bool(self.maps):
            raise UsageError(f"{self.convention} with {len(self.maps)} tensor maps: only {TENSOR_MAPS} has some")
        x, y, z = self.block
        if not (min(self.block) >= 1 and x * y * z <= MAX_THREADS and z <= 64):
            raise UsageError(f"no GPU runs a block of {x} x {y} x {z} threads")
        if self.kind == "tile-ir" and (self.block, self.shared_bytes) != ((1, 1, 1), 0):
            raise UsageError("Tile IR needs block (1, 1, 1) and no dynamic shared memory: its compiler chooses both")
        if not 0 <= self.shared_bytes <= MAX_SHARED:
            raise UsageError(f"{self.shared_bytes} bytes of shared memory: a block has 0 to {MAX_SHARED}")

    def check_maps(self, spec: EntrySpec) -> None:
        """Raises UsageError if an entry's tensor maps do not fit its parameters."""
        arrays = {param.name: param for param in spec.params if param.dims}
        for made in self.maps:
            if made.array not in arrays:
                raise UsageError(f"{spec.symbol}: a tensor map of {made.array}, which is no array of {spec.op}")
            if len(made.box) != len(arrays[made.array].dims):
                raise UsageError(f"{spec.symbol}: {made.array} has not the {len(made.box)} dimensions of its box")
            if made.array not in spec.aligned:
                raise UsageError(
                    f"{spec.symbol}: TMA needs {made.array} aligned to 16 bytes",
                    hint="name it in the entry's `aligned`",
                )

    def check_reach(self, symbol: str, name: str, sizes: Sequence[int], strides: Sequence[int]) -> None:
        """Raises LaunchError if the kernel cannot count to the last element of an array, which it need not for TMA.
        `strides`: in elements."""
        last = sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True)) if all(sizes) else 0
        if last < 1 << (self.index_bits - 1) or any(made.array == name for made in self.maps):
            return
        raise LaunchError(
            f"{symbol}: the last element of {name} is {last} elements after the first, and this kernel counts them in "
            f"{self.index_bits} bits",
            hint="pass an array with smaller gaps, or in parts, or take another kernel source",
        )

    def to_json(self) -> dict[str, Any]:
        usual = {"maps": (), "index_bits": 64, "together": 0}  # as it was before there were others
        return {key: value for key, value in asdict(self).items() if key not in usual or value != usual[key]}

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Form:
        """The form in a row of a manifest. Raises UsageError, KeyError, TypeError or ValueError if it is not one."""
        x, y, z = row["block"]
        if not all(type(number) is int for number in (x, y, z, row["shared_bytes"])):
            raise TypeError("block and shared_bytes are integers")
        if row["version"] and not re.fullmatch(_VERSION, row["version"]):
            raise ValueError(f"{row['version']!r} is not a version of the bytecode")
        maps = tuple(TensorMap.from_json(made) for made in row.get("maps", ()))
        waits = row["waits"] is True
        bits, together = row.get("index_bits", 64), row.get("together", 0)
        if type(together) is not int:
            raise TypeError("together is an integer")
        return cls(
            row["kind"], row["version"], row["convention"], (x, y, z), row["shared_bytes"], waits, maps, bits, together
        )


@dataclass(frozen=True)
class Artifact:
    """The code of an entry, as its source made it. `ir`: of PTX, the kernel of which it was made, as text that the
    executor of `cute` runs on a CPU; empty if there is none."""

    payload: bytes
    form: Form
    ir: bytes = b""


def tile_ir(bytecode: bytes, version: str) -> Artifact:
    """Tile IR bytecode of a version such as "13.4"."""
    if not re.fullmatch(_VERSION, version):
        raise UsageError(f"{version!r} is not a bytecode version", hint="write it as 13.4")
    waits = tuple(map(int, version.split("."))) >= WAITS_SINCE
    return Artifact(bytecode, Form("tile-ir", version, waits=waits))


def ptx(
    text: str, *, block: tuple[int, int, int], shared_bytes: int = 0, waits: bool = False,
    maps: tuple[TensorMap, ...] = (), index_bits: int = 64, together: int = 0, ir: str = "",
) -> Artifact:  # fmt: skip
    """PTX that has a `.visible .entry` named as the entry's symbol. `ir`: the kernel of which it was made. The others:
    see Form."""
    convention = TENSOR_MAPS if maps else CALLING_CONVENTION
    form = Form("ptx", "", convention, block, shared_bytes, waits, maps, index_bits, together)
    return Artifact(text.encode(), form, ir.encode())


def dump(artifact: Artifact) -> bytes:
    """The bytes of an artifact in the compile cache: a line of JSON, then the code, and behind it the IR if any."""
    row = artifact.form.to_json() | ({"ir_bytes": len(artifact.ir)} if artifact.ir else {})
    return json.dumps(row).encode() + b"\n" + artifact.payload + artifact.ir


def load(dumped: bytes) -> Artifact:
    """The artifact that `dump` wrote."""
    head, _, rest = dumped.partition(b"\n")
    row = json.loads(head)
    end = len(rest) - row.get("ir_bytes", 0)
    return Artifact(rest[:end], Form.from_json(row), rest[end:])
