"""Instructions that every GPU from sm_80 on has: copies of a warp, `mma.sync`, barriers of a block, shuffles.

Source: PTX ISA 9.0, the instruction of each row.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import f32

from ...errors import UsageError
from ..atoms import find, find_copy
from ..atoms.mma import WARP
from .row import ArchOp, Asm, PtxForm, braces, fixed


def _cp_async(op: ArchOp) -> Asm:
    cache = "cg" if op.number == 16 else "ca"
    partial = len(op.args) == 3
    if op.atom_name not in ("", "L2::128B"):
        raise UsageError(f"no hint {op.atom_name}", hint="L2::128B, or none")
    hint = f".{op.atom_name}" if op.atom_name else ""
    text = f"cp.async.{cache}.shared.global{hint} [$0], [$1], {op.number}{', $2' * partial};"
    return text, "r,l" + ",r" * partial


def _load_once(op: ArchOp) -> Asm:
    count = op.number // 4
    vector = f".v{count}" if count > 1 else ""
    registers = braces(0, count) if count > 1 else "$0"
    text = f"ld.global.L1::no_allocate.L2::128B{vector}.b32 {registers}, [${count}];"
    return text, ",".join([*["=r"] * count, "l"])


def _mma(op: ArchOp) -> Asm:
    atom = find(op.atom_name)
    if atom.threads != WARP or atom.sparse != (op.name.endswith("_sp")):
        raise UsageError(f"{atom.name} is no atom of this instruction", hint="mma.sync, mma.sync_sp or mma.wgmma")
    return atom.inline_asm


def _is_float(op: ArchOp) -> bool:
    return bool(op.args) and op.args[0].type == f32


def _shuffle(mode: str, bound: int = 31) -> Callable[[ArchOp], Asm]:
    """A shuffle by the operation's number; `bound`: of the lanes that it reads."""

    def asm(op: ArchOp) -> Asm:
        kind = "f" if _is_float(op) else "r"
        return f"shfl.sync.{mode}.b32 $0, $1, {op.number}, {bound}, 0xffffffff;", f"={kind},{kind}"

    return asm


def _shuffle_idx(op: ArchOp) -> Asm:
    kind = "f" if _is_float(op) else "r"
    return "shfl.sync.idx.b32 $0, $1, $2, 31, 0xffffffff;", f"={kind},{kind},r"


def _registers(op: ArchOp) -> Asm:
    kinds = ["f" if arg.type == f32 else "r" for arg in op.args]
    return "", ",".join([*(f"={kind}" for kind in kinds), *map(str, range(len(kinds)))])


def _unpack_pair(op: ArchOp) -> Asm:
    if op.atom_name == "bf16":
        return "shl.b32 $0, $2, 16;\nand.b32 $1, $2, 0xffff0000;", "=f,=f,r"
    halves = "{\n.reg .b16 low, high;\nmov.b32 {low, high}, $2;"
    return f"{halves}\ncvt.f32.f16 $0, low;\ncvt.f32.f16 $1, high;\n}}", "=f,=f,r"


def _function(name: str, does: str, zero: str = ".ftz") -> PtxForm:
    """A function of the special-function unit. `zero`: denormals become zero."""
    return PtxForm(
        fixed(f"{name}.approx{zero}.f32 $0, $1;", "=f,f"), f"{does}, approximately.", "f32 -> f32", memory=False
    )


