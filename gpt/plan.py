"""Which kernels a model's shapes take, and in what pieces: arithmetic on sizes, nothing is launched here.

The numbers are the target's policy, which its bundle carries.
"""

from __future__ import annotations

from dataclasses import dataclass

from toolchain.entry import ITEMSIZE, cdiv
from toolchain.policy import Fold, Policy

from .config import GPTConfig
from .squares import part_width

ROW_TILES = (8, 16)  # rows of a tile where they are few; else 64, or a multiple
WIDEST = 2048  # columns that residual_layernorm takes


@dataclass(frozen=True)
class Plan:
    """The plan of a model on a device of `sms` multiprocessors. `storage`: the dtype of its weights and activations;
    `folded`: whether norms are part of the products beside them."""

    config: GPTConfig
    storage: str
    folded: bool
    sms: int
    policy: Policy

    def chunk_sizes(self, batch: int, length: int) -> list[int]:
        """How many sequences go through the layers together; those of a decoding step all do. A chunk's hidden layer
        fits the L2 cache, so what its kernels hand to one another stays there."""
        row = 4 * self.config.n_embd * ITEMSIZE[self.storage]
        count = min(batch, batch * length * row // self.policy.chunk_bytes)
        if length == 1 or count < self.policy.min_chunks:
            return [batch]
        return [batch // count + (i < batch % count) for i in range(count)]

    def parts(self, rows: int) -> int:
        """Parts of the product of the longest K, 0 if it is made at once: with few rows a tile of it has few blocks to
        share it. A single row has parts only where a part's weights are read at once: else it has a kernel of its own.
        """
        policy, width = self.policy, self.config.n_embd  # of a part's K too: the MLP is as many times as wide
        at_once = width == policy.panel_width and ITEMSIZE[self.storage] == 2 and policy.panel_rows > 0
        fewest, most = (1, policy.panel_rows) if at_once else (2, policy.split_k_rows)
        return policy.split_k if fewest <= rows <= most and width <= WIDEST else 0

    def folds_all(self, rows: int) -> bool:
        """Whether all norms of that many rows are part of products, not the MLP's alone."""
        return self._fold is not None and rows > self._fold.rows

    def squares(self, rows: int) -> tuple[int, int]:
        """Parts and rows of `squares`; none where all norms are launches: in a model that is not folded, and with more
        rows than have their products' weights read at once, but not many."""
        width, fold = self.config.n_embd, self._fold
        few = rows <= self.policy.panel_rows and width == self.policy.panel_width
        if fold is None or (rows <= fold.rows and not few):
            return 0, 0
        part = fold.part_small_m if few else part_width(self.policy, fold, width, rows)
        tile = next((step for step in ROW_TILES if few and rows <= step), 64)
        return cdiv(width, part), cdiv(rows, tile) * tile

    def spans(self, batch: int, positions: int) -> int | None:
        """Spans that a cache is attended in: as long ones as leave no multiprocessor idle. None if that is all of the
        cache at once."""
        policy = self.policy
        heads, enough = batch * self.config.n_head, policy.spans_per_sm * self.sms
        if self.config.head_size == policy.unsplit_head and heads >= enough:
            return None
        counts = [cdiv(positions, span) for span in policy.spans]
        return next((count for count in counts if heads * count >= enough), counts[-1])

    @property
    def _fold(self) -> Fold | None:
        return self.policy.fold if self.folded else None
