"""The MMA atoms: `mma.sync` of a warp, and `wgmma` of a warpgroup.

A thread-value layout maps (thread, value) to an element of a column-major tile: A is M x K, B is N x K, C is M x N, as
in CuTe. An atom whose A is sparse keeps two of four values along K: its A is M x K/2. Its metadata is an operand E of
threads x 1: a 32-bit register each. Source of the fragments: PTX ISA 9.0, "Matrix Fragments for mma.m16n8k*" and
"Register Fragments and Shared Memory Matrix Layouts" of wgmma.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

from ...errors import UsageError
from ..layout import Layout, size

BITS: Mapping[str, int] = {
    "f64": 64, "f32": 32, "s32": 32, "tf32": 32, "f16": 16, "bf16": 16, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8,
    "s4": 4, "u4": 4,
}  # fmt: skip
REGISTER_BITS = 32
WARP, WARPGROUP = 32, 128  # threads


@dataclass(frozen=True)
class MmaAtom:
    """C = A x B + C on one tile. `m`, `n`, `k`: its sizes. `ab`, `c`: dtypes. `arch`: the lowest that has the
    instruction, such as 80 for sm_80. `a_layout`, `b_layout`: None if the operand is in shared memory. `sparse`: A has
    two of four values along K, and metadata says which."""

    m: int
    n: int
    k: int
    ab: str
    c: str
    arch: int
    threads: int
    a_layout: Layout | None
    b_layout: Layout | None
    c_layout: Layout
    sparse: bool = False

    @property
    def name(self) -> str:
        """`mma`, `mma_sp`, `wgmma`, `wgmma_rs` (A in registers) or `wgmma_sp`, then the tile and the dtypes."""
        kind = "mma" if self.threads == WARP else "wgmma" if self.a_layout is None else "wgmma_rs"
        return f"{kind}{'_sp' * self.sparse}.m{self.m}n{self.n}k{self.k}.{self.c}.{self.ab}"

    def layout(self, operand: str) -> Layout:
        """The thread-value layout of operand `a`, `b` or `c`, and of `e` if A is sparse. Raises UsageError if no thread
        holds it."""
        if (made := self._layouts.get(operand)) is None:
            raise UsageError(f"{self.name} has no thread-value layout of {operand!r}", hint="a, b or c")
        return made

    @property
    def _layouts(self) -> dict[str, Layout | None]:
        metadata = Layout((self.threads, 1), (1, 0)) if self.sparse else None
        return {"a": self.a_layout, "b": self.b_layout, "c": self.c_layout, "e": metadata}

    def held(self, operand: str) -> Layout:
        """As `layout`; all threads of a warpgroup share an operand in shared memory."""
        if operand == "e" or self._layouts[operand] is not None:
            return self.layout(operand)
        rows, columns = self.tile(operand)
        return Layout((self.threads, (rows, columns)), (0, (1, rows)))

    def tile(self, operand: str) -> tuple[int, int]:
        """The rows and columns of an operand's tile."""
        a = self.m, self.k // (1 + self.sparse)
        return {"a": a, "b": (self.n, self.k), "c": (self.m, self.n), "e": (self.threads, 1)}[operand]

    def dtype(self, operand: str) -> str:
        """The dtype of an operand."""
        return {"c": self.c, "e": "s32"}.get(operand, self.ab)

    def registers(self, operand: str) -> int:
        """The registers of a thread for an operand: of 32 bits, or of 64 for f64."""
        values, bits = size(self.layout(operand)[1]), BITS[self.dtype(operand)]
        return values * bits // max(bits, REGISTER_BITS)

    @property
    def instruction(self) -> str:
        """The PTX instruction, without its operands."""
        shape = f"m{self.m}n{self.n}k{self.k}"
        if self.threads != WARP:
            sparse = ".sp" * self.sparse
            return f"wgmma.mma_async{sparse}.sync.aligned.{shape}.{self.c}.{self.ab}.{self.ab}"
        sparse = ".sp::ordered_metadata" * self.sparse
        return f"mma{sparse}.sync.aligned.{shape}.row.col.{self.c}.{self.ab}.{self.ab}.{self.c}"

    @property
    def inline_asm(self) -> tuple[str, str]:
        """The PTX text and the constraints of `llvm.inline_asm`: registers of D out, then those of A, B and C in, and
        for a sparse A its metadata.

        f32 accumulators are floats, and all of f64; other registers are i32, with the value of the lowest index in the
        lowest bits.
        Raises UsageError for wgmma, whose operands differ.
        """
        if self.threads != WARP:
            raise UsageError(f"{self.name} takes descriptors of shared memory, not registers alone")
        counts = [self.registers("c"), self.registers("a"), self.registers("b"), self.registers("c")]
        groups, number = list[str](), 0
        for count in counts:
            groups.append("{" + ", ".join(f"${number + i}" for i in range(count)) + "}")
            number += count
        accumulator, operand = {"f32": "fr", "f64": "dd"}.get(self.c, "rr")
        out = [f"={accumulator}"] * counts[0]
        constraints = [*out, *[operand] * (counts[1] + counts[2]), *[accumulator] * counts[3]]
        if self.sparse:  # its selector is 0: the first threads of each four give the metadata
            groups.append(f"${number}, 0")
            constraints.append("r")
        return f"{self.instruction} {', '.join(groups)};", ",".join(constraints)


