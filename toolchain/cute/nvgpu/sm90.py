"""Instructions that came with sm_90: TMA, mbarriers, clusters, and `wgmma`, which only sm_90a has.

Source: PTX ISA 9.0, the instruction of each row.
"""

from __future__ import annotations

from ...errors import UsageError
from ..atoms import find
from ..atoms.copy_atom import TMA_REDUCTIONS
from ..atoms.mma import MmaAtom
from . import flags, words
from .row import ArchOp, Asm, PtxForm, braces, fixed

HOPPER = ("sm_90a",)
# Targets whose warps may exchange registers.
EXCHANGING = ("sm_90a", "sm_100a", "sm_103a", "sm_110a", "sm_120a", "sm_121a")
TENSOR = "cp.async.bulk.tensor"
WIDE = ("f16", "bf16")  # the dtypes whose operands may have M or N side by side


def _wgmma_atom(op: ArchOp, forms: tuple[str, ...]) -> tuple[MmaAtom, str]:
    """The atom of `wgmma.m64n128k16.f32.bf16.km`, and what is side by side in A and in B."""
    name, _, majors = op.atom_name.rpartition(".")
    if majors not in ("kk", "km", "mk", "mm"):
        raise UsageError(f"{op.atom_name}: the atom is followed by what is side by side in A and in B, such as .km")
    atom = find(name)
    if name.partition(".")[0] not in forms:
        raise UsageError(f"{name} is no atom of {op.name}", hint=f"{forms[0]}.m64nNkK.f32.DTYPE")
    if atom.a_layout is not None and majors[0] == "m":
        raise UsageError(f"{name} holds A in registers, with K side by side, and these are {majors}")
    if atom.ab not in WIDE and majors != "kk":
        raise UsageError(f"{name} takes operands with K side by side only, and these are {majors}")
    return atom, majors


def _wgmma_text(atom: MmaAtom, a: str, b: str, keep: str, flags: str, meta: str = "") -> str:
    signs = "" if atom.c == "s32" else ", 1, 1"
    operands = f"{braces(0, atom.registers('c'))}, {a}, {b}{meta}, p{signs}{flags}"
    return f"{{\n.reg .pred p;\nsetp.ne.b32 p, {keep}, 0;\n{atom.instruction} {operands};\n}}"


def _accumulator(atom: MmaAtom) -> list[str]:
    count, kind = atom.registers("c"), "f" if atom.c == "f32" else "r"
    return [*[f"={kind}"] * count, *map(str, range(count))]


def _flags(atom: MmaAtom, majors: str) -> str:
    """Which operands have M or N side by side."""
    return "".join(f", {int(major == 'm')}" for major in majors) if atom.ab in WIDE else ""


def _wgmma(op: ArchOp) -> Asm:
    atom, majors = _wgmma_atom(op, ("wgmma", "wgmma_rs"))
    first = 2 * atom.registers("c")
    held = atom.registers("a") if atom.a_layout is not None else 0
    a = braces(first, held) if held else f"${first}"
    b, keep = (f"${first + (held or 1) + i}" for i in range(2))
    text = _wgmma_text(atom, a, b, keep, _flags(atom, majors[1:] if held else majors))
    return text, ",".join([*_accumulator(atom), *(["r"] * held or ["l"]), "l", "r"])


def _wgmma_sp(op: ArchOp) -> Asm:
    atom, majors = _wgmma_atom(op, ("wgmma_sp",))
    a, b, meta, keep = (f"${2 * atom.registers('c') + i}" for i in range(4))
    text = _wgmma_text(atom, a, b, keep, _flags(atom, majors), f", {meta}, 0")
    return text, ",".join([*_accumulator(atom), "l", "l", "r", "r"])


def _coordinates(op: ArchOp, first: int) -> tuple[int, str, str]:
    """The rank of a tensor, its coordinates in PTX, and their constraints."""
    rank = len(op.args) - first
    if not 1 <= rank <= 5:
        raise UsageError(f"{rank} coordinates: a tensor map has 1 to 5 dimensions")
    return rank, "{" + ", ".join(f"${first + i}" for i in range(rank)) + "}", ",r" * rank


def _tma_load(op: ArchOp) -> Asm:
    rank, where, more = _coordinates(op, 3)
    text = f"{TENSOR}.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [$0], [$1, {where}], [$2];"
    return text, "r,l,r" + more


