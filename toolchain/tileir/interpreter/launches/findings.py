"""What is said of a fault: the operations, their places and blocks."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
from xdsl.ir import Operation, SSAValue

from toolchain.errors import SanitizerError

from ... import location
from ..analysis.fields import short_name
from ..analysis.taint import flows
from ..memory.log import EARLIER, LATER, Access, spans
from ..memory.memory import AddressSpace, Trap
from ..memory.old_values import Seen
from ..memory.shadow import Race
from ..operations.codegen import Kernel, where
from .interleaving import BlockRuntime, Snapshot, Stuck
from .runtime import Running

AROUND = {EARLIER: "an earlier launch", LATER: "a later launch"}
_SHOWN = 3  # of the places where blocks wait


def failed_op(kernel: Kernel, trap: BaseException) -> Operation | None:
    """The operation whose generated line raised a trap."""
    if isinstance(trap, Trap) and trap.op is not None:
        return trap.op
    traceback = trap.__traceback__
    found: Operation | None = None
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == kernel.code.co_filename:
            found = kernel.ops[traceback.tb_lineno - 1]
        traceback = traceback.tb_next
    return found


def describe(op: Operation | None) -> str:
    return "launch" if op is None else f"{short_name(op)} at {where(op)}"


def located(message: str, op: Operation | None) -> SanitizerError:
    """An error that knows the place of its operation."""
    error = SanitizerError(message)
    place = None if op is None else location.get(op)
    error.place = None if place is None else (place.file, place.line, place.column)
    return error


class Findings:
    """Finds words for what went wrong in the run of some grids. `before`: their memory before it;
    `changes`: the accesses, by their place, that changed memory."""

    def __init__(
        self, grids: Sequence[Running], space: AddressSpace, accesses: Sequence[Access],
        before: Snapshot | None = None, changes: Collection[int] = (),
    ) -> None:  # fmt: skip
        self.grids, self.space, self.accesses, self.before, self.changes = grids, space, accesses, before, changes
        self._depends: dict[tuple[int, int, int], bool] = {}

    def depends(self, first: Access, second: Access) -> bool:
        """True if `second` depends on the result of `first`, so that it cannot run before it."""
        key = first.device, first.site, second.site
        if key not in self._depends:
            target = self.op(second)
            self._depends[key] = any(op is target for op in _dependents(self.op(first)))
        return self._depends[key]

    def trap(self, device: int, block: tuple[int, int, int] | None, trap: Trap) -> str:
        op = failed_op(self.grids[device].kernel, trap)
        at = "before the first block" if block is None else self._named(device, block)
        return f"{describe(op)}, {at}: {trap}"

    # Races

    def race(self, race: Race) -> str:
        """Both accesses, and what is missing between them."""
        why = self._why(race)
        return (
            f"{self._did(race.second)} byte {race.offset} of an allocation that {self._did(race.first)}; "
            f"no token or atomic orders the two{'' if why is None else f': {why}'}{self._stays(race)}"
        )

    def _stays(self, race: Race) -> str:
        """The old value that a load may see."""
        read = next((each for each in (race.first, race.second) if not each.writes and each.site >= 0), None)
        if read is None or race.first.block == race.second.block or race.offset not in read.offsets():
            return ""
        old = self._old(read.number, race.offset, read.itemsize)
        now = _value(self.space[read.number].bytes, race.offset, read.itemsize)
        return "" if old is None or old == now else f"; the load may see {old}, from before the launch, and not {now}"

    def _why(self, race: Race) -> str | None:
        first, second = race.first, race.second
        if first.block == second.block:
            return None
        if first.scope and second.scope:
            return "their scopes do not span both"
        sources = _sources(self.accesses)
        if (said := self._early(race, sources)) is not None:
            return said
        if (said := self._missing(first, second, sources)) is not None:
            return said
        for wait in self.accesses:
            if wait.scope or wait.site in AROUND or not _precedes(wait, second):
                continue
            if self.op(wait) in self.grids[wait.device].kernel.waits:
                return f"{self._at(wait)} waits, but is weak: it may see an old value for ever"
        one, other = self._whose(first), self._whose(second)
        return f"{other} has read nothing that {one} released after it"

    def _missing(self, first: Access, second: Access, sources: dict[int, set[int]]) -> str | None:
        """What is wrong with the message that says to the block of `second` that `first` has happened. None if there
        is none."""
        for read in reversed(range(len(self.accesses))):
            acquire = self.accesses[read]
            if not ((second.site == LATER and acquire.device == second.device) or _precedes(acquire, second)):
                continue
            if not sources.get(read):
                continue
            for release in _origins(read, sources, self.accesses):
                wrote = self.accesses[release]
                if (first.site == EARLIER and wrote.device == first.device) or _precedes(first, wrote):
                    return self._broken(first, wrote, acquire, second)
        return None

    # Old values

    def old(self, seen: Sequence[Seen]) -> tuple[str, Operation] | None:
        """Of loads that saw old values, the first whose block had been told of the newer one, without an order between
        the two: what is missing, and the load."""
        sources = _sources(self.accesses, frozenset(each.read for each in seen))
        for each in seen:
            first, second = self.accesses[each.write], self.accesses[each.read]
            op = self.op(second)
            if each.old == each.new or op in self.grids[second.device].kernel.waits:
                continue
            if (why := self._missing(first, second, sources)) is not None:
                return (
                    f"{self._did(second)} byte {each.offset} of an allocation and may see {each.old}, which was there "
                    f"before {self._at(first)}, though a value written later has been read: {why}"
                ), op
        return None

    def _broken(self, first: Access, release: Access, acquire: Access, second: Access) -> str:
        """What is wrong with a message from one block to another."""
        if not spans(release, acquire):
            return f"the scope of {self._at(release)} or of {self._at(acquire)} does not span both"
        if not release.mode.releases:
            return f"{self._at(release)} is no release"
        if first.site != EARLIER and not release.token >> first.local & 1:
            return f"{self._at(release)} has no token of {self._at(first)}"
        if not acquire.mode.acquires:
            return f"{self._at(acquire)} is no acquire"
        if second.site != LATER and not second.token >> acquire.local & 1:
            return f"{self._at(second)} has no token of {self._at(acquire)}"
        return f"a block between {self._at(release)} and {self._at(acquire)} does not pass the release on"

    def _early(self, race: Race, sources: dict[int, set[int]]) -> str | None:
        """A block that did not wait, because what it waits for was there before the launch."""
        first, second = race.first, race.second
        written = {
            (a.number, offset)
            for a in self.accesses
            if a.block == second.block and a.writes and a.mode.wide and a.local > second.local
            for offset in a.offsets().tolist()
        }
        for n, read in enumerate(self.accesses):
            if read.block != first.block or read.local >= first.local or n not in sources or sources[n]:
                continue
            for offset in read.offsets().tolist():
                value = self._old(read.number, offset, read.itemsize)
                if (read.number, offset) in written and value:
                    return f"{self._at(read)} did not wait, it read {value} from before the launch: a reset is missing"
        return None

    # Waiting

    def stuck(self, stuck: Stuck) -> str:
        """Where the blocks wait, and for what."""
        places: dict[tuple[Any, ...], tuple[int, str, str]] = {}
        for block in stuck.waiting:
            read = self._waited_for(block)
            op = None if block.loop is None else block.running.kernel.waits[block.loop]
            key = block.device, op
            count, named, what = places.get(key, (0, self._named(block.device, block.index), ""))
            places[key] = count + 1, named, what or f" at {describe(op)}{'' if read is None else self._state(read)}"
        shown = [
            f"{named}{f' and {count - 1} more' if count > 1 else ''}{what}"
            for count, named, what in list(places.values())[:_SHOWN]
        ]
        more = f"; and at {len(places) - _SHOWN} other places" if len(places) > _SHOWN else ""
        text = f"{'; '.join(shown)}{more}{f' ({stuck.why})' if stuck.why else ''}"
        if not stuck.unstarted:
            return f"deadlock, all blocks that have not ended wait: {text}"
        device, index = stuck.unstarted[0]
        begun = sum(block.device == device for block in stuck.waiting)
        return (
            f"more blocks wait for each other than can be resident: {self.grids[device].blocks} in the grid, {begun} "
            f"at once, {self._named(device, index)} cannot begin: {text}"
        )

    def _waited_for(self, block: BlockRuntime) -> Access | None:
        """The read of the loop that a block waits in."""
        if block.loop is None:
            return None
        target = block.running.kernel.waits[block.loop]
        number = block.log.block
        mine = (a for a in reversed(self.accesses) if a.block == number and self.op(a) is target)
        return next(mine, None)

    def _state(self, read: Access) -> str:
        """What is in the place that a block waits for, and who wrote it last."""
        offsets = read.offsets().tolist()
        if not offsets:
            return ""
        offset = offsets[0]
        now = _value(self.space[read.number].bytes, offset, read.itemsize)
        text = f", where byte {offset} of an allocation holds {now}"
        changes = (self.accesses[n] for n in sorted(self.changes, reverse=True))
        last = next((a for a in changes if a.number == read.number and offset in a.offsets()), None)
        if last is not None:
            text += f", last written by {self._at(last)}"
        old = self._old(read.number, offset, read.itemsize)
        return f"{text} (before the launch it held {old})" if old else text

    # Words

    def _old(self, number: int, offset: int, itemsize: int) -> int | None:
        held = None if self.before is None else self.before.before(self.space[number])
        return None if held is None else _value(held, offset, itemsize)

    def op(self, access: Access) -> Operation:
        """The operation of a block's access."""
        return self.grids[access.device].kernel.sites[access.site]

    def _named(self, device: int, index: tuple[int, int, int]) -> str:
        return f"block {index}{f' of device {device}' if len(self.grids) > 1 else ''}"

    def _whose(self, access: Access) -> str:
        if access.site in AROUND:
            return f"{AROUND[access.site]} of device {access.device}"
        return self._named(access.device, self.grids[access.device].block(access.block))

    def _at(self, access: Access) -> str:
        if access.site in AROUND:
            return self._whose(access)
        return f"{describe(self.op(access))} in {self._whose(access)}"

    def _did(self, access: Access) -> str:
        kind = "atomically updates" if access.reads and access.writes else "writes" if access.writes else "reads"
        return f"{self._at(access)} {kind}"


