"""The tiles of attention for sm_90a, and the order in which its blocks walk them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from toolchain.contract.artifact import MAX_SHARED
from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch
from toolchain.errors import UsageError

ROW = 64  # elements of 16 bits in a row of the swizzle's pattern
WARPGROUP = 128  # threads
QUERIES = 64  # of a warpgroup: the rows of a wgmma
NEAR = 28 << 20  # bytes of keys and values that blocks walk together: they stay in the L2 cache
RESERVED = 1024  # bytes of shared memory that each block takes besides its own
REGISTERS, LOADS = 65536, 24  # of a multiprocessor, and of a thread that loads


@dataclass(frozen=True)
class Tiles:
    """`head`: elements of a head. `consumers`: warpgroups that compute. `keys`, `stages`: of a tile of keys and values,
    and how many are held. `blocks`: of a multiprocessor.

    `ahead`: the scores of the next keys are under way while the weights of these are made. `in_turns`: warpgroups then
    multiply in turns, so that one's softmax falls under another's products. `anchored`: only tiles that the mask cuts
    look for a maximum; the others take their weights relative to that. Where something overflows, which f16 does early,
    the block begins anew with the maximum of all tiles. Raises UsageError.
    """

    head: int = 64
    consumers: int = 1
    keys: int = 64
    stages: int = 2
    blocks: int = 4
    ahead: bool = False
    in_turns: bool = False
    anchored: bool = False

    def __post_init__(self) -> None:
        if self.head % ROW or not ROW <= self.head <= 128:
            raise UsageError(f"a head of {self.head} elements has no kernel here", hint="head=64 or head=128")
        if self.keys % 16 or not 16 <= self.keys <= 256:
            raise UsageError(f"a tile of {self.keys} keys is no tile of wgmma", hint="a multiple of 16 up to 256")
        if self.in_turns and not (self.ahead and self.consumers > 1):
            raise UsageError("warpgroups multiply in turns if there are several, and scores ahead", hint="ahead=True")
        if self.blocks * (self.shared_bytes + RESERVED) > MAX_SHARED + RESERVED:
            room = (MAX_SHARED + RESERVED) // self.blocks - RESERVED
            raise UsageError(
                f"{self} takes {self.shared_bytes} bytes of shared memory, and a block has {room} where a "
                f"multiprocessor runs {self.blocks}",
                hint="fewer keys, stages or blocks",
            )

    @property
    def held(self) -> tuple[tuple[int, int], ...]:
        """The rows of a tile and the number of tiles in shared memory, for queries, keys and values."""
        return (self.rows, 2), (self.keys, self.stages), (self.keys, self.stages)

    @property
    def warps(self) -> int:
        """Those that compute."""
        return self.consumers * WARPGROUP // arch.WARP

    @property
    def shared_bytes(self) -> int:
        """Bytes of a block: its tiles, two mbarriers for each tile, one more for the verdict, a word for each warp."""
        tiles = sum(rows * count for rows, count in self.held) * self.head * 2
        return tiles + 8 * (2 * sum(count for _, count in self.held) + 1) + 4 * self.warps

    @property
    def rows(self) -> int:
        """Queries of a block."""
        return QUERIES * self.consumers

    @property
    def threads(self) -> int:
        return WARPGROUP * (1 + self.consumers)

    @property
    def registers(self) -> tuple[int, int]:
        """Of a thread that loads and of one that computes. Together they have what the block was launched with."""
        launched = REGISTERS // (self.blocks * self.threads) // 8 * 8
        computes = ((1 + self.consumers) * launched - LOADS) // self.consumers // 8 * 8
        return LOADS, min(240, computes)


@dataclass(frozen=True)
class Place:
    """A tile of queries: which one of the block, its number, head and sequence. `first`: the position of its first
    query. `steps`: tiles of keys that it sees. `cut`: those of them, the last ones, that the mask cuts. `before`: steps
    of the block before. `anchored`: steps that are cut or may take the anchor."""

    turn: Any
    tile: Any
    head: Any
    sequence: Any
    first: Any
    steps: Any
    cut: Any
    before: Any
    anchored: Any


class Walk:
    """Which tiles of queries a block makes, one after the other."""

    def __init__(self, shape: Any, keys: Any, t: Tiles) -> None:
        batch, self.queries, self.heads, _ = shape
        self.keys, self.t = keys, t
        self.all_heads = batch * self.heads
        groups = cute.ceil_div(self.all_heads, NEAR // (keys * (t.head * 4)) + 1)
        self.together = cute.ceil_div(self.all_heads, groups)  # heads
        self.tiles = cute.ceil_div(self.queries, t.rows)
        self.block, self.blocks = arch.block_idx()[0], arch.grid_dim()[0]
        self.turns = cute.ceil_div(self.tiles * self.all_heads - self.block, self.blocks)

    def places(self, verdict: Callable[[], Any]) -> Iterator[Place]:
        """A loop of the kernel over the block's tiles. With an anchor it may have to begin anew: `verdict` says it
        behind the last tile, as 1 or 0."""
        done, again = _Number(0), _Number(1)
        if not self.t.anchored:
            for turn in cute.range_(self.turns):
                yield self._place(turn, turn, done, 0)
            return
        for attempt in cute.range_(2):
            for turn in cute.range_(self.turns * again.value):
                yield self._place(turn, turn + attempt * self.turns, done, attempt)
            with cute.when(cute.same(attempt, 0)):
                again.set(verdict())

    def _place(self, turn: Any, number: Any, done: _Number, attempt: Any) -> Place:
        """The last queries of the heads of a group, then those before them: short tiles fill the gaps at the end."""
        t, tile = self.t, self.block + turn * self.blocks
        group, tile = tile // (self.tiles * self.together), tile % (self.tiles * self.together)
        heads = (self.all_heads - group * self.together).minimum(self.together)
        head, tile = group * self.together + tile % heads, self.tiles - 1 - tile // heads
        first = self.keys - self.queries + tile * t.rows
        steps = cute.ceil_div((first + t.rows).minimum(self.keys), t.keys)
        whole = first // t.keys
        before = done.value
        done.set(before + steps)
        anchored = steps - whole * attempt
        return Place(number, tile, head % self.heads, head // self.heads, first, steps, steps - whole, before, anchored)


class _Number:
    """A number that changes in a loop of the kernel."""

    def __init__(self, start: int) -> None:
        self.word = cute.make_fragment(1, "i32")
        self.word[0] = start

    @property
    def value(self) -> Any:
        return cute.number(self.word[0].value)

    def set(self, value: Any) -> None:
        self.word[0] = cute.scalar(value)