def _mma_sync(k: int, ab: str, c: str, arch: int, *, sparse: bool = False) -> MmaAtom:
    """m16n8: thread 4g + t of a warp holds rows g and g + 8, and the columns from t times what a register packs."""
    packed = REGISTER_BITS // BITS[ab]  # values of one row in a register
    halves = k // (4 * packed)  # registers along K
    a = Layout(((4, 8), (packed, 2, halves // (1 + sparse))), ((16 * packed, 1), (16, 8, 64 * packed)))
    b = Layout(((4, 8), (packed, halves)), ((8 * packed, 1), (8, 32 * packed)))
    c_layout = Layout(((4, 8), (2, 2)), ((32, 1), (16, 8)))
    return MmaAtom(16, 8, k, ab, c, arch, WARP, a, b, c_layout, sparse)


def _mma_f64() -> MmaAtom:
    """m8n8k4: thread 4g + t of a warp holds row g and column t of A, and of C two columns from 2t."""
    operand, c = Layout(((4, 8), 1), ((8, 1), 0)), Layout(((4, 8), 2), ((16, 1), 8))
    return MmaAtom(8, 8, 4, "f64", "f64", 80, WARP, operand, operand, c)


def _wgmma(n: int, ab: str, c: str, form: str) -> MmaAtom:
    """m64: each warp of a warpgroup holds 16 rows of the accumulator, and of A in form `rs`; B, and else A, are in
    shared memory."""
    packed, sparse = REGISTER_BITS // BITS[ab], form == "sp"
    a = Layout(((4, 8, 4), (packed, 2, 2)), ((64 * packed, 1, 16), (64, 8, 256 * packed)))
    c_layout = Layout(((4, 8, 4), (2, 2, n // 8)), ((128, 1, 16), (64, 8, 512)))
    k = (1 + sparse) * 256 // BITS[ab]
    return MmaAtom(64, n, k, ab, c, 90, WARPGROUP, a if form == "rs" else None, None, c_layout, sparse)


WGMMA_DTYPES = (("f16", "f32"), ("bf16", "f32"), ("tf32", "f32"), ("e4m3", "f32"), ("e5m2", "f32"), ("f16", "f16"),
                ("s8", "s32"), ("u8", "s32"))  # fmt: skip
S32_COLUMNS = (8, 16, 24, *range(32, 257, 16))  # the N that wgmma has for integers


@functools.cache
def atoms() -> Mapping[str, MmaAtom]:
    """All MMA atoms by name: `mma.m16n8k16.f32.bf16`."""
    warp = [
        *(_mma_sync(k, ab, "f32", 80) for ab in ("f16", "bf16") for k in (8, 16)),
        *(_mma_sync(k, "f16", "f16", 80) for k in (8, 16)),
        *(_mma_sync(k, "tf32", "f32", 80) for k in (4, 8)),
        *(_mma_sync(k, ab, "s32", 80) for ab in ("s8", "u8") for k in (16, 32)),
        *(_mma_sync(k, ab, "s32", 80) for ab in ("s4", "u4") for k in (32, 64)),
        _mma_f64(),
        *(_mma_sync(32, ab, "f32", 89) for ab in ("e4m3", "e5m2")),
        *(_mma_sync(k, ab, "f32", 80, sparse=True) for ab in ("f16", "bf16") for k in (16, 32)),
        *(_mma_sync(k, "tf32", "f32", 80, sparse=True) for k in (8, 16)),
        *(_mma_sync(k, ab, "s32", 80, sparse=True) for ab in ("s8", "u8") for k in (32, 64)),
        *(_mma_sync(64, ab, "f32", 89, sparse=True) for ab in ("e4m3", "e5m2")),
    ]
    group = [
        _wgmma(n, ab, c, form)
        for form in ("ss", "rs", "sp")
        for ab, c in WGMMA_DTYPES
        for n in (S32_COLUMNS if c == "s32" else range(8, 257, 8))
    ]
    return {atom.name: atom for atom in (*warp, *group)}


def find(name: str) -> MmaAtom:
    """The atom of a name. Raises UsageError with the names that begin alike."""
    if (found := atoms().get(name)) is not None:
        return found
    near = [known for known in atoms() if known.startswith(name.split(".")[0] + ".m16")] or ["mma.m16n8k16.f32.bf16"]
    raise UsageError(
        f"no MMA atom {name!r}",
        hint=f"one of {', '.join(near)}, or wgmma.m64nNkK.f32.DTYPE, with wgmma_rs for an A in registers",
    )