def _precedes(first: Access, second: Access) -> bool:
    return first.block == second.block and first.local < second.local


def _value(held: np.ndarray[Any, Any], offset: int, itemsize: int) -> int:
    """The bytes of an element as a signed integer."""
    return int.from_bytes(held[offset : offset + itemsize].tobytes(), "little", signed=True)


def _sources(accesses: Sequence[Access], old: Collection[int] = ()) -> dict[int, set[int]]:
    """Of each atomic read, by its place in the log, the atomic writes whose values it has read; `old`: reads that saw
    other values than the newest, which are left out."""
    last: dict[tuple[int, int], int] = {}
    sources: dict[int, set[int]] = {}
    for n, access in enumerate(accesses):
        if not access.mode.wide:
            continue
        cells = [(access.number, offset) for offset in access.offsets().tolist()]
        if access.reads and n not in old:
            sources[n] = {last[cell] for cell in cells if cell in last}
        if access.writes:
            last.update(dict.fromkeys(cells, n))
    return sources


def _origins(read: int, sources: dict[int, set[int]], accesses: Sequence[Access]) -> Iterator[int]:
    """The writes that a read has read, and what the updates among them have replaced."""
    todo, seen = list(sources[read]), set[int]()
    while todo:
        n = todo.pop()
        if n in seen:
            continue
        seen.add(n)
        yield n
        if accesses[n].reads:
            todo += sources.get(n, ())


def _dependents(op: Operation) -> Iterator[Operation]:
    """The ops that depend on the results of `op`, directly or indirectly, other than through tokens."""
    seen: set[SSAValue] = set()
    todo: list[SSAValue] = [op.results[0]]
    while todo:
        value = todo.pop()
        if value in seen:
            continue
        seen.add(value)
        for use in value.uses:
            user = use.operation
            yield user
            todo.extend(target for source, target in flows(user) if source is value)
            if short_name(user) == "if" and use.index == 0:
                yield from user.walk()