def _tma_im2col(op: ArchOp) -> Asm:
    numbers = len(op.args) - 3
    rank = numbers // 2 + 1
    if numbers != 2 * rank - 2 or not 3 <= rank <= 5:
        raise UsageError(f"{numbers} numbers: images have 3 to 5 coordinates, and 2 fewer offsets")
    where = ", ".join(f"${3 + i}" for i in range(rank))
    offsets = [f"offset{i}" for i in range(rank - 2)]
    words = "".join(f"cvt.u16.u32 {name}, ${3 + rank + i};\n" for i, name in enumerate(offsets))
    name = f"{TENSOR}.{rank}d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"
    copied = f"{name} [$0], [$1, {{{where}}}], [$2], {{{', '.join(offsets)}}};"
    return f"{{\n.reg .b16 {', '.join(offsets)};\n{words}{copied}\n}}", "r,l,r" + ",r" * numbers


def _tma_multicast(op: ArchOp) -> Asm:
    rank, where, more = _coordinates(op, 4)
    name = f"{TENSOR}.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
    return f"{{\n.reg .b16 mask;\ncvt.u16.u32 mask, $3;\n{name} [$0], [$1, {where}], [$2], mask;\n}}", "r,l,r,r" + more


def _tma_store(op: ArchOp) -> Asm:
    rank, where, more = _coordinates(op, 2)
    return f"{TENSOR}.{rank}d.global.shared::cta.tile.bulk_group [$1, {where}], [$0];", "r,l" + more


def _tma_reduce(op: ArchOp) -> Asm:
    rank, where, more = _coordinates(op, 2)
    name = f"cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.{op.atom_name}.tile.bulk_group"
    return f"{name} [$1, {where}], [$0];", "r,l" + more


def _tma_prefetch(op: ArchOp) -> Asm:
    rank, where, more = _coordinates(op, 1)
    return f"cp.async.bulk.prefetch.tensor.{rank}d.L2.global.tile [$0, {where}];", "l" + more


def _wait(_: ArchOp) -> Asm:
    text = "{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [$0], $1;\n@!done bra again;\n}"
    return text.replace("again", "again_${:uid}"), "r,r"


def _try_wait(kind: str) -> str:
    return f"{{\n.reg .pred done;\nmbarrier.{kind}.parity.shared::cta.b64 done, [$1], $2;\nselp.u32 $0, 1, 0, done;\n}}"