ROWS: dict[str, PtxForm] = {
    "copy.ldmatrix": PtxForm(
        lambda op: find_copy(op.atom_name).inline_asm,
        "Reads 1, 2 or 4 matrices of 8 x 8 elements of 16 bits from shared memory into the registers of a warp.",
        "address of the thread's row -> a register for each matrix",
    ),
    "copy.stmatrix": PtxForm(
        lambda op: find_copy(op.atom_name).inline_asm,
        "Writes 1, 2 or 4 matrices of 8 x 8 elements of 16 bits from a warp's registers to shared memory.",
        "address of the thread's row, a register for each matrix",
        since=90,
    ),
    "copy.cp_async": PtxForm(
        _cp_async,
        "Copies `n` bytes from global to shared memory in the background. With a count, only so many bytes are read, "
        "and the rest of the destination becomes zero. With the atom `L2::128B` the L2 cache fetches the 128 bytes "
        "around.",
        "destination, source, [bytes to read]",
        numbers=(4, 8, 16),
    ),
    "copy.load_once": PtxForm(
        _load_once,
        "Reads `n` bytes of global memory, `n`-byte aligned, that this multiprocessor reads no more: the L1 cache does "
        "not keep them, and the L2 cache fetches the 128 bytes around, of which others read the rest.",
        "source -> a register for each 4 bytes",
        numbers=(4, 8, 16),
    ),
    "copy.cp_async_mbarrier_arrive": PtxForm(
        fixed("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [$0];", "r"),
        "Arrives at an mbarrier once the thread's earlier cp.async copies are complete.",
        "mbarrier",
    ),
    "transpose": PtxForm(
        fixed("movmatrix.sync.aligned.m8n8.trans.b16 $0, $1;", "=r,r"),
        "Transposes a matrix of 8 x 8 elements of 16 bits in the registers of a warp: each thread has two of a row, as "
        "ldmatrix reads them.",
        "i32 -> i32", memory=False,
    ),
    "mma.sync": PtxForm(
        _mma,
        "D = A x B + C of a warp, in registers.",
        "registers of A, B and C -> those of D",
        memory=False,
    ),
    "mma.sync_sp": PtxForm(
        _mma,
        "As mma.sync, with two of four values of A along K; the metadata has two bits for each value that is there.",
        "registers of A, B and C, metadata -> registers of D",
        memory=False,
    ),
    "barrier": PtxForm(
        fixed("bar.sync $0, {n};", "r"),
        "Waits at the block's barrier of a number, 0 to 15, for `n` threads.",
        "barrier",
        numbers=range(32, 1025, 32),
    ),
    "barrier.arrive": PtxForm(
        fixed("bar.arrive $0, {n};", "r"),
        "Arrives at the block's barrier of a number without waiting; `n` threads arrive or wait in all.",
        "barrier",
        numbers=range(32, 1025, 32),
    ),
    "shuffle.idx": PtxForm(
        _shuffle_idx, "Reads a value of the warp's lane of a number.", "value (i32 or f32), lane -> value"
    ),
    "shuffle.xor": PtxForm(
        _shuffle("bfly"), "Reads a value of the lane of the own number xor `n`.", "value (i32 or f32) -> value",
        numbers=range(32),
    ),
    "shuffle.down": PtxForm(
        _shuffle("down"), "Reads a value of the lane `n` further up in number; the last lanes keep their own.",
        "value (i32 or f32) -> value", numbers=range(32),
    ),
    "shuffle.up": PtxForm(
        _shuffle("up", 0), "Reads a value of the lane `n` lower in number; the first lanes keep their own.",
        "value (i32 or f32) -> value", numbers=range(32),
    ),
    "vote_ballot": PtxForm(
        fixed("{\n.reg .pred p;\nsetp.ne.b32 p, $1, 0;\nvote.sync.ballot.b32 $0, p, 0xffffffff;\n}", "=r,r"),
        "A bit for each lane of the warp whose value is not 0.",
        "value -> bits",
    ),
    "warp_sync": PtxForm(fixed("bar.warp.sync 0xffffffff;"), "The lanes of a warp wait for each other."),
    "convert.pair": PtxForm(
        fixed("cvt.rn.{atom}x2.f32 $0, $2, $1;", "=r,f,f"),
        "Rounds two f32 to f16 or bf16 in one register, the first in the low half.", "f32, f32 -> i32",
        atoms=("f16", "bf16"), memory=False,
    ),
    "unpack.pair": PtxForm(
        _unpack_pair, "The two f16 or bf16 of a register as f32, the low half first.", "i32 -> f32, f32",
        atoms=("f16", "bf16"), memory=False,
    ),
    "permute": PtxForm(
        fixed("prmt.b32 $0, $1, $2, {n};", "=r,r,r"),
        "Four of the eight bytes of two registers. `n`: a digit to base 16 for each, the lowest byte's last; 0 to 3 "
        "are those of the first register, 4 to 7 of the second.",
        "i32, i32 -> i32", numbers=range(0x10000), memory=False,
    ),
    "registers": PtxForm(
        _registers,
        "No instruction: the compiler computes these registers here and not later, and uses them further down only. A "
        "wgmma reads and writes registers until a wait for it ends, and the compiler does not know.",
        "registers -> the same registers",
    ),
    "prefetch": PtxForm(
        fixed("prefetch.global.L2 [$0];", "l"), "Fetches the line of an address in global memory into the L2 cache.",
        "address",
    ),
    "clock": PtxForm(fixed("mov.u64 $0, %clock64;", "=l"), "The multiprocessor's clock.", "-> i64"),
    "exp2": _function("ex2", "2 to the power of a number"),
    "log2": _function("lg2", "The logarithm to base 2"),
    "reciprocal": _function("rcp", "1 by a number"),
    "rsqrt": _function("rsqrt", "1 by the square root of a number"),
    "sin": _function("sin", "The sine"),
    "cos": _function("cos", "The cosine"),
    "tanh": _function("tanh", "The hyperbolic tangent", zero=""),
}  # fmt: skip
