"""Barriers of threads, and mbarriers in shared memory."""

from __future__ import annotations

import numpy as np

from ..state.access import SMEM, note_write, own, parts
from ..state.block import WARP, Block, Mbarrier, NamedBarrier, Wait, Warp
from ..state.call import Call
from ..state.clocks import GENERIC, INITS, NOTHING, Clock, merged
from ..state.findings import DivergentBarrier, Finding, MissingFence, Race, Uninitialised
from ..state.memory import SHARED_BASE

MBARRIER = 8  # bytes
CLUSTER = -1  # the number of the cluster's barrier


def barrier0(_: Call, warp: Warp) -> Wait:
    """All threads of the block wait for each other."""
    return _arrive(warp, 0, -(-warp.block.threads // WARP) * WARP, waits=True)


def barrier(call: Call, warp: Warp) -> Wait:
    """Some threads of the block wait for each other: the number of the barrier, and how many."""
    return _arrive(warp, call.one(warp, 0), call.number, waits=True)


def barrier_arrive(call: Call, warp: Warp) -> None:
    """As `barrier`, without waiting."""
    _arrive(warp, call.one(warp, 0), call.number, waits=False)


def _arrive(warp: Warp, number: int, threads: int, *, waits: bool) -> Wait:
    return arrive_at(warp, number, threads, warp.block.barriers, waits=waits)[0]


def arrive_at(
    warp: Warp, number: int, threads: int, barriers: dict[int, NamedBarrier], *, waits: bool = False,
    releases: bool = True,
) -> tuple[Wait, NamedBarrier]:  # fmt: skip
    """A warp arrives at one of some barriers. `waits`: it goes on behind it only; `releases`: what it did is known
    there."""
    block = warp.block
    one = barriers.setdefault(number, NamedBarrier(threads))
    if one.arrived and one.threads != threads:
        warp.fail(DivergentBarrier, f"barrier {number} is for {threads} threads here and for {one.threads} elsewhere")
    one.threads = threads
    published = block.clocks.release(warp.agent_number)
    published = published if releases else np.zeros_like(published)
    one.gathered = published if one.gathered is None else merged(one.gathered, published)
    one.arrived += WARP
    if waits:
        one.waiting.append(warp.agent_number)
    if one.arrived > threads:
        warp.fail(DivergentBarrier, f"{one.arrived} threads arrive at barrier {number}, which is for {threads}")
    wanted = one.generation + 1
    if one.arrived == threads:
        for other in one.waiting:
            block.clocks.acquire(other, one.gathered)
        one.last = one.gathered
        one.gathered, one.arrived, one.generation, one.waiting = None, 0, wanted, []
    name = f"barrier {number}" if number != CLUSTER else "the cluster's barrier"
    waiting = Wait(lambda: f"{name}: {one.arrived} of {threads} threads are there", lambda: one.generation >= wanted)
    return waiting, one


def warp_sync(_: Call, warp: Warp) -> None:
    """The threads of the warp wait for each other."""
    warp.block.clocks.join(warp.agent_number)


def init(call: Call, warp: Warp) -> None:
    """Makes mbarriers for `n` arrivals."""
    block = warp.block
    for _, lanes, where in parts(warp, SMEM, call.arg(warp, 0), MBARRIER, "makes an mbarrier of"):
        note_write(warp, block.shared, where, own(warp, lanes))
    for address in _addresses(call, warp):
        # A new agent, not one by name: the phases begin anew, and two mbarriers of one line of Python have one name.
        agent = block.clocks.agent(f"TMA for the mbarrier at {block.shared.place(address - SHARED_BASE)}")
        inited = warp.agent_number, block.clocks.now(warp.agent_number)
        block.mbarriers[address] = Mbarrier(call.number, call.number, agent, inited, NOTHING, NOTHING)


def _addresses(call: Call, warp: Warp) -> list[int]:
    return [int(address) for address in call.arg(warp, 0)[warp.active]]


def mbarrier(warp: Warp, address: int, block: Block | None = None, *, by_tma: bool = False) -> Mbarrier:
    """The mbarrier at an address of a block, by default the warp's. Raises a finding if there is none, or if this warp,
    or TMA on its behalf, may not see it yet."""
    block = block or warp.block
    byte, tensor = address - SHARED_BASE, block.shared.name
    place = block.shared.place(byte)
    if (one := block.mbarriers.get(address)) is None:
        warp.fail(Uninitialised, f"there is no mbarrier at {place}", tensor=tensor, address=byte)
    by, time = one.inited
    if block.clocks.seen[GENERIC, warp.agent_number, by] < time:
        said = f"no barrier orders this after the init of the mbarrier at {place}"
        warp.fail(Race, said, tensor=tensor, address=byte)
    if by_tma and block.clocks.seen[INITS, warp.agent_number, by] < time:
        said = f"no fence makes the init of the mbarrier at {place} visible to TMA"
        warp.fail(MissingFence, said, tensor=tensor, address=byte)
    return one


def arrive(call: Call, warp: Warp) -> None:
    """Each active thread arrives."""
    addresses = _addresses(call, warp)
    published = warp.block.clocks.release(warp.agent_number, warp.active)
    for address in addresses:
        arrived(warp, mbarrier(warp, address), published)


def arrive_expect_tx(call: Call, warp: Warp) -> None:
    """Arrives, and `n` bytes are to come in this phase."""
    addresses = _addresses(call, warp)
    published = warp.block.clocks.release(warp.agent_number, warp.active)
    for address in addresses:
        one = mbarrier(warp, address)
        one.tx += call.number
        arrived(warp, one, published)


def arrived(warp: Warp, one: Mbarrier, published: Clock) -> None:
    """One thread has arrived."""
    one.gathered = merged(one.gathered, published)
    one.pending -= 1
    if one.pending < 0:
        warp.fail(Finding, f"more than {one.count} arrivals in one phase of an mbarrier")
    complete(one)


def expect_tx(call: Call, warp: Warp) -> None:
    """`n` bytes are to come in this phase."""
    for address in _addresses(call, warp):
        mbarrier(warp, address).tx += call.number


def invalidate(call: Call, warp: Warp) -> None:
    """Ends an mbarrier."""
    for address in _addresses(call, warp):
        mbarrier(warp, address)
        del warp.block.mbarriers[address]


def complete(one: Mbarrier) -> None:
    """Ends the phase if all have arrived and all bytes are there."""
    if one.pending or one.tx:
        return
    one.phase += 1
    one.pending = one.count
    time = one.gathered
    if one.agent >= time.shape[1]:
        time = merged(time, np.zeros((len(time), one.agent + 1), np.int32))
    time[:, one.agent] = one.phase
    one.gathered = one.published = time


def wait(call: Call, warp: Warp) -> Wait:
    """Waits for the phase of a parity to end."""
    return _waiting(call, warp)


def try_wait(call: Call, warp: Warp) -> Wait:
    """As `wait`, with the result 1: an attempt may take as long as it wants."""
    one = _waiting(call, warp)

    def resume() -> None:
        one.resume()
        call.give(warp, [np.array([1], np.int32)])

    return Wait(one.what, one.ready, resume)


def test_wait(call: Call, warp: Warp) -> Wait:
    """1 if the phase has ended. The others go on before the warp asks again."""
    one, asked = _waiting(call, warp), list[bool]()

    def ready() -> bool:
        asked.append(one.ready())
        return len(asked) > 1

    def resume() -> None:
        if ended := one.ready():
            one.resume()
        call.give(warp, [np.array([ended], np.int32)])

    return Wait(one.what, ready, resume)


def _waiting(call: Call, warp: Warp) -> Wait:
    address, parity = call.one(warp, 0), call.one(warp, 1) & 1
    one, block = mbarrier(warp, address), warp.block

    def what() -> str:
        place = block.shared.place(address - SHARED_BASE)
        bytes_ = f"{one.tx} bytes are missing" if one.tx >= 0 else f"{-one.tx} bytes have come that nobody expects"
        missing = f"{one.pending} of {one.count} arrivals are missing, {bytes_}"
        return f"phase {parity} of the mbarrier at {place}, which is in phase {one.phase & 1}: {missing}"

    return Wait(what, lambda: one.phase & 1 != parity, lambda: block.clocks.acquire(warp.agent_number, one.published))


def fence(_: Call, warp: Warp) -> None:
    """The writes of the threads to shared memory are there for the asynchronous proxy."""
    warp.block.clocks.fence(warp.agent_number)


def fence_global(_: Call, warp: Warp) -> None:
    """Those to global memory are."""
    warp.block.clocks.fence_global(warp.agent_number)


def fence_all(call: Call, warp: Warp) -> None:
    """Both are."""
    fence(call, warp)
    fence_global(call, warp)


def grid_wait(_: Call, warp: Warp) -> None:
    """The launch before has ended."""
    warp.ahead = False


def init_fence(_: Call, warp: Warp) -> None:
    """The inits of mbarriers are there for TMA."""
    warp.block.clocks.fence_inits(warp.agent_number)
