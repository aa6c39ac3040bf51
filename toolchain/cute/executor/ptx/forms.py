"""Instructions of PTX that the executor has as operations of `cute_nvgpu.arch` or `nvvm`: which one, and its operands.

A row is the pattern of an opcode and what it makes of the instruction's operands. Source: PTX ISA 9.0, the instruction
of each row; the text of the operations is that of `toolchain.cute.nvgpu`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from ...nvgpu.sm90 import WIDE
from .text import Operand

ALL = (-1, 0xFFFFFFFF)  # the mask of a whole warp


class Unknown(Exception):
    """A form of an instruction that the executor does not have. Its message says what."""


class Registers(Protocol):
    """What an instruction gives: the numbers of registers of its operands."""

    def slot(self, operand: Operand) -> int:
        """The register of an operand; of a number, one that holds it."""
        ...

    def address(self, operand: Operand) -> int:
        """The register that holds an address."""
        ...

    def fresh(self) -> int:
        """A register of its own."""
        ...


@dataclass(frozen=True)
class Form:
    """`name`: of the operation, without `cute_nvgpu.arch.`. `floats`: its operands are f32. `as_predicate`: a register
    that holds its result as 0 or 1, for a predicate; `lane`: the register that gets the lane that has the 1."""

    name: str
    ins: Sequence[int] = ()
    outs: Sequence[int] = ()
    number: int = 0
    atom: str = ""
    floats: bool = False
    as_predicate: int | None = None
    lane: int | None = None


Make = Callable[[Registers, Sequence[Operand], "re.Match[str]"], Form]


def _number(operand: Operand) -> int:
    if operand.kind != "number":
        raise Unknown("a register where the executor takes a number only")
    return operand.value


def _slots(of: Registers, operand: Operand) -> list[int]:
    parts = operand.parts if operand.kind == "vector" else (operand,)
    return [of.slot(part) for part in parts]


def _whole_warp(operand: Operand) -> None:
    if _number(operand) not in ALL:
        raise Unknown("a mask that is not of the whole warp")


def _plain(name: str) -> Make:
    """An instruction without operands."""
    return lambda _, __, ___: Form(name)


def _counted(name: str) -> Make:
    """An instruction whose only operand is a number."""
    return lambda _, given, __: Form(name, number=_number(given[0]))


def _barrier(of: Registers, given: Sequence[Operand], _: re.Match[str]) -> Form:
    if len(given) == 1:
        if _number(given[0]):
            raise Unknown("a barrier of all threads with another number than 0")
        return Form("nvvm.barrier0")
    return Form("barrier", [of.slot(given[0])], number=_number(given[1]))


def _barrier_arrive(of: Registers, given: Sequence[Operand], _: re.Match[str]) -> Form:
    return Form("barrier.arrive", [of.slot(given[0])], number=_number(given[1]))


def _warp_sync(_: Registers, given: Sequence[Operand], __: re.Match[str]) -> Form:
    _whole_warp(given[0])
    return Form("warp_sync")


def _ldmatrix(of: Registers, given: Sequence[Operand], found: re.Match[str]) -> Form:
    return Form("copy.ldmatrix", [of.address(given[1])], _slots(of, given[0]), atom=f"ldmatrix.{found[1]}")


def _transpose(of: Registers, given: Sequence[Operand], _: re.Match[str]) -> Form:
    return Form("transpose", [of.slot(given[1])], [of.slot(given[0])])


def _stmatrix(of: Registers, given: Sequence[Operand], found: re.Match[str]) -> Form:
    return Form("copy.stmatrix", [of.address(given[0]), *_slots(of, given[1])], atom=f"stmatrix.{found[1]}")


def _cp_async(of: Registers, given: Sequence[Operand], _: re.Match[str]) -> Form:
    ins = [of.address(given[0]), of.address(given[1]), *map(of.slot, given[3:])]
    return Form("copy.cp_async", ins, number=_number(given[2]))


def _mma(of: Registers, given: Sequence[Operand], found: re.Match[str]) -> Form:
    sparse, (tile, c, ab) = bool(found[1]), found.group(2, 3, 4)
    d, *held = (_slots(of, operand) for operand in given[:4])
    ins = [slot for each in held for slot in each]
    if sparse:
        if _number(given[5]):
            raise Unknown("metadata that other threads give")
        ins.append(of.slot(given[4]))
    return Form(f"mma.sync{'_sp' * sparse}", ins, d, atom=f"mma{'_sp' * sparse}.{tile}.{c}.{ab}")


def _wgmma(of: Registers, given: Sequence[Operand], found: re.Match[str]) -> Form:
    sparse, (tile, c, ab) = bool(found[1]), found.group(2, 3, 4)
    held = given[1].kind == "vector"
    d, a, b = (_slots(of, operand) for operand in given[:3])
    rest = list(given[3:])
    meta = [of.slot(rest.pop(0))] if sparse else []
    if sparse and _number(rest.pop(0)):
        raise Unknown("metadata that other threads give")
    keep, flags = of.slot(rest[0]), [_number(each) for each in rest[1:]]
    if c != "s32" and (flags[:2] != [1, 1] or not flags):
        raise Unknown("operands whose sign is changed")
    sides = flags[2 if c != "s32" else 0 :] if ab in WIDE else []
    majors = "".join("m" if each else "k" for each in ([0] * held + sides or [0, 0]))
    name = "wgmma_sp" if sparse else "wgmma_rs" if held else "wgmma"
    made = [*d, *a, *b, *meta, keep]
    return Form(f"mma.wgmma{'_sp' * sparse}", made, d, atom=f"{name}.{tile}.{c}.{ab}.{majors}")


def _shuffle(of: Registers, given: Sequence[Operand], found: re.Match[str]) -> Form:
    mode = {"bfly": "xor"}.get(found[1], found[1])
    _whole_warp(given[4])
    if given[0].kind == "pair" or _number(given[3]) != (0 if mode == "up" else 31):
        raise Unknown("a shuffle within a part of the warp")
    ins, out = [of.slot(given[1])], [of.slot(given[0])]
    if mode == "idx":
        return Form("shuffle.idx", [*ins, of.slot(given[2])], out)
    return Form(f"shuffle.{mode}", ins, out, number=_number(given[2]))


def _ballot(of: Registers, given: Sequence[Operand], _: re.Match[str]) -> Form:
    _whole_warp(given[2])
    return Form("vote_ballot", [of.slot(given[1])], [of.slot(given[0])])


def _elect(of: Registers, given: Sequence[Operand], _: re.Match[str]) -> Form:
    _whole_warp(given[1])
    lane, chosen = given[0].parts
    made = of.fresh()
    return Form("elect", outs=[made], as_predicate=of.slot(chosen), lane=None if lane.kind == "_" else of.slot(lane))


def _pair(of: Registers, given: Sequence[Operand], found: re.Match[str]) -> Form:
    return Form("convert.pair", [of.slot(given[2]), of.slot(given[1])], [of.slot(given[0])], atom=found[1], floats=True)


def _function(name: str) -> Make:
    return lambda of, given, _: Form(name, [of.slot(given[1])], [of.slot(given[0])], floats=True)


def _of_mbarrier(name: str, *, at: int = 0, counts: bool = False) -> Make:
    """An instruction on an mbarrier. `at`: the operand of its address; behind it may be a count."""
    return lambda of, given, _: Form(name, [of.address(given[at])], number=_number(given[at + 1]) if counts else 0)


def _mbarrier_wait(of: Registers, given: Sequence[Operand], found: re.Match[str]) -> Form:
    ins, made = [of.address(given[1]), of.slot(given[2])], of.fresh()
    return Form(f"mbarrier.{found[1]}_wait", ins, [made], as_predicate=of.slot(given[0]))


def _box(of: Registers, operand: Operand) -> tuple[int, list[int]]:
    """The tensor map and the coordinates of `[map, {x, y}]`."""
    return of.slot(operand.parts[0]), _slots(of, operand.parts[1])


def _tma_load(of: Registers, given: Sequence[Operand], found: re.Match[str]) -> Form:
    map_, where = _box(of, given[1])
    ins = [of.address(given[0]), map_, of.address(given[2]), *map(of.slot, given[3:]), *where]
    return Form("copy.tma_load_multicast" if found[1] else "copy.tma_load", ins)


def _tma_im2col(of: Registers, given: Sequence[Operand], _: re.Match[str]) -> Form:
    map_, where = _box(of, given[1])
    ins = [of.address(given[0]), map_, of.address(given[2]), *where, *_slots(of, given[3])]
    return Form("copy.tma_load_im2col", ins)


def _tma_store(of: Registers, given: Sequence[Operand], found: re.Match[str]) -> Form:
    map_, where = _box(of, given[0])
    reduction = found[1] if found.re.groups else ""
    name = "copy.tma_reduce" if reduction else "copy.tma_store"
    return Form(name, [of.address(given[1]), map_, *where], atom=reduction)


def _bulk_load(of: Registers, given: Sequence[Operand], _: re.Match[str]) -> Form:
    ins = [of.address(given[0]), of.address(given[1]), of.address(given[3])]
    return Form("copy.bulk_load", ins, number=_number(given[2]))


def _bulk_store(of: Registers, given: Sequence[Operand], _: re.Match[str]) -> Form:
    return Form("copy.bulk_store", [of.address(given[1]), of.address(given[0])], number=_number(given[2]))


def _map_block(of: Registers, given: Sequence[Operand], _: re.Match[str]) -> Form:
    return Form("cluster.map", [of.slot(given[1]), of.slot(given[2])], [of.slot(given[0])])


_SHARED = r"(?:\.shared(?:::cta)?)?"
_TENSOR = r"cp\.async\.bulk\.tensor\.[1-5]d"
ROWS: Sequence[tuple[str, Make]] = (
    (r"(?:bar|barrier)\.sync(?:\.aligned)?", _barrier),
    (r"bar\.arrive", _barrier_arrive),
    (r"bar\.warp\.sync", _warp_sync),
    (r"ldmatrix\.sync\.aligned\.m8n8\.(x[124](?:\.trans)?)\.shared(?:::cta)?\.b16", _ldmatrix),
    (r"movmatrix\.sync\.aligned\.m8n8\.trans\.b16", _transpose),
    (r"stmatrix\.sync\.aligned\.m8n8\.(x[124](?:\.trans)?)\.shared(?:::cta)?\.b16", _stmatrix),
    (r"cp\.async\.c[ag]\.shared(?:::cta)?\.global(?:\.L2::128B)?", _cp_async),
    (r"cp\.async\.commit_group", _plain("nvvm.cp.async.commit.group")),
    (r"cp\.async\.wait_group", _counted("nvvm.cp.async.wait.group")),
    (rf"cp\.async\.mbarrier\.arrive\.noinc{_SHARED}\.b64", _of_mbarrier("copy.cp_async_mbarrier_arrive")),
    (r"mma(\.sp::ordered_metadata)?\.sync\.aligned\.(m\d+n\d+k\d+)\.row\.col\.(\w+)\.(\w+)\.\4\.\3", _mma),
    (r"wgmma\.mma_async(\.sp)?\.sync\.aligned\.(m\d+n\d+k\d+)\.(\w+)\.(\w+)\.\4", _wgmma),
    (r"wgmma\.fence\.sync\.aligned", _plain("wgmma.fence")),
    (r"wgmma\.commit_group\.sync\.aligned", _plain("wgmma.commit_group")),
    (r"wgmma\.wait_group\.sync\.aligned", _counted("wgmma.wait_group")),
    (r"shfl\.sync\.(idx|bfly|down|up)\.b32", _shuffle),
    (r"vote\.sync\.ballot\.b32", _ballot),
    (r"elect\.sync", _elect),
    (r"cvt\.rn\.(f16|bf16)x2\.f32", _pair),
    (r"cvt\.rn\.satfinite\.(e4m3|e5m2)x2\.f32", _pair),
    (r"ex2\.approx(?:\.ftz)?\.f32", _function("exp2")),
    (r"lg2\.approx(?:\.ftz)?\.f32", _function("log2")),
    (r"rcp\.approx(?:\.ftz)?\.f32", _function("reciprocal")),
    (r"rsqrt\.approx(?:\.ftz)?\.f32", _function("rsqrt")),
    (r"sin\.approx(?:\.ftz)?\.f32", _function("sin")),
    (r"cos\.approx(?:\.ftz)?\.f32", _function("cos")),
    (r"tanh\.approx\.f32", _function("tanh")),
    (rf"mbarrier\.init{_SHARED}\.b64", _of_mbarrier("mbarrier.init", counts=True)),
    (rf"mbarrier\.inval{_SHARED}\.b64", _of_mbarrier("mbarrier.inval")),
    (rf"mbarrier\.arrive(?:\.release\.cta)?{_SHARED}\.b64", _of_mbarrier("mbarrier.arrive", at=1)),
    (r"mbarrier\.arrive\.release\.cluster\.shared::cluster\.b64", _of_mbarrier("mbarrier.arrive_remote", at=1)),
    (r"mbarrier\.arrive\.release\.cta\.shared::cluster\.b64", _of_mbarrier("mbarrier.arrive_remote_read", at=1)),
    (
        rf"mbarrier\.arrive\.expect_tx(?:\.release\.cta)?{_SHARED}\.b64",
        _of_mbarrier("mbarrier.arrive_expect_tx", at=1, counts=True),
    ),
    (rf"mbarrier\.expect_tx(?:\.relaxed\.cta)?{_SHARED}\.b64", _of_mbarrier("mbarrier.expect_tx", counts=True)),
    (rf"mbarrier\.(try|test)_wait\.parity(?:\.acquire\.cta)?{_SHARED}\.b64", _mbarrier_wait),
    (r"fence\.mbarrier_init\.release\.cluster", _plain("mbarrier.init_fence")),
    (r"fence\.proxy\.async\.shared::cta", _plain("fence.proxy_async")),
    (r"fence\.proxy\.async\.global", _plain("fence.proxy_async_global")),
    (r"fence\.proxy\.async", _plain("fence.proxy_async_all")),
    (
        rf"{_TENSOR}\.shared::cluster\.global(?:\.tile)?\.mbarrier::complete_tx::bytes(\.multicast::cluster)?",
        _tma_load,
    ),
    (rf"{_TENSOR}\.shared::cluster\.global\.im2col\.mbarrier::complete_tx::bytes", _tma_im2col),
    (rf"{_TENSOR}\.global\.shared::cta(?:\.tile)?\.bulk_group", _tma_store),
    (r"cp\.reduce\.async\.bulk\.tensor\.[1-5]d\.global\.shared::cta\.(\w+)(?:\.tile)?\.bulk_group", _tma_store),
    (r"cp\.async\.bulk\.prefetch\.tensor\.[1-5]d\.L2\.global(?:\.tile)?", _plain("copy.tma_prefetch")),
    (r"prefetch\.tensormap", _plain("copy.tma_prefetch_descriptor")),
    (r"cp\.async\.bulk\.shared::cluster\.global\.mbarrier::complete_tx::bytes", _bulk_load),
    (r"cp\.async\.bulk\.global\.shared::cta\.bulk_group", _bulk_store),
    (r"cp\.async\.bulk\.commit_group", _plain("copy.bulk_commit_group")),
    (r"cp\.async\.bulk\.wait_group\.read", _counted("copy.bulk_wait_group")),
    (r"cp\.async\.bulk\.wait_group", _counted("copy.bulk_wait_group_all")),
    (r"setmaxnreg\.(?:inc|dec)\.sync\.aligned\.u32", _counted("set_registers")),
    (r"barrier\.cluster\.arrive(?:\.release)?(?:\.aligned)?", _plain("nvvm.cluster.arrive")),
    (r"barrier\.cluster\.arrive\.relaxed\.aligned", lambda _, __, ___: Form("cluster.arrive", atom="relaxed")),
    (r"barrier\.cluster\.wait(?:\.acquire)?(?:\.aligned)?", _plain("nvvm.cluster.wait")),
    (r"mapa\.shared::cluster\.u32", _map_block),
    (r"griddepcontrol\.wait", _plain("grid_wait")),
    (r"griddepcontrol\.launch_dependents", _plain("grid_launch")),
)
_PATTERNS = [(re.compile(pattern), make) for pattern, make in ROWS]


@functools.cache
def _row(opcode: str) -> tuple[re.Match[str], Make] | None:
    found = ((pattern.fullmatch(opcode), make) for pattern, make in _PATTERNS)
    return next(((match, make) for match, make in found if match is not None), None)


def form_of(opcode: str, operands: Sequence[Operand], of: Registers) -> Form | None:
    """The operation of an instruction, or None if there is none. Raises Unknown."""
    if (row := _row(opcode)) is None:
        return None
    found, make = row
    return make(of, operands, found)
