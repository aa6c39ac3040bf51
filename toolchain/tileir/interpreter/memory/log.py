"""The accesses of one launch, recorded while its blocks run, and what each of them comes after.

An access of a block comes after those of other blocks that were released to it: a release publishes the accesses that
its token comes after, an atomic update passes on what the value that it replaces had published, and an acquire that
reads the value hands it to the accesses whose token comes after the acquire. This is the causality order of the PTX
memory model, with the order of tokens in place of program order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ..numbers.elements import Array
from .memory import Allocation
from .old_values import OldValues
from .views import TileView

WEAK, BLOCK, DEVICE, SYS = range(4)  # scopes
Offsets = Array | range  # of the bytes where elements start
Clock = Mapping[int, int]  # by block, the accesses of it that have happened: bit n is the one with local number n
NOTHING: Clock = {}


class Mode(NamedTuple):
    """How an operation accesses memory, fixed when its kernel is prepared."""

    reads: bool
    writes: bool
    scope: int = WEAK
    acquires: bool = False
    releases: bool = False

    @property
    def wide(self) -> bool:
        """True if blocks may communicate by it."""
        return self.scope > BLOCK


class Access(NamedTuple):
    """One memory operation that one block ran. `token`: bit n is set if it is ordered after access n of its block.
    `after`: the accesses of other blocks that it comes after. `where`: the tile index of a view, or byte offsets."""

    site: int
    device: int
    block: int
    local: int
    token: int
    mode: Mode
    after: Clock
    number: int
    itemsize: int
    view: TileView | None
    where: tuple[int, ...] | Offsets

    @property
    def reads(self) -> bool:
        return self.mode.reads

    @property
    def writes(self) -> bool:
        return self.mode.writes

    @property
    def scope(self) -> int:
        return self.mode.scope

    def offsets(self) -> Array:
        """The byte offset of each element that it touches."""
        if self.view is None:
            return np.asarray(self.where)  # of a range too
        return view_offsets(self.view, tuple(self.where))


def view_offsets(view: TileView, index: tuple[int, ...]) -> Array:
    """The byte offset of each element of a tile that lies in its tensor."""
    window = view.window(index)
    offsets = np.full((), window.offset, np.int64)
    for size, stride in zip(window.shape, window.strides, strict=True):
        offsets = offsets[..., None] + np.arange(size) * stride
    return offsets.reshape(-1) if math.prod(window.shape) else np.empty(0, np.int64)


def spans(first: Access, second: Access) -> bool:
    """True if both are atomic, with scopes that hold the blocks of both."""
    return min(first.scope, second.scope) >= (DEVICE if first.device == second.device else SYS)


EARLIER, LATER = -1, -2  # in place of a site: what a device's launches before and after this one do


@dataclass(frozen=True)
class Around:
    """What the launches before or after this one do with memory that other devices reach. `offsets`: of the elements,
    in bytes. `writes`: they write it, else they read it."""

    memory: Allocation
    offsets: Array
    itemsize: int
    writes: bool


@dataclass
class Shared:
    """What the blocks of a launch record together. `released`: for each allocation and byte offset, what the value
    there publishes, by device and scope of the release. `old`: loads see old values where they may."""

    accesses: list[Access] = field(default_factory=list)
    released: dict[int, dict[int, Mapping[tuple[int, int], Clock]]] = field(default_factory=dict)
    old: OldValues | None = None


class AccessLog:
    """The accesses of the block that runs. A token is an int whose bit n says "after access n of this block"."""

    def __init__(self, shared: Shared | None = None, device: int = 0, before: Clock = NOTHING) -> None:
        """`before`: what happened before the launch, and so before every access of it."""
        self.shared = Shared() if shared is None else shared
        self.device = device
        self._before = before
        self.begin(-1)

    @property
    def known(self) -> Clock:
        """All that has happened when the block has ended: its own accesses, and those of others that it knows of."""
        own = {self.block: self.bit * 2 - 1} if self.bit else NOTHING
        return merged([self._before, own, *(clock for _, clock in self._acquired)])

    @property
    def accesses(self) -> list[Access]:
        return self.shared.accesses

    def begin(self, block: int) -> None:
        self.block, self._local, self.bit = block, 0, 0
        self._acquired: list[tuple[int, Clock]] = []  # the bit of an acquire, and what it has read
        self._acquires = 0
        self._clocks: dict[int, Clock] = {0: self._before}  # by the acquires that a token comes after

    def view(self, site: int, token: int, mode: Mode, view: TileView, index: tuple[int, ...]) -> None:
        self._append(site, token, mode, view.number, view.element.storage.itemsize, view, index)
        if self._communicates(mode, view.number):
            self._communicate(token, mode, view.number, view_offsets(view, index).tolist())

    def cells(self, site: int, token: int, mode: Mode, number: int, itemsize: int, offsets: Offsets) -> None:
        self._append(site, token, mode, number, itemsize, None, offsets)
        if self._communicates(mode, number):
            self._communicate(token, mode, number, np.asarray(offsets).tolist())

    def _communicates(self, mode: Mode, number: int) -> bool:
        if mode.acquires or mode.releases or (mode.wide and self.shared.old is not None):
            return True
        return mode.writes and number in self.shared.released

    def _append(
        self, site: int, token: int, mode: Mode, number: int, itemsize: int, view: TileView | None,
        where: tuple[int, ...] | Offsets,
    ) -> None:  # fmt: skip
        local = self._local
        self._local = local + 1
        self.bit = 1 << local
        after = self._clock(token) if self._acquires else self._before
        self.shared.accesses.append(
            Access(site, self.device, self.block, local, token, mode, after, number, itemsize, view, where)
        )

    def _clock(self, token: int) -> Clock:
        """The accesses of other blocks that what has this token comes after."""
        acquires = token & self._acquires
        if acquires not in self._clocks:
            self._clocks[acquires] = merged([
                self._before, *(clock for bit, clock in self._acquired if bit & acquires)
            ])  # fmt: skip
        return self._clocks[acquires]

    def _communicate(self, token: int, mode: Mode, number: int, offsets: list[int]) -> None:
        published = self.shared.released.setdefault(number, {})
        seen = published if self.shared.old is None or not mode.wide else self._seen(mode, number, offsets)
        if mode.acquires:
            found = [
                clock
                for offset in offsets
                for (device, scope), clock in seen.get(offset, {}).items()
                if min(scope, mode.scope) >= (DEVICE if device == self.device else SYS)
            ]
            if found:
                self._acquired.append((self.bit, merged(found)))
                self._acquires |= self.bit
        if not mode.writes:
            return
        mine = {**(own := self._clock(token | self.bit)), self.block: own.get(self.block, 0) | token | self.bit}
        key = self.device, mode.scope
        for offset in offsets:
            before = published.get(offset, {}) if mode.reads and mode.wide else {}  # only an update passes it on
            if mode.releases:
                published[offset] = {**before, key: merged((before.get(key, NOTHING), mine))}
            elif not before:
                published.pop(offset, None)

    def _seen(self, mode: Mode, number: int, offsets: list[int]) -> Mapping[int, Mapping[tuple[int, int], Clock]]:
        """Takes the last access to what may hold old values. Returns what the values that it sees publish."""
        old, published, access = self.shared.old, self.shared.released[number], self.shared.accesses[-1]
        assert old is not None
        last = len(self.shared.accesses) - 1
        seen: dict[int, Mapping[tuple[int, int], Clock]] = {}
        for offset in offsets:
            place, newest = (number, offset, access.itemsize), published.get(offset, {})
            if mode.writes:
                old.write(last, self.block, access.local, place, newest)
                seen[offset] = newest
            else:
                seen[offset] = old.read(last, self.block, access.site, access.after, place, newest)
        return seen


def merged(clocks: Iterable[Clock]) -> Clock:
    """All that at least one of them holds."""
    total: dict[int, int] = {}
    for clock in clocks:
        for block, accesses in clock.items():
            total[block] = total.get(block, 0) | accesses
    return total
