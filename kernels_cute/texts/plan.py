"""The sizes of a decode step of eight texts in one kernel. step.py has the kernel."""

from __future__ import annotations

from dataclasses import dataclass

from toolchain.errors import UsageError

from ..decode.lanes import COLUMNS
from ..decode.plan import CLUSTER, Sizes

TEXTS = 8  # columns of a product, and blocks of a cluster: each of them attends for one text
UNITS = 32  # hidden units of a block
PARTS = CLUSTER * UNITS // COLUMNS  # slots of the MLP's second product, each of 64 units of the cluster
AT_ONCE = 2  # slots of keys and values whose scores are computed side by side
HIDDEN = 4  # what `errors` calls the wait for hidden units


@dataclass(frozen=True)
class Step(Sizes):
    """There is a cluster for each head. `slots`: of the ring; `flying`: those that may be on their way at once. Raises
    UsageError."""

    slots: int = 16
    flying: int = 4

    def __post_init__(self) -> None:
        if self.width % COLUMNS or self.vocabulary % self.logit_rows:
            hint = f"multiples of {COLUMNS} and of {self.logit_rows}"
            raise UsageError(f"a width of {self.width}, {self.vocabulary} tokens", hint=hint)
        if self.slots < 4 or self.flying < 1:
            raise UsageError(f"a ring of {self.slots} slots, {self.flying} on their way", hint="4 are read at once")

    @property
    def blocks(self) -> int:
        return self.heads * CLUSTER

    @property
    def together(self) -> int:
        """Positions in a slot of keys and values: 4 for each warp."""
        return 4 * self.warps

    @property
    def words(self) -> int:
        """How many words the sums take. There are two sets: a launch uses one and clears the other."""
        return 2 * self.layers * 2 * self.width * TEXTS

    @property
    def beside(self) -> int:
        """Slots of a layer beside those of keys and values."""
        return self.qkv_slots + 1 + UNITS // self.rows + PARTS // self.tiles

    @property
    def at_once(self) -> int:
        """Slots of what makes the logits that are multiplied in one round."""
        return UNITS // self.logit_rows

    @property
    def rounds(self) -> int:
        """Such rounds of a block."""
        return -(-self.vocabulary // self.logit_rows // self.blocks // self.at_once)
