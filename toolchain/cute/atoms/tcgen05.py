"""The MMA atoms of sm_100: `tcgen05.mma`, whose accumulator is in tensor memory (TMEM).

TMEM has 128 lanes and up to 512 columns of 32 bits. Source: PTX ISA 9.0, "tcgen05.mma", "Instruction descriptor".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ...errors import UsageError
from ..layout import Layout

LANES = 128
BITS: Mapping[str, int] = {"tf32": 32, "f16": 16, "bf16": 16, "e4m3": 8, "e5m2": 8, "e2m3": 8, "e3m2": 8, "e2m1": 8}
KINDS: Mapping[str, str] = {"tf32": "tf32", "f16": "f16", "bf16": "f16"}  # all others are f8f6f4
# The number of an operand's dtype in the instruction descriptor, within its kind.
FORMATS: Mapping[str, int] = {"f16": 0, "bf16": 1, "tf32": 2, "e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5}
COLUMNS: Mapping[tuple[int, bool], range] = {
    (64, False): range(8, 257, 8), (128, False): range(16, 257, 16),
    (128, True): range(32, 257, 32), (256, True): range(32, 257, 32),
}  # the N for each M, of one block or of a pair of blocks  # fmt: skip
_NAME = re.compile(r"tcgen05(_pair)?\.m(\d+)n(\d+)k(\d+)\.(\w+)\.(\w+)")


@dataclass(frozen=True)
class Tcgen05Atom:
    """C = A x B + C on one tile; A and B in shared memory, or A in TMEM. `pair`: two blocks compute it together.
    Raises UsageError for a tile or dtype that the instruction does not have."""

    m: int
    n: int
    ab: str
    c: str = "f32"
    pair: bool = False

    def __post_init__(self) -> None:
        if self.ab not in BITS:
            raise UsageError(f"tcgen05 has no operands of {self.ab}", hint=f"one of {', '.join(BITS)}")
        if self.c != "f32" and (self.c != "f16" or self.ab in ("tf32", "bf16")):
            raise UsageError(f"tcgen05 has no accumulator of {self.c} for {self.ab}", hint="f32")
        if (columns := COLUMNS.get((self.m, self.pair))) is None:
            rows = ", ".join(str(m) for m, pair in COLUMNS if pair == self.pair)
            raise UsageError(f"tcgen05 has no tile of {self.m} rows here", hint=f"M of {rows}")
        if self.n not in columns:
            said = f"{columns[0]} to {columns[-1]} in steps of {columns.step}"
            raise UsageError(f"tcgen05 has no N of {self.n} for M of {self.m}", hint=f"N of {said}")

    @property
    def k(self) -> int:
        return 256 // BITS[self.ab]

    @property
    def kind(self) -> str:
        """The kind of the instruction: `f16`, `tf32` or `f8f6f4`."""
        return KINDS.get(self.ab, "f8f6f4")

    @property
    def name(self) -> str:
        return f"tcgen05{'_pair' * self.pair}.m{self.m}n{self.n}k{self.k}.{self.c}.{self.ab}"

    def descriptor(self, majors: str = "kk") -> int:
        """The instruction descriptor; `majors`: what lies side by side in A and in B, `k` or `m`."""
        if majors not in ("kk", "km", "mk", "mm"):
            raise UsageError(f"{majors!r} does not say what is side by side in A and in B", hint="kk, km, mk or mm")
        formats = FORMATS[self.ab] << 7 | FORMATS[self.ab] << 10
        transposed = (majors[0] == "m") << 15 | (majors[1] == "m") << 16
        return (self.c == "f32") << 4 | formats | transposed | self.n // 8 << 17 | self.m // 16 << 24

    @property
    def c_layout(self) -> Layout:
        """The accumulator as 128 threads read it with `tmem.load` of `32x32b`: a thread has a lane, so a row. Raises
        UsageError unless each row has a lane of its own."""
        if self.m != LANES or self.pair:
            raise UsageError(f"{self.name}: only a tile of {LANES} rows of one block has a row in each lane")
        return Layout((LANES, self.n), (1, LANES))


def find_tcgen05(name: str) -> Tcgen05Atom:
    """The atom of a name such as `tcgen05.m128n256k16.f32.bf16`. Raises UsageError."""
    if (found := _NAME.fullmatch(name)) is None:
        raise UsageError(f"no tcgen05 atom {name!r}", hint="tcgen05.m128nNkK.f32.DTYPE, or tcgen05_pair.m256...")
    made = Tcgen05Atom(int(found[2]), int(found[3]), found[6], found[5], found[1] is not None)
    if made.name != name:
        raise UsageError(f"no tcgen05 atom {name!r}", hint=f"{made.name}: K is 256 bits")
    return made
