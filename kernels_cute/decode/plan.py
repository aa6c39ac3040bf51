"""The sizes of a decode step in one kernel, and which block does what. step.py has the kernel."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import gcd

from toolchain.errors import UsageError

from .lanes import COLUMNS, ROWS

CLUSTER = 8  # blocks of a cluster, at most
HEAD = 64  # elements of a head
WARP = 32
BOX = 16  # positions that one copy brings, at most
NEVER = -1e30  # the score of a position that is not attended to
LOG2_E = 1.4426950408889634
TOLD, PARTS, PROJECTED, COLUMNS_TOLD, ADDED, FOUND_LARGEST = range(1, 7)  # waits, as `errors` names those that ran out
HELD = 4  # slots of a weight that a warp may have read from before it says so
FAR = HEAD + 2  # from one block's part of a head to the next, in words: 64 sums, a maximum, a sum of weights


@dataclass(frozen=True)
class Sizes:
    """What steps of one text and of eight have in common. `width`: C. `positions`: the most of a cache. `vocabulary`:
    rows of the embedding, a multiple of 8. `bits`: of a weight of the layers; those of 8 are multiplied with x as the
    norms leave it, those of 16 have the norms folded into them. `logit_bits`: of what makes the logits. `own_heads`,
    `own_hidden`: heads and hidden units of a layer that this GPU has, 0 for all of them."""

    layers: int = 12
    width: int = 768
    positions: int = 1024
    vocabulary: int = 50304
    bits: int = field(default=16, kw_only=True)
    logit_bits: int = field(default=16, kw_only=True)
    own_heads: int = field(default=0, kw_only=True)
    own_hidden: int = field(default=0, kw_only=True)
    cluster = CLUSTER  # its blocks

    @property
    def heads(self) -> int:
        return self.own_heads or self.width // HEAD

    @property
    def hidden(self) -> int:
        return self.own_hidden or 4 * self.width

    @property
    def warps(self) -> int:
        """That compute."""
        return self.width // COLUMNS

    @property
    def threads(self) -> int:
        return (self.warps + 1) * WARP

    @property
    def slot(self) -> int:
        """Chunks of 16 bytes of a slot."""
        return self.width

    @property
    def tiles(self) -> int:
        """Tiles of 8 rows of a layer's weight in a slot."""
        return 16 // self.bits

    @property
    def rows(self) -> int:
        """Rows of a layer's weight in a slot."""
        return ROWS * self.tiles

    @property
    def logit_rows(self) -> int:
        """Rows of what makes the logits in a slot."""
        return ROWS * (16 // self.logit_bits)

    @property
    def folded(self) -> bool:
        """Whether the norms are folded into the weights."""
        return self.bits == 16

    @property
    def turns(self) -> int:
        """How often a block has 8 rows each of q, k and v, and an eighth of the columns that a head is projected to."""
        return CLUSTER // self.cluster

    @property
    def qkv_slots(self) -> int:
        """Slots of a block's rows of q, k and v."""
        return -(-3 * self.turns // self.tiles)


@dataclass(frozen=True)
class Step(Sizes):
    """`clusters`: of `cluster` blocks each. `units`: hidden units of a block with a head, and of one without. `slots`:
    of the ring; `flying`: those that may be on their way at once, 0 for any. `cache_bits`: of a key's or a value's
    number; those of 8 have a scale for each head of each position. Raises UsageError."""

    clusters: int = 12
    units: tuple[int, int] = (32, 32)
    slots: int = 16
    flying: int = 3
    cache_bits: int = 16
    cluster: int = CLUSTER

    def __post_init__(self) -> None:
        made = self.cluster * (self.heads * self.units[0] + (self.clusters - self.heads) * self.units[1])
        if made != self.hidden or any(unit % self.rows for unit in self.units):
            raise UsageError(f"{made} hidden units of {self.hidden}", hint="units that all blocks together have")
        if self.cluster not in (2, 4, CLUSTER) or (self.bits == 8 and self.cluster < CLUSTER):
            raise UsageError(f"clusters of {self.cluster} blocks, {self.bits} bits", hint="2, 4 or 8; 8 in 8 bits")
        if self.slots < HELD:
            raise UsageError(f"a ring of {self.slots} slots", hint=f"{HELD} are read at once")
        if self.width % (COLUMNS * self.tiles) or self.positions % self.cluster or self.vocabulary % self.logit_rows:
            raise UsageError(f"a width of {self.width}, {self.positions} positions, {self.vocabulary} tokens")

    @property
    def blocks(self) -> int:
        return self.clusters * self.cluster

    @property
    def span(self) -> int:
        """Positions of a block."""
        return self.positions // self.cluster

    @property
    def together(self) -> int:
        """Positions that are attended to at a time: 4 for each warp, but for a last warp whose 4 a large copy would
        have no use for."""
        most = 4 * self.warps
        return most if most < BOX else most // BOX * BOX

    @property
    def box(self) -> int:
        """Positions that one copy brings: each slot has a multiple of it."""
        return gcd(BOX, self.together, self.span)

    @property
    def attended(self) -> list[int]:
        """A block's positions, as many at a time."""
        most = self.together
        return [min(most, self.span - first) for first in range(0, self.span, most)]

    @property
    def times(self) -> int:
        """How often keys and values of 4 positions for each warp fit a slot."""
        return 16 // self.cache_bits

    @property
    def kv_slots(self) -> int:
        """Slots of a block's keys and values."""
        return -(-len(self.attended) // self.times)

    @property
    def words(self) -> int:
        """How many words the sums take. There are two sets: a launch uses one and clears the other. Behind them are
        those of each block's largest logit and its token."""
        return 2 * self.layers * 2 * self.width

    @property
    def rounds(self) -> int:
        """Slots of what makes the logits that a block multiplies."""
        return -(-self.vocabulary // self.logit_rows // self.blocks)

    def steps(self, *, head: bool) -> int:
        """Slots of a layer."""
        units = 2 * self.units[0 if head else 1] // self.rows
        return units + (self.qkv_slots + self.kv_slots + self.turns if head else 0)
