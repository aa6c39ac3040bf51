"""Loads and stores of PTX, on the executor's memories: vectors, address spaces, and registers that have addresses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from ..state.access import CLUSTER_SMEM, GMEM, LOCAL_BASE, SMEM, load, load_local, store, store_local
from ..state.block import WARP, Array, Warp
from ..state.memory import GLOBAL_BASE
from .forms import Unknown
from .registers import Read, Run, Write
from .scalar import DTYPES
from .text import BITS, Operand

SPACES = {"global": GMEM, "shared": SMEM, "shared::cta": SMEM, "shared::cluster": CLUSTER_SMEM, "local": 0}
ANY = -1  # a generic address
HINTS = ("volatile", "weak", "relaxed", "nc", "ca", "cg", "cs", "lu", "cv", "wb", "wt", "cta", "cluster", "gpu", "sys")


class Operands(Protocol):
    """What reads and writes the registers of operands."""

    def place_of(self, operand: Operand) -> Callable[[Any], Any]: ...
    def reader(self, operand: Operand, type_: str) -> Read: ...
    def writer(self, operand: Operand, type_: str) -> Write: ...
    def slot(self, operand: Operand) -> int: ...


def _of(words: Sequence[str], data: Operand) -> tuple[int, str, list[Operand]]:
    """The address space, the type and the registers of a load or a store. Raises Unknown."""
    type_, space, count = words[-1], ANY, 1
    for word in words[1:-1]:
        if word in SPACES:
            space = SPACES[word]
        elif word in ("v2", "v4", "v8"):
            count = int(word[1])
        elif word not in HINTS and not word.startswith(("L1::", "L2::")):
            raise Unknown(f"a .{word}")
    parts = list(data.parts) if data.kind == "vector" else [data]
    if type_ not in DTYPES or type_ == "pred" or len(parts) != count:
        raise Unknown(f"{len(parts)} registers of .{type_}")
    return space, type_, parts


def _space(space: int, addresses: Any) -> int:
    """The space of an address: of a generic one, by what lies there."""
    if space != ANY:
        return space
    first = int(addresses[0])
    return 0 if first >= LOCAL_BASE else GMEM if first >= GLOBAL_BASE else SMEM


def loads(words: Sequence[str], given: Sequence[Operand], of: Operands) -> Run:
    """`ld`: registers get what stands at an address."""
    space, type_, parts = _of(words, given[0])
    width, at = BITS[type_] // 8, of.place_of(given[1])
    writes = [of.writer(part, type_) for part in parts]
    slots = [of.slot(part) for part in parts]

    def run(warp: Warp) -> None:
        addresses = at(warp)
        where = _space(space, addresses)
        if where == 0:
            for number, (write, slot) in enumerate(zip(writes, slots, strict=True)):
                data = load_local(warp, addresses + number * width, width, slot)
                ticket = warp.pending.pop(slot, None)  # of bytes that nothing has written
                write(warp, _value(data, type_))
                if ticket is not None:
                    warp.pending[slot] = ticket
            return
        data = load(warp, where, addresses, width * len(parts))
        for number, write in enumerate(writes):
            write(warp, _value(data[:, number * width : (number + 1) * width], type_))

    return run


def _value(data: Any, type_: str) -> Array:
    return np.ascontiguousarray(data).view(DTYPES[type_])[:, 0]


def stores(words: Sequence[str], given: Sequence[Operand], of: Operands) -> Run:
    """`st`: registers go to an address."""
    space, type_, parts = _of(words, given[1])
    width, at = BITS[type_] // 8, of.place_of(given[0])
    reads = [of.reader(part, type_) for part in parts]

    def run(warp: Warp) -> None:
        addresses = at(warp)
        values = [np.broadcast_to(read(warp), WARP)[:, None] for read in reads]
        data = np.ascontiguousarray(np.concatenate(values, axis=1)).view(np.uint8)
        where = _space(space, addresses)
        if where == 0:
            store_local(warp, addresses, data, -1)
        else:
            store(warp, where, addresses, data, align=width * len(parts))

    return run
