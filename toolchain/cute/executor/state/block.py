"""The state of a block while it runs: its warps, its memories, and what they wait for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Operation

from ...nvvm.location import place
from . import banks
from .clocks import LANES, Clock, Clocks
from .findings import FaultLocation, Finding, MissingWait, Uninitialised
from .memory import GlobalMemory, Region
from .shadow import Access

WARP, WARPGROUP = LANES, 4  # threads of a warp, warps of a warpgroup
Array = NDArray[Any]
WINDOW = 1 << 24  # bytes from a block's shared memory to that of the next, as the blocks of a cluster see it
NEVER = -1  # the agent of a register that nothing writes


def _nothing() -> None:
    pass


@dataclass(frozen=True)
class Wait:
    """What a warp waits for. `resume`: what it does when that is there; if `bounded` also when it has not come in so
    many attempts, and then it says so."""

    what: Callable[[], str]
    ready: Callable[[], bool]
    resume: Callable[[], None] = _nothing
    bounded: bool = False


@dataclass(frozen=True)
class Ticket:
    """A register without its value: an asynchronous agent writes it at a time, or nothing has (then `lanes`: in these
    threads)."""

    agent: int
    time: int = 0
    step: int = 0
    lanes: NDArray[np.bool_] | None = None


@dataclass(frozen=True)
class Step:
    """One operation, or an instruction of a text. `run` may return what the warp waits for, and may move the warp's
    `pc`. `uses`: the registers that must have their values."""

    number: int
    op: Operation | None
    run: Callable[[Warp], Wait | None]
    uses: frozenset[int] = frozenset()

    @property
    def name(self) -> str:
        assert self.op is not None
        return self.op.name

    @property
    def location(self) -> str:
        assert self.op is not None
        return place(self.op).removesuffix(": ")

    def __str__(self) -> str:
        return f"{self.name} at {self.location}" if self.location else self.name


@dataclass
class Mbarrier:
    """`inited`: the warp that has made it, and when. `tx`: bytes that are expected and have not come. `published`: what
    those know who have waited."""

    count: int
    pending: int
    agent: int
    inited: tuple[int, int]
    gathered: Clock
    published: Clock
    phase: int = 0
    tx: int = 0


@dataclass
class NamedBarrier:
    """`threads`: that must arrive. `arrived`: those that have; `waiting`: the warps that wait for the others.
    `last`: what the last arrivals knew."""

    threads: int
    arrived: int = 0
    generation: int = 0
    gathered: Clock | None = None
    last: Clock | None = None
    waiting: list[int] = field(default_factory=list[int])


@dataclass
class Rendezvous:
    """Warps of a warpgroup that wait to do an instruction together: each with its step."""

    arrived: dict[int, tuple[Step, Any]] = field(default_factory=dict[int, tuple[Step, Any]])
    generation: int = 0


class Warp:
    """32 threads. Values of registers are arrays of 32, or of 1 where all threads have the same."""

    def __init__(
        self, block: Block, number: int, registers: Sequence[Any], local_bytes: int, gaps: Sequence[int] = ()
    ) -> None:
        self.block, self.number, self.agent_number = block, number, block.first_agent + number
        self.lanes = np.arange(WARP)
        self.threads = number * WARP + self.lanes
        self.exists: NDArray[np.bool_] = self.threads < block.threads
        self.env: list[Any] = list(registers)
        self.active, self.whole = self.exists, True
        self.masks: list[Any] = []  # of the branches and loops around
        self.pc = 0
        self.done = False
        self.wait: Wait | None = None
        self.local: NDArray[np.uint8] = np.zeros((WARP, local_bytes), np.uint8)
        self.valid: NDArray[np.bool_] = np.zeros((WARP, local_bytes), np.bool_)
        self.gaps = frozenset(gaps)  # bytes of local memory that belong to no tensor
        self.pending: dict[int, Ticket] = {}  # registers without their values, by number
        self.in_flight: dict[int, Ticket] = {}  # the same of local memory, by its first byte
        self.reading: dict[int, Ticket] = {}  # registers that an asynchronous product reads
        self.loaded: dict[int, int] = {}  # registers that were loaded from local memory, with their first byte
        self.unfenced: set[int] = set()  # first bytes of local memory that were written since wgmma.fence
        self.fenced = False  # by wgmma.fence, since the last wait for products
        self.copies = self.stores = 0  # the times of cp.async, and of stores by TMA
        self.last_store: Access | None = None  # by TMA, as it reads shared memory
        self.tensor_loads = 0  # the time of loads from tensor memory
        self.copy_groups: list[int] = []  # the times of committed groups of cp.async
        self.cluster: Wait | None = None  # between arriving and waiting at the cluster's barrier
        self.products: list[int] = []  # the times of committed groups of wgmma
        self.ahead = False  # it has yet to wait for the launch before, and will

    @property
    def step(self) -> Step:
        return self.block.steps[self.pc]

    def set_active(self, mask: NDArray[np.bool_]) -> None:
        self.active, self.whole = mask, bool((mask == self.exists).all())

    def first_active(self) -> int:
        return int(self.active.argmax())

    def fail(self, kind: type[Finding], message: str, *, lane: int | None = None, **where: Any) -> NoReturn:
        """Raises a finding at the operation that the warp is at."""
        thread = None if lane is None else int(self.threads[lane])
        step, block = self.step, self.block
        raise kind(FaultLocation(block.kernel, step.name, step.location, block.place, thread), message, **where)

    def check_registers(self, step: Step) -> None:
        """Raises a finding if an operand has no value yet."""
        for register in step.uses & self.pending.keys():
            self.check_ticket(self.pending[register])
            if self.pending[register].agent != NEVER:
                del self.pending[register]

    def check_ticket(self, ticket: Ticket) -> None:
        """Raises a finding unless the value is there."""
        if ticket.agent == NEVER:
            missing = self.active & ticket.lanes if ticket.lanes is not None else self.active
            if missing.any():
                self.fail(Uninitialised, "a register is used that nothing has written", lane=int(missing.argmax()))
        elif self.block.clocks.seen[0, self.agent_number, ticket.agent] < ticket.time:
            made = self.block.steps[ticket.step]
            self.fail(MissingWait, f"a register is used that {made} still writes: nothing has waited for it")

    def agent(self, kind: str) -> int:
        """The asynchronous agent of this warp: `cp.async` or `TMA stores`."""
        return self.block.agent(f"{kind} of warp {self.number}", self.agent_number)


class Cluster:
    """Blocks that run together. `dims`: how many in x, y and z; `clocks`: of the warps of all of them, or also of other
    clusters, of which `first` warps are before these."""

    def __init__(self, dims: tuple[int, int, int], warps: int, clocks: Clocks | None = None, first: int = 0) -> None:
        self.dims, self.clocks, self.first = dims, clocks or Clocks(warps), first
        self.blocks: list[Block] = []
        self.barriers: dict[int, NamedBarrier] = {}


class Block:
    """A block of threads. `steps`: the kernel. `dims`: threads in x, y and z. `number`: of its cluster in the grid;
    `rank`: its own in the cluster, by default one of its own. `reached`: its shared memory, by asynchronous copies and
    by agents of other blocks, with the last time and where."""

    def __init__(
        self, kernel: str, steps: Sequence[Step], place: tuple[int, int, int], grid: tuple[int, int, int],
        dims: tuple[int, int, int], memory: GlobalMemory, shared: Region, conflicts: banks.Counter,
        cluster: Cluster | None = None,
    ) -> None:  # fmt: skip
        self.kernel, self.steps, self.place, self.grid, self.dims = kernel, steps, place, grid, dims
        self.threads = dims[0] * dims[1] * dims[2]
        self.memory, self.shared, self.conflicts = memory, shared, conflicts
        count = -(-self.threads // WARP)
        self.cluster = cluster or Cluster((1, 1, 1), count)
        self.rank, self.clocks = len(self.cluster.blocks), self.cluster.clocks
        self.first_agent = self.cluster.first + self.rank * count
        x, y, z = place if not self.rank else self.cluster.blocks[0].place
        self.number = x + grid[0] * (y + grid[1] * z)
        self.cluster.blocks.append(self)
        self.reached: dict[int, tuple[int, Warp, int]] = {}
        self.warps: list[Warp] = []
        self.barriers: dict[int, NamedBarrier] = {}
        self.mbarriers: dict[int, Mbarrier] = {}
        self.groups: dict[int, Rendezvous] = {}
        self.product_times: Counter[int] = Counter()  # of each warpgroup
        self.agents: dict[str, int] = {}
        self.tensor_memory: Any = None  # a TensorMemory, once a kernel allocates it

    def home(self, warp: Warp, address: int) -> tuple[Block, int]:
        """The block in whose shared memory an address is, and the address there."""
        number, own = divmod(address, WINDOW)
        blocks = self.cluster.blocks
        if not 0 <= number <= len(blocks):
            warp.fail(Finding, f"the address {address:#x} is in no block of the cluster")
        return (blocks[number - 1] if number else self), own

    def reach(self, warp: Warp, agent: int, time: int) -> None:
        """An agent of a warp does something in this block's memory, which must not have ended."""
        if warp.block is not self or agent >= self.clocks.warps:
            self.reached[agent] = (time, warp, warp.pc)

    def agent(self, name: str, warp: int | None = None) -> int:
        """The number of an asynchronous agent. `warp`: whose lanes begin what it does."""
        if name not in self.agents:
            self.agents[name] = self.clocks.agent(name, warp)
        return self.agents[name]
