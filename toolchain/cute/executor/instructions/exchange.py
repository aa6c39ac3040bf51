"""Instructions from registers to registers: shuffles and votes of a warp, conversions, approximate functions.

Functions that a GPU approximates are computed exactly and rounded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from ..state.block import WARP, Array, Ticket, Warp
from ..state.call import Call, Run
from ..state.findings import NoSemantics, Uninitialised
from .matrices import DTYPES

LAST = WARP - 1


def shuffle(of: Callable[[Call, Warp], Array]) -> Run:
    """Each thread gets the value of another. A lane outside of the warp stands for the own one."""

    def run(call: Call, warp: Warp) -> None:
        other = of(call, warp)
        other = np.where((other < 0) | (other > LAST), warp.lanes, other)
        if (gone := warp.exists & ~warp.exists[other]).any():
            lane = int(gone.argmax())
            said = f"takes the value of lane {other[lane]} of the warp, which the block does not have"
            warp.fail(Uninitialised, said, lane=lane)
        call.give(warp, [call.arg(warp, 0)[other]])

    return run


def by_index(call: Call, warp: Warp) -> Array:
    return call.arg(warp, 1) & LAST


def by_xor(call: Call, warp: Warp) -> Array:
    return warp.lanes ^ call.number


def by_step(sign: int) -> Callable[[Call, Warp], Array]:
    def lane(call: Call, warp: Warp) -> Array:
        return warp.lanes + sign * call.number

    return lane


def vote_ballot(call: Call, warp: Warp) -> None:
    """A bit for each thread whose value is not 0."""
    bits = ((call.arg(warp, 0) != 0) & warp.active).astype(np.uint64) << warp.lanes.astype(np.uint64)
    call.give(warp, [np.array([bits.sum()]).astype(np.uint32).view(np.int32)])


def elect(call: Call, warp: Warp) -> None:
    """1 in one thread."""
    call.give(warp, [(warp.lanes == warp.first_active()).astype(np.int32)])


def clock(call: Call, warp: Warp) -> None:
    """There is no time here: it stands still."""
    call.give(warp, [np.zeros(1, np.int64)])


def convert(call: Call, warp: Warp) -> None:
    """Several f32 in one register, the first in the lowest bits. Those of 8 bits saturate."""
    values = np.stack([call.arg(warp, number) for number in range(len(call.ins))], axis=1)
    dtype = np.dtype(DTYPES[call.atom])
    if dtype.itemsize == 1:
        largest = np.float32(ml_dtypes.finfo(dtype).max)
        values = np.clip(values, -largest, largest)
    rounded = np.ascontiguousarray(values.astype(dtype))
    call.give(warp, [rounded.view(f"i{dtype.itemsize * len(call.ins)}")[:, 0]])


def unpack_pair(call: Call, warp: Warp) -> None:
    """Two f16 or bf16 of one register, the low half first."""
    halves = np.ascontiguousarray(call.arg(warp, 0)).view(DTYPES[call.atom]).reshape(-1, 2).astype(np.float32)
    call.give(warp, [halves[:, 0].copy(), halves[:, 1].copy()])


def halves(pairs: Array, atom: str) -> Array:
    """The two e4m3 or e5m2 in each number of 16 bits as two f16 in one of 32."""
    narrow = np.ascontiguousarray(pairs).view(DTYPES[atom])
    return narrow.astype(np.float16).view(np.int32)


def unpack_quad(call: Call, warp: Warp) -> None:
    """Four e4m3 or e5m2 of one register as two pairs of f16, the lowest bits first."""
    words = np.ascontiguousarray(call.arg(warp, 0)).view(np.int16).reshape(-1, 2)
    call.give(warp, [halves(words[:, i], call.atom) for i in range(2)])


def permuted(a: Array, b: Array, selector: Array) -> Array:
    """Four bytes of the eight in a and b, by the digits to base 16 of a selector. Raises NoSemantics for a digit that
    asks for a byte's sign."""
    if (selector & 0x8888).any():
        raise NoSemantics("prmt that repeats a byte's sign is not known here")
    both = np.stack([np.ascontiguousarray(x).view(np.uint8).reshape(-1, 4) for x in (a, b)], axis=1).reshape(-1, 8)
    digits = np.stack([selector >> 4 * i & 7 for i in range(4)], axis=-1)
    digits = np.broadcast_to(digits, (len(both), 4)).astype(np.int64)
    return np.ascontiguousarray(np.take_along_axis(both, digits, axis=1)).view(np.int32)[:, 0]


def permute(call: Call, warp: Warp) -> None:
    """Four bytes of two registers."""
    call.give(warp, [permuted(call.arg(warp, 0), call.arg(warp, 1), np.array([call.number]))])


def registers(call: Call, warp: Warp) -> None:
    """The same registers, also those that have no value yet."""
    tickets: list[Ticket | None] = [warp.pending.get(register) for register in call.ins]
    starts = [warp.loaded.get(register) for register in call.ins]
    call.give(warp, [warp.env[register] for register in call.ins])
    for register, ticket, start in zip(call.outs, tickets, starts, strict=True):
        if ticket is not None:
            warp.pending[register] = ticket
        if start is not None:
            warp.loaded[register] = start


def function(of: Callable[[Any], Any]) -> Run:
    """A function of an f32."""

    def run(call: Call, warp: Warp) -> None:
        value = call.arg(warp, 0)
        call.give(warp, [of(value.astype(np.float64)).astype(np.float32)])

    return run
