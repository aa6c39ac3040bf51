"""Instructions of sm_100a and its family: tensor memory (TMEM), and `tcgen05.mma`, which adds into it.

Source: PTX ISA 9.0, "TensorCore 5th Generation Family Instructions".
"""

from __future__ import annotations

from xdsl.dialects.builtin import f32, i32

from .row import ArchOp, Asm, PtxForm, braces, fixed

BLACKWELL = ("sm_100a", "sm_103a", "sm_110a")
GROUPS = ("single", "pair")  # blocks that work together
COLUMNS = (32, 64, 128, 256, 512)
# Registers of a thread for one repetition of a shape, of which there are up to 128 registers in all.
SHAPES = {"16x64b": 1, "16x128b": 2, "16x256b": 4, "32x32b": 1}
MOVES = tuple(
    f"{shape}.x{1 << power}" for shape, count in SHAPES.items() for power in range(8) if count << power <= 128
)
KINDS = ("f16", "tf32", "f8f6f4")
SCALED = ("mxf8f6f4", "mxf4", "mxf4nvf4.2X", "mxf4nvf4.4X")
COPIES = ("128x256b", "4x256b", "128x128b", "64x128b.warpx2::02_13", "64x128b.warpx2::01_23", "32x128b.warpx4")


def _group(op: ArchOp) -> str:
    return f"cta_group::{2 if op.atom_name.endswith('pair') else 1}"


def _registers(op: ArchOp) -> int:
    shape, _, times = op.atom_name.partition(".x")
    return SHAPES[shape] * int(times)


def _load(op: ArchOp) -> Asm:
    count, kind = _registers(op), "f" if op.res and op.res[0].type == f32 else "r"
    text = f"tcgen05.ld.sync.aligned.{op.atom_name}.b32 {braces(0, count)}, [${count}];"
    return text, ",".join([*[f"={kind}"] * count, "r"])


def _store(op: ArchOp) -> Asm:
    count, kind = _registers(op), "f" if len(op.args) > 1 and op.args[1].type == f32 else "r"
    return f"tcgen05.st.sync.aligned.{op.atom_name}.b32 [$0], {braces(1, count)};", ",".join(["r", *[kind] * count])


def _mma(op: ArchOp) -> Asm:
    """D is an address of TMEM, and A another or a descriptor."""
    kind = op.atom_name.removesuffix(".pair")
    in_tmem = len(op.args) > 1 and op.args[1].type == i32
    a = "[$1]" if in_tmem else "$1"
    sparse = ".sp" * op.name.endswith("_sp")
    meta = ", [$3]" if sparse else ""
    described, keep = (4, 5) if sparse else (3, 4)
    name = f"tcgen05.mma{sparse}.{_group(op)}.kind::{kind}"
    text = f"{name} [$0], {a}, $2{meta}, ${described}, p;"
    constraints = ["r", "r" if in_tmem else "l", "l", *["r"] * (3 if sparse else 2)]
    return f"{{\n.reg .pred p;\nsetp.ne.b32 p, ${keep}, 0;\n{text}\n}}", ",".join(constraints)


def _mma_scaled(op: ArchOp) -> Asm:
    kind, _, size = op.atom_name.removesuffix(".pair").partition(".")
    vector = f".scale_vec::{size or ('2X' if kind == 'mxf4' else '1X')}"
    name = f"tcgen05.mma.{_group(op)}.kind::{kind}.block_scale{vector}"
    text = f"{name} [$0], $1, $2, $3, [$4], [$5], p;"
    return f"{{\n.reg .pred p;\nsetp.ne.b32 p, $6, 0;\n{text}\n}}", "r,l,l,r,r,r,r"


def _multicast(op: ArchOp) -> Asm:
    name = f"tcgen05.commit.{_group(op)}.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64"
    return f"{{\n.reg .b16 mask;\ncvt.u16.u32 mask, $1;\n{name} [$0], mask;\n}}", "r,r"


def _copy(op: ArchOp) -> Asm:
    return f"tcgen05.cp.cta_group::1.{op.atom_name} [$0], $1;", "r,l"


