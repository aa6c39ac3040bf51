"""Decides how a model's work is split: into chunks, parts and spans. It only computes with sizes and launches nothing.

The numbers come from the target's policy, which the bundle carries.
"""

from __future__ import annotations

from dataclasses import dataclass

from toolchain.contract.expressions import cdiv
from toolchain.contract.op import ITEMSIZE
from toolchain.contract.policy import Fold, Policy, rounds

from ..config import GPTConfig
from .squares import MULTIPLE, few_part, part_width

ROW_TILES = (8, 16)  # tile heights of small-M kernels
TILE = 64  # rows of a tile of the others, or a multiple
SHARING = 8  # the most heads that share keys for which rope_decode_attention has kernels
WIDEST = 2048  # the most columns that residual_layernorm takes
MERGED_HEAD = 64  # the head size for which merge_linear_residual_squares reads its weights ahead


@dataclass(frozen=True)
class ModelPlan:
    """The plan of a model on a device with `sms` multiprocessors. `storage`: the dtype of weights and activations.
    `folded`: norms are part of the products beside them (see fold.py). `quantized`: weights of products are in
    8 bits."""

    config: GPTConfig
    storage: str
    folded: bool
    sms: int
    policy: Policy
    quantized: bool = False

    def chunk_sizes(self, batch: int, length: int) -> list[int]:
        """The number of sequences in each chunk; a chunk goes through all layers before the next one starts. Its hidden
        layer fits the L2 cache, so intermediate results stay there. A decoding step is one chunk."""
        row = self.config.ffn * ITEMSIZE[self.storage]
        policy, chunk_bytes = self.policy, self.policy.chunk_bytes
        if self.config.n_embd == policy.panel_width:
            chunk_bytes = policy.panel_chunk_bytes or chunk_bytes
        count = min(batch, batch * length * row // chunk_bytes)
        if length == 1 or count < policy.min_chunks:
            return [batch]
        return [batch // count + (i < batch % count) for i in range(count)]

    def parts(self, rows: int) -> int:
        """Split-K parts of the product with the longest K; 0 if it is not split. It is split for few rows, because its
        few tiles would leave most multiprocessors idle. A single row is split only if a kernel reads all weights of a
        part at once, or if the model is wider than those for which such kernels exist."""
        if self.config.family != "gpt2":
            return 0
        policy, at_once = self.policy, self._has_panels
        if self.quantized:  # one row of such a weight is read at once whatever its length
            return policy.split_k if at_once and 1 < rows <= policy.split_k_rows else 0
        if at_once:
            return policy.split_k if rows <= policy.panel_rows and not self._few_part(rows) else 0
        fewest, most = 1 if self.config.n_embd > policy.panel_width else 2, policy.split_k_rows
        return policy.split_k if fewest <= rows <= most and self.config.n_embd <= WIDEST else 0

    def norms_in_blocks(self, rows: int) -> bool:
        """True if each block of a product over weights in 8 bits norms its rows itself: few rows take less time than a
        launch."""
        few = self.config.family == "gpt2" and rows <= max(ROW_TILES)
        return self.quantized and few and self._has_panels

    def folds_all(self, rows: int) -> bool:
        """True if with this number of rows all norms within the layers are folded, False if only the MLP's may be."""
        return self._fold is not None and (rows > self._fold.rows or self._few_part(rows) > 0)

    def squares(self, rows: int) -> tuple[int, int]:
        """Parts and rows of `squares`, the row sums of squares. (0, 0) if all norms are launches of their own: in a
        model that is not folded, and for row counts between `panel_rows` and those of the fold. Those of few rows go
        with a product in parts."""
        width, fold = self.config.n_embd, self._fold
        if part := self._few_part(rows):
            return cdiv(width, part), cdiv(rows, TILE) * TILE
        llama = self.config.family == "llama"
        few = self._reads_all_at_once(rows) if llama else self._in_panels(rows)
        if fold is None or (rows <= fold.rows and not few):
            return 0, 0
        narrow = fold.part_all_k if llama else fold.part_small_m
        part = narrow if few else part_width(self.policy, fold, width, rows)
        steps = (1,) if llama else ROW_TILES
        tile = next((step for step in steps if few and rows <= step), TILE)
        return cdiv(width, part), cdiv(rows, tile) * tile

    def _few_part(self, rows: int) -> int:
        """Columns of a part of the squares for few rows whose norms are all folded; 0 if they are not. They are folded
        from the row count on for which small-M kernels need two rounds for the hidden layer."""
        config, policy, fold = self.config, self.policy, self._fold
        if fold is None or config.family != "gpt2" or config.n_embd != policy.panel_width or rows > fold.few_rows:
            return 0
        if rounds(policy.sms, rows, config.ffn, (TILE, fold.part_small_m, 0)) == 1:
            return 0
        return few_part(policy, config.n_embd, rows)

    def _in_panels(self, rows: int) -> bool:
        """True if there are kernels that read all weights of a part of K at once."""
        return rows <= self.policy.panel_rows and self.config.n_embd == self.policy.panel_width and self.parts(rows) > 0

    def _reads_all_at_once(self, rows: int) -> bool:
        """True if there are kernels that read all of K at once, also where K is the hidden layer."""
        config, widest = self.config, self.policy.panel_width
        attended = config.n_head * config.head_size
        narrow = max(config.n_embd, attended) <= widest and config.ffn <= 2 * widest
        whole = all(k % MULTIPLE == 0 for k in (config.n_embd, attended, config.ffn))
        return rows <= self.policy.panel_rows and narrow and whole and ITEMSIZE[self.storage] == 2

    def spans(self, batch: int, positions: int, *, whole: bool = True) -> int | None:
        """The number of spans (split-KV) for attention over a cache: the longest spans that leave no multiprocessor
        idle. None if the cache is not split; `whole`: whether that may be."""
        policy = self.policy
        heads, enough = batch * self.config.kv_heads, policy.spans_per_sm * self.sms
        if whole and self.config.head_size == policy.unsplit_head and heads >= enough:
            return None
        counts = [cdiv(positions, span) for span in policy.spans]
        return next((count for count in counts if heads * count >= enough), counts[-1])

    def turns_in_attention(self, count: int, positions: int) -> bool:
        """True if rotary positions and the append are part of attention to so many spans of a cache: its kernels are
        for the shortest spans and few heads that share keys."""
        config, shortest = self.config, count == cdiv(positions, self.policy.spans[-1])
        return shortest and config.group <= SHARING and not config.qk_norm

    def merges_in_product(self, batch: int, count: int) -> bool:
        """True if the product behind attention merges so many spans itself. Each of its blocks merges all heads, so it
        is for one row and few spans."""
        config, fold = self.config, self._fold
        if fold is None or config.family != "llama" or self.quantized:
            return False
        few = batch == 1 and count <= fold.merged_spans
        return few and config.head_size == MERGED_HEAD and self._reads_all_at_once(batch)

    @property
    def _has_panels(self) -> bool:
        """True if there are kernels that read all weights of a part of K at once. The model's width is also the K of a
        part, a quarter of the MLP's."""
        policy = self.policy
        return self.config.n_embd == policy.panel_width and ITEMSIZE[self.storage] == 2 and policy.panel_rows > 0

    @property
    def _fold(self) -> Fold | None:
        return self.policy.fold if self.folded else None