_QUAD = """{
.reg .b16 low, high;
cvt.rn.satfinite.{atom}x2.f32 low, $2, $1;
cvt.rn.satfinite.{atom}x2.f32 high, $4, $3;
mov.b32 $0, {low, high};
}"""
_UNPACK_QUAD = """{
.reg .b16 low, high;
mov.b32 {low, high}, $2;
cvt.rn.f16x2.{atom}x2 $0, low;
cvt.rn.f16x2.{atom}x2 $1, high;
}"""
COUNTS = range(1, 1 << 20)
ROWS: dict[str, PtxForm] = {
    "mma.wgmma": PtxForm(
        _wgmma,
        "C = A x B + C of a warpgroup, in the background. B is in shared memory, and so is A, but for the atoms "
        "`wgmma_rs`. The atom is followed by `k` or `m` for A and for B: whether K or M (N) lies side by side.",
        "registers of C, descriptor or registers of A, descriptor of B, 0 to overwrite C -> registers of C",
        family=HOPPER,
    ),
    "mma.wgmma_sp": PtxForm(
        _wgmma_sp,
        "As mma.wgmma with two of four values of A along K; the metadata has two bits for each value that is there.",
        "registers of C, descriptors of A and B, metadata, 0 to overwrite C -> registers of C", family=HOPPER,
    ),
    "wgmma.fence": PtxForm(
        fixed("wgmma.fence.sync.aligned;"),
        "Orders accesses to registers of wgmma before the next wgmma.", family=HOPPER,
    ),
    "wgmma.commit_group": PtxForm(
        fixed("wgmma.commit_group.sync.aligned;"),
        "The wgmma since the last commit become a group.", family=HOPPER,
    ),
    "wgmma.wait_group": PtxForm(
        fixed("wgmma.wait_group.sync.aligned {n};"),
        "Waits until at most `n` groups of wgmma are under way.", family=HOPPER, numbers=range(8),
    ),
    "wgmma.after": PtxForm(
        fixed("{\n.reg .pred p;\nsetp.lt.f32 p, $1, 0f00000000;\n@p st.volatile.shared.f32 [$0], $1;\n}", "r,f"),
        "Waits below come after a number is computed; ptxas would move a wait for a product up, before the arithmetic "
        "that is to run beside it. The number is never below 0, else it is stored.",
        "place in shared memory, number",
        since=90,
    ),
    "mbarrier.init": PtxForm(
        fixed("mbarrier.init.shared::cta.b64 [$0], {n};", "r"),
        "Makes an mbarrier, 8 aligned bytes of shared memory; `n` arrivals complete a phase.", "mbarrier",
        numbers=COUNTS,
    ),
    "mbarrier.inval": PtxForm(
        fixed("mbarrier.inval.shared::cta.b64 [$0];", "r"), "Ends an mbarrier: its bytes may be used again.", "mbarrier"
    ),
    "mbarrier.init_fence": PtxForm(
        fixed("fence.mbarrier_init.release.cluster;"),
        "Makes new mbarriers visible to the cluster and to TMA.", since=90,
    ),
    "mbarrier.arrive": PtxForm(
        fixed("mbarrier.arrive.release.cta.shared::cta.b64 _, [$0];", "r"), "Arrives at an mbarrier of the block.",
        "mbarrier", since=90,
    ),
    "mbarrier.arrive_remote": PtxForm(
        fixed("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [$0];", "r"),
        "Arrives at an mbarrier of a block of the cluster; `cluster.map` makes its address.", "mbarrier", since=90,
    ),
    "mbarrier.arrive_remote_read": PtxForm(
        fixed("mbarrier.arrive.release.cta.shared::cluster.b64 _, [$0];", "r"),
        "As mbarrier.arrive_remote, behind reads alone: it shows other blocks nothing that the thread wrote, for which "
        "a GPU would wait.", "mbarrier", since=90,
    ),
    "mbarrier.arrive_expect_tx": PtxForm(
        fixed("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [$0], {n};", "r"),
        "Arrives, and the phase also waits for `n` bytes by TMA.", "mbarrier", since=90, numbers=COUNTS,
    ),
    "mbarrier.expect_tx": PtxForm(
        fixed("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [$0], {n};", "r"),
        "The phase also waits for `n` bytes by TMA.", "mbarrier", since=90, numbers=COUNTS,
    ),
    "mbarrier.wait": PtxForm(
        _wait, "Waits for the end of the phase of a parity, 0 or 1, as often as it takes.", "mbarrier, parity", since=90
    ),
    "mbarrier.try_wait": PtxForm(
        fixed(_try_wait("try_wait"), "=r,r,r"),
        "Waits for a while; 1 if the phase of a parity has ended, else 0.", "mbarrier, parity -> 0 or 1", since=90,
    ),
    "mbarrier.test_wait": PtxForm(
        fixed(_try_wait("test_wait"), "=r,r,r"), "1 if the phase of a parity has ended, else 0.",
        "mbarrier, parity -> 0 or 1", since=90,
    ),
    "copy.tma_load": PtxForm(
        _tma_load,
        "Copies a box of a tensor to shared memory, 128-byte aligned, in the background. Its bytes arrive at an "
        "mbarrier.",
        "destination, tensor map, mbarrier, coordinates", since=90,
    ),
    "copy.tma_load_im2col": PtxForm(
        _tma_im2col,
        "As tma_load, of pixels of images: as many as the tensor map says, from a first one on along the rows, each "
        "read at an offset.",
        "destination, tensor map, mbarrier, coordinates from channel to image, offsets from width on", since=90,
    ),
    "copy.tma_load_multicast": PtxForm(
        _tma_multicast,
        "As tma_load, to the same place in each block of the cluster whose bit is set in the mask.",
        "destination, tensor map, mbarrier, mask, coordinates", since=90,
    ),
    "copy.tma_store": PtxForm(
        _tma_store, "Copies a box from shared memory to a tensor in the background.",
        "source, tensor map, coordinates", since=90,
    ),
    "copy.tma_reduce": PtxForm(
        _tma_reduce, "Combines a box in shared memory with the same box of a tensor in global memory.",
        "source, tensor map, coordinates", since=90, atoms=TMA_REDUCTIONS,
    ),
    "copy.tma_prefetch": PtxForm(
        _tma_prefetch, "Fetches a box of a tensor into the L2 cache.", "tensor map, coordinates", since=90
    ),
    "copy.tma_prefetch_descriptor": PtxForm(
        fixed("prefetch.tensormap [$0];", "l"), "Fetches a tensor map, so that the first copy by it starts sooner.",
        "tensor map", since=90,
    ),
    "copy.bulk_load": PtxForm(
        fixed("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [$0], [$1], {n}, [$2];", "r,l,r"),
        "Copies `n` bytes that lie side by side to shared memory; both sides are 16-byte aligned.",
        "destination, source, mbarrier", since=90, numbers=range(16, 1 << 20, 16),
    ),
    "copy.bulk_store": PtxForm(
        fixed("cp.async.bulk.global.shared::cta.bulk_group [$1], [$0], {n};", "r,l"),
        "Copies `n` bytes that lie side by side from shared memory; both sides are 16-byte aligned.",
        "source, destination", since=90, numbers=range(16, 1 << 20, 16),
    ),
    "copy.bulk_commit_group": PtxForm(
        fixed("cp.async.bulk.commit_group;"), "The thread's stores by TMA since the last commit become a group.",
        since=90,
    ),
    "copy.bulk_wait_group": PtxForm(
        fixed("cp.async.bulk.wait_group.read {n};"),
        "Waits until at most `n` groups still read shared memory, which may then be written again.", since=90,
        numbers=range(8),
    ),
    "copy.bulk_wait_group_all": PtxForm(
        fixed("cp.async.bulk.wait_group {n};"), "Waits until at most `n` groups are under way, their writes included.",
        since=90, numbers=range(8),
    ),
    "fence.proxy_async": PtxForm(
        fixed("fence.proxy.async.shared::cta;"),
        "Makes the thread's writes to shared memory visible to TMA, wgmma and tcgen05.", since=90,
    ),
    "fence.proxy_async_global": PtxForm(
        fixed("fence.proxy.async.global;"),
        "Makes what the thread has written to global memory, or has waited for that others wrote, visible to TMA.",
        since=90,
    ),
    "fence.proxy_async_all": PtxForm(
        fixed("fence.proxy.async;"), "`fence.proxy_async` and `fence.proxy_async_global` in one.", since=90,
    ),
    "convert.quad": PtxForm(
        fixed(_QUAD, "=r,f,f,f,f"),
        "Rounds four f32 to e4m3 or e5m2 in one register, the first in the lowest bits. What is too large becomes the "
        "largest number.",
        "f32, f32, f32, f32 -> i32", since=89, atoms=("e4m3", "e5m2"), memory=False,
    ),
    "unpack.quad": PtxForm(
        fixed(_UNPACK_QUAD, "=r,=r,r"),
        "The four e4m3 or e5m2 of a register as two pairs of f16, which have each of these numbers, the lowest bits "
        "first.",
        "i32 -> i32, i32", since=89, atoms=("e4m3", "e5m2"), memory=False,
    ),
    "set_registers": PtxForm(
        fixed("setmaxnreg.{atom}.sync.aligned.u32 {n};"),
        "Gives the warpgroup's registers back (`dec`) or asks for more (`inc`), up to `n` a thread.",
        family=EXCHANGING, numbers=range(24, 257, 8), atoms=("inc", "dec"),
    ),
    "elect": PtxForm(
        fixed("{\n.reg .pred p;\n.reg .b32 lane;\nelect.sync lane|p, 0xffffffff;\nselp.u32 $0, 1, 0, p;\n}", "=r"),
        "1 in one lane of the warp, 0 in the others.", "-> 0 or 1", since=90,
    ),
    "cluster.arrive": PtxForm(
        fixed("barrier.cluster.arrive.{atom}.aligned;"), "Arrives at the cluster's barrier.", since=90,
        atoms=("release", "relaxed"),
    ),
    "cluster.wait": PtxForm(
        fixed("barrier.cluster.wait.acquire.aligned;"), "Waits for all threads of the cluster to arrive.", since=90
    ),
    "cluster.map": PtxForm(
        fixed("mapa.shared::cluster.u32 $0, $1, $2;", "=r,r,r"),
        "The address of the same place in the shared memory of a block of the cluster.",
        "address, the block's rank -> address (i32)", since=90,
    ),
    "cluster.rank": PtxForm(
        fixed("mov.u32 $0, %cluster_ctarank;", "=r"), "The block's rank in its cluster.", "-> i32", since=90,
        memory=False,
    ),
    "cluster.size": PtxForm(
        fixed("mov.u32 $0, %cluster_nctarank;", "=r"), "The number of blocks in the cluster.", "-> i32", since=90,
        memory=False,
    ),
    "grid_wait": PtxForm(fixed("griddepcontrol.wait;"), "Waits for the launch before this one.", since=90),
    "grid_launch": PtxForm(
        fixed("griddepcontrol.launch_dependents;"), "Lets the launch behind this one begin.", since=90
    ),
    **words.ROWS,
    **flags.ROWS,
}  # fmt: skip
