"""Which kernels a model's shapes take, and in what pieces: arithmetic on sizes, nothing is launched here.

The numbers were measured on an H200 but for what says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass

from toolchain.entry import ITEMSIZE, cdiv

from .config import GPTConfig
from .squares import THIN, part_width

FEW = 64  # rows up to which the MLP's second product, of the longest K, has its K in parts
PANEL, FEW_PANEL = 768, 192  # in 16 bits, where a part's K is so long that a block reads it at once, up to so many rows
PARTS = 4
MANY = 512  # rows above which, in 16 bits, the layers' norms are part of the products before and behind them
ROW_TILES = (8, 16)  # rows of a tile where they are few; else 64, or a multiple
# Bytes of hidden layer, about as much as the L2 cache of an H200. Of three times as many and more the sequences go
# through the layers in chunks of at least so many, one after the other: what a chunk's kernels hand to one another
# stays in the cache. Two chunks gain less than their shorter kernels lose.
CHUNK, CHUNKS = 48 << 20, 3
WIDEST = 2048  # columns that residual_layernorm takes
WHOLE = 64  # the size of a head whose cache one block of decode_attention_whole takes: as many rows as the cores make
SPANS = (512, 128)  # positions of a cache that one block of decode_attention takes
SPREAD = 2.7  # blocks of it to a multiprocessor that are enough: with 2.5 shorter spans are as fast, with 2.9 slower


@dataclass(frozen=True)
class Plan:
    """Of a model on a device of `sms` multiprocessors. `storage`: the dtype of its weights and activations; `folded`:
    whether norms are part of the products beside them."""

    config: GPTConfig
    storage: str
    folded: bool
    sms: int

    def chunk_sizes(self, batch: int, length: int) -> list[int]:
        """How many sequences go through the layers together; those of a decoding step all do."""
        row = 4 * self.config.n_embd * ITEMSIZE[self.storage]
        count = min(batch, batch * length * row // CHUNK)
        if length == 1 or count < CHUNKS:
            return [batch]
        return [batch // count + (i < batch % count) for i in range(count)]

    def parts(self, rows: int) -> int:
        """Parts of the product of the longest K, 0 if it is made at once: of few rows a tile of it has few blocks to
        share it. Of a single row only where a part's weights are read at once: else it has a kernel of its own."""
        width = self.config.n_embd  # of a part's K too: the MLP is four times as wide, and there are four parts
        at_once = width == PANEL and ITEMSIZE[self.storage] == 2
        fewest, most = (1, FEW_PANEL) if at_once else (2, FEW)
        return PARTS if fewest <= rows <= most and width <= WIDEST else 0

    def squares(self, rows: int) -> tuple[int, int]:
        """Parts and rows of `squares`; none where all norms are launches: in a model that is not folded, and of more
        rows than have their products' weights read at once, but not many."""
        width = self.config.n_embd
        few = rows <= FEW_PANEL and width == PANEL
        if not self.folded or (rows <= MANY and not few):
            return 0, 0
        part = THIN if few else part_width(width, rows)
        tile = next((step for step in ROW_TILES if few and rows <= step), 64)
        return cdiv(width, part), cdiv(rows, tile) * tile

    def spans(self, batch: int, positions: int) -> int | None:
        """Spans that a cache is attended in: as long ones as leave no multiprocessor idle. None if that is all of the
        cache at once."""
        heads, enough = batch * self.config.n_head, SPREAD * self.sms
        if self.config.head_size == WHOLE and heads >= enough:
            return None
        counts = [cdiv(positions, span) for span in SPANS]
        return next((count for count in counts if heads * count >= enough), counts[-1])