ROWS: dict[str, PtxForm] = {
    "tmem.alloc": PtxForm(
        lambda op: (f"tcgen05.alloc.{_group(op)}.sync.aligned.shared::cta.b32 [$0], {op.number};", "r"),
        "Allocates `n` columns of TMEM and writes their address to shared memory; for a whole warp. It waits until "
        "there are so many.", "where the address goes", family=BLACKWELL, numbers=COLUMNS, atoms=GROUPS,
    ),
    "tmem.dealloc": PtxForm(
        lambda op: (f"tcgen05.dealloc.{_group(op)}.sync.aligned.b32 $0, {op.number};", "r"),
        "Gives `n` columns of TMEM back; for a whole warp, before the kernel ends.", "address",
        family=BLACKWELL, numbers=COLUMNS, atoms=GROUPS,
    ),
    "tmem.relinquish": PtxForm(
        lambda op: (f"tcgen05.relinquish_alloc_permit.{_group(op)}.sync.aligned;", ""),
        "Says that the block allocates no more.", family=BLACKWELL, atoms=GROUPS,
    ),
    "tmem.load": PtxForm(
        _load, "Reads TMEM into a warp's registers: `32x32b.x8` is 8 columns of the warp's 32 lanes.",
        "address -> registers (i32 or f32)", family=BLACKWELL, atoms=MOVES,
    ),
    "tmem.store": PtxForm(
        _store, "Writes a warp's registers to TMEM.", "address, registers (i32 or f32)", family=BLACKWELL, atoms=MOVES
    ),
    "tmem.wait_load": PtxForm(
        fixed("tcgen05.wait::ld.sync.aligned;"), "Waits until the thread's loads have filled their registers.",
        family=BLACKWELL,
    ),
    "tmem.wait_store": PtxForm(
        fixed("tcgen05.wait::st.sync.aligned;"), "Waits until the thread's stores are complete.", family=BLACKWELL
    ),
    "tmem.copy": PtxForm(
        _copy, "Copies from shared memory to TMEM, such as the scales of a block-scaled product.",
        "address, descriptor", family=BLACKWELL, atoms=COPIES,
    ),
    "tcgen05.mma": PtxForm(
        _mma, "C = A x B + C, in the background, for one thread of the block. C is in TMEM; A is in shared memory, or "
        "in TMEM if it is given by an address (i32).",
        "address of C, descriptor or address of A, descriptor of B, instruction descriptor, 0 to overwrite C",
        family=BLACKWELL, atoms=(*KINDS, *(f"{kind}.pair" for kind in KINDS)),
    ),
    "tcgen05.mma_sp": PtxForm(
        _mma, "As tcgen05.mma, with two of four values of A along K; the metadata is in TMEM.",
        "address of C, descriptor or address of A, descriptor of B, address of the metadata, instruction descriptor, "
        "0 to overwrite C", family=BLACKWELL, atoms=(*KINDS, *(f"{kind}.pair" for kind in KINDS)),
    ),
    "tcgen05.mma_scaled": PtxForm(
        _mma_scaled, "As tcgen05.mma for 8, 6 and 4 bits, with a scale for each 32 or 16 values along K, in TMEM.",
        "address of C, descriptors of A and B, instruction descriptor, addresses of A's and B's scales, "
        "0 to overwrite C", family=BLACKWELL, atoms=(*SCALED, *(f"{kind}.pair" for kind in SCALED)),
    ),
    "tcgen05.commit": PtxForm(
        lambda op: (f"tcgen05.commit.{_group(op)}.mbarrier::arrive::one.shared::cluster.b64 [$0];", "r"),
        "Arrives at an mbarrier once the thread's products so far are complete.", "mbarrier",
        family=BLACKWELL, atoms=GROUPS,
    ),
    "tcgen05.commit_multicast": PtxForm(
        _multicast, "As tcgen05.commit, at the mbarriers of the blocks of the cluster whose bits are set.",
        "mbarrier, mask", family=BLACKWELL, atoms=GROUPS,
    ),
    "tcgen05.fence_before": PtxForm(
        fixed("tcgen05.fence::before_thread_sync;"),
        "Orders the thread's tcgen05 instructions before a barrier of threads.", family=BLACKWELL,
    ),
    "tcgen05.fence_after": PtxForm(
        fixed("tcgen05.fence::after_thread_sync;"),
        "Orders the thread's tcgen05 instructions behind a barrier of threads.", family=BLACKWELL,
    ),
}  # fmt: skip
