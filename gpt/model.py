"""GPT-2 as a sequence of launches. Read `_blocks` beside the paper: each line is one op, with its result's shape.

B sequences of T tokens, N = B * T rows, C = n_embd = H heads of D, V tokens in the vocabulary, P positions in a cache.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.entry import ITEMSIZE, cdiv, ops
from toolchain.errors import UsageError
from toolchain.runtime import DeviceBuffer, Launcher

from .config import GPTConfig
from .fold import fold
from .squares import THIN, is_folded, part_width
from .weights import Weights, check, load
from .workspace import Workspace, allocate

Tokens = NDArray[np.integer[Any]]
Spans = tuple[DeviceBuffer, DeviceBuffer]  # partial (B, H, Z, D), stats (B, H, Z, 2), both f32
Attend = Callable[[int, DeviceBuffer, DeviceBuffer], None]  # layer, qkv (B, T, 3, H, D), out (B, T, H, D)
AttendFrom = Callable[[int, int, DeviceBuffer, DeviceBuffer], None]  # the same behind the first of these sequences
VOCABULARY_STEP = 64  # the vocabulary is padded to a multiple: aligned rows of logits, and whole tiles
PART = 2048  # columns of a row of logits that one block of argmax_parts takes
FEW = 64  # rows up to which the MLP's second product, of the longest K, has its K in parts
PANEL, FEW_PANEL = 768, 192  # in 16 bits, where a part's K is so long that a block reads it at once, up to so many rows
PARTS = 4
MANY = 512  # rows above which, in 16 bits, the layers' norms are part of the products before and behind them
ROW_TILES = (8, 16)  # rows of a tile where they are few; else 64, or a multiple
# Bytes of hidden layer, about as much as the L2 cache of an H200, where it was measured. Of three times as many and
# more the sequences go through the layers in chunks of at least so many, one after the other: what a chunk's kernels
# hand to one another stays in the cache. Two chunks gain less than their shorter kernels lose.
CHUNK, CHUNKS = 48 << 20, 3
WIDEST = 2048  # columns that residual_layernorm takes
WHOLE = 64  # the size of a head whose cache one block of decode_attention_whole takes: as many rows as the cores make
SPANS = (512, 128)  # positions of a cache that one block of decode_attention takes
SPREAD = 2.7  # blocks of it to a multiprocessor that are enough: with 2.5 shorter spans are as fast, with 2.9 slower


class KVCache:
    """Keys and values of the positions seen so far, per layer (B, P, H, D); `lengths` of them in each sequence."""

    def __init__(self, model: GPT, batch: int, positions: int | None = None) -> None:
        config = model.config
        positions = config.n_ctx if positions is None else positions
        if batch < 1 or not 1 <= positions <= config.n_ctx:
            raise UsageError(f"no cache of {batch} x {positions} positions: at least 1 x 1, at most {config.n_ctx}")
        shape = (config.n_layer, 2, batch, positions, config.n_head, config.head_size)
        self.memory = model.executor.empty(shape, model.storage)
        self.memory.fill(0)
        self.batch, self.positions = batch, positions
        self.lengths = np.zeros(batch, np.int32)

    def layer(self, index: int) -> tuple[DeviceBuffer, DeviceBuffer]:
        """Keys and values of one layer, each (B, P, H, D)."""
        both = self.memory.select(0, index)
        return both.select(0, 0), both.select(0, 1)


class GPT:
    """A GPT on the launcher's executor. `dtype`: f32, tf32 (f32 with tf32 matrix products), f16 or bf16. `folded`:
    whether the norms of many rows are part of the products beside them; by default where there are kernels for it: see
    squares.py."""

    def __init__(
        self, config: GPTConfig, weights: Weights, launcher: Launcher, dtype: str = "bf16", *,
        folded: bool | None = None,
    ) -> None:  # fmt: skip
        """Copies the weights to the device. Raises UsageError if they do not fit the config, or if the norms of such a
        model cannot be `folded`."""
        check(config, weights, "weights")
        self.config, self.launcher, self.dtype = config, launcher, dtype
        self.storage = "f32" if dtype == "tf32" else dtype
        self.executor = launcher.executor
        self.vocabulary = cdiv(config.vocab_size, VOCABULARY_STEP) * VOCABULARY_STEP  # padded
        self.folded = is_folded(folded, config.n_embd, dtype, self.executor.target)
        stored = dict((fold(config, weights) if self.folded else weights).astype(dtype).items())
        padding = ((0, self.vocabulary - config.vocab_size), (0, 0))
        stored["wte.weight"] = np.pad(stored["wte.weight"], padding)  # (padded V, C), zeros at the end
        self.weights = {name: self.executor.from_numpy(tensor) for name, tensor in stored.items()}
        self._workspaces: dict[tuple[int, int], Workspace] = {}

    @classmethod
    def from_pretrained(cls, path_or_name: str | Path, *, launcher: Launcher, dtype: str = "bf16") -> GPT:
        """A checkpoint's folder, or a GPT-2 of the Hugging Face hub by name."""
        config, weights, _ = load(path_or_name)
        return cls(config, weights, launcher, dtype)

    @property
    def nbytes(self) -> int:
        """Of the weights on the device."""
        return sum(tensor.nbytes for tensor in self.weights.values())

    # What a caller runs: each places its tokens on the device and launches

    def forward(self, tokens: Tokens) -> DeviceBuffer:
        """Logits (B, T, V) at every position of tokens (B, T). They are the caller's."""
        batch, length = self.check_tokens(tokens)
        work = self._kept_workspace(batch, length)
        self.place(work, tokens, np.zeros(batch, np.int32))
        out = self.new_logits(batch * length)
        self.launch_forward(work, batch, length, out)
        return self.visible(out).unflatten(0, batch, length)

    def prefill(self, tokens: Tokens, cache: KVCache) -> DeviceBuffer:
        """Appends tokens (B, T) to a cache whose sequences are equally long; logits (B, V) after the last."""
        batch, length = self.check_tokens(tokens, cache)
        start = int(cache.lengths[0])
        if (cache.lengths != start).any():
            raise UsageError(f"prefill needs equally long sequences, the cache has {cache.lengths.tolist()}")
        work, end = self._kept_workspace(batch, length), start + length
        self.place(work, tokens, cache.lengths)

        def attend(first: int, layer: int, qkv: DeviceBuffer, out: DeviceBuffer) -> None:
            q, k, v = (qkv.select(2, i) for i in range(3))  # (B, T, H, D) each
            stop = first + q.shape[0]
            keys, values = (cached.slice(0, first, stop) for cached in cache.layer(layer))
            starts = work.starts.slice(0, first, stop)
            self._run("kv_append", k=k, v=v, positions=starts, k_cache=keys, v_cache=values)
            k, v = keys.slice(1, 0, end), values.slice(1, 0, end)  # (B, S, H, D)
            self._run("attention", q=q, k=k, v=v, out=out, scale=self._scale)

        ready = self._chunks(work, batch, length, attend)
        cache.lengths += length
        out, c = self.new_logits(batch), self.config.n_embd
        last = (work.normed if ready else work.x).reshape(batch, length, c).select(1, -1)  # (B, C)
        self._logits(last, last if ready else work.normed.slice(0, 0, batch), out, ready=ready)
        return self.visible(out)

    def decode(self, tokens: Tokens, cache: KVCache) -> DeviceBuffer:
        """Appends one token (B,) to each sequence of a cache, whatever their lengths; logits (B, V) after it."""
        column = np.asarray(tokens).reshape(-1, 1)  # (B, 1)
        batch, _ = self.check_tokens(column, cache)
        work = self._kept_workspace(batch, 1)
        self.place(work, column, cache.lengths)
        out = self.new_logits(batch)
        self.launch_decode(work, cache, self.new_spans(cache), out)
        cache.lengths += 1
        return self.visible(out)

    def argmax(self, logits: DeviceBuffer) -> NDArray[np.int32]:
        """The likeliest token of each row of logits (M, V)."""
        rows = logits.shape[0]
        tokens, positions = (self.executor.empty((rows,), "i32") for _ in range(2))
        positions.fill(0)
        self.launch_next_token(logits, self.new_parts(rows), tokens, positions)
        return tokens.numpy()

    # What is launched: only launches, which a graph can hold

    def launch_forward(self, work: Workspace, batch: int, length: int, out: DeviceBuffer) -> None:
        """The tokens in `work` to logits `out` (N, padded V)."""

        def attend(_first: int, _layer: int, qkv: DeviceBuffer, out: DeviceBuffer) -> None:
            q, k, v = (qkv.select(2, i) for i in range(3))  # (B, T, H, D) each
            self._run("attention", q=q, k=k, v=v, out=out, scale=self._scale)

        ready = self._chunks(work, batch, length, attend)
        self._logits(work.x, work.normed, out, ready=ready)

    def launch_decode(self, work: Workspace, cache: KVCache, spans: Spans | None, out: DeviceBuffer) -> None:
        """One token of each sequence, at its position, both in `work`, to logits `out` (B, padded V)."""

        def attend(layer: int, qkv: DeviceBuffer, out: DeviceBuffer) -> None:
            q, k, v = (qkv.select(2, i).select(1, 0) for i in range(3))  # (B, H, D) each
            keys, values = cache.layer(layer)
            token: dict[str, DeviceBuffer | float] = {
                "q": q, "k": k, "v": v, "positions": work.positions, "k_cache": keys, "v_cache": values,
                "scale": self._scale,
            }  # fmt: skip
            out = out.select(1, 0)
            if spans is None:
                self._run("decode_attention_whole", **token, out=out)
                return
            partial, stats = spans
            self._run("decode_attention", **token, partial=partial, stats=stats)
            self._run("merge_attention", partial=partial, stats=stats, out=out)

        ready = self._blocks(work, cache.batch, 1, attend)
        self._logits(work.x, work.normed, out, ready=ready)

    def launch_next_token(
        self, logits: DeviceBuffer, parts: tuple[DeviceBuffer, DeviceBuffer], tokens: DeviceBuffer,
        positions: DeviceBuffer,
    ) -> None:  # fmt: skip
        """The likeliest of logits (M, V) to `tokens` (M), and `positions` (M) counted up."""
        values, places = parts
        self._run("argmax_parts", x=logits, values=values, places=places)
        self.launcher("next_token", "f32", values=values, places=places, tokens=tokens, positions=positions)

    def _chunks(self, work: Workspace, batch: int, length: int, attend: AttendFrom) -> bool:
        """`_blocks` for one chunk of the sequences after the other."""
        first, ready = 0, False
        for count in self._chunk_sizes(batch, length):
            chunk = work.chunk(first * length, count * length)
            ready = self._blocks(chunk, count, length, partial(attend, first))
            first += count
        return ready

    def _chunk_sizes(self, batch: int, length: int) -> list[int]:
        """How many sequences go through the layers together; those of a decoding step all do."""
        row = 4 * self.config.n_embd * ITEMSIZE[self.storage]
        count = min(batch, batch * length * row // CHUNK)
        if length == 1 or count < CHUNKS:
            return [batch]
        return [batch // count + (i < batch % count) for i in range(count)]

    def _blocks(self, work: Workspace, batch: int, length: int, attend: Attend) -> bool:
        """Tokens to the last residual stream `work.x` (N, C). Returns whether `work.normed` has its final norm."""
        c, h, d = self.config.n_embd, self.config.n_head, self.config.head_size
        x, normed = work.x, work.normed
        qkv = work.qkv.reshape(batch, length, 3, h, d)
        attended = work.attended.reshape(batch, length, h, d)
        wte, wpe = self.weights["wte.weight"], self.weights["wpe.weight"]
        tokens: dict[str, DeviceBuffer | float] = {
            "tokens": work.tokens, "positions": work.positions, "wte": wte, "wpe": wpe
        }  # fmt: skip
        squares = {"squares": work.squares} if work.squares.shape[0] else {}
        if squares:
            self._run("embedding_centred", **tokens, out=x, **squares)  # (N, C)
        else:
            self._run("embedding", **tokens, out=x)  # (N, C)
        if batch * length > MANY and squares:
            self._folded_layers(work, attend, qkv, attended)
            return False
        normed_ahead = False  # whether `normed` has this layer's input, or at the end ln_f's result
        for layer in range(self.config.n_layer):
            w = self._layer_weights(layer)
            if not normed_ahead:
                self._run("layernorm", x=x, **w("ln_1"), out=normed, eps=self.config.eps)  # (N, C)
            self._run("linear", x=normed, **w("attn.c_attn"), out=work.qkv)  # (N, 3C)
            attend(layer, qkv, attended)  # (B, T, H, D)
            y = attended.reshape(batch * length, c)
            self._norm_between(w, y, x, normed, work.hidden, squares)  # (N, 4C)
            projection = w("mlp.c_proj")
            if not self._in_parts(batch * length):
                self._run("linear_residual", x=work.hidden, **projection, residual=x, out=x)  # (N, C)
                continue
            last = layer + 1 == self.config.n_layer
            norm = self._named("ln_f") if last else self._layer_weights(layer + 1)("ln_1")
            self._run("linear_parts", x=work.hidden, weight=projection["weight"], partial=work.partial)  # (Z, N, C)
            self._run(
                "residual_layernorm", partial=work.partial, bias=projection["bias"], norm_weight=norm["weight"],
                norm_bias=norm["bias"], x=x, out=normed, eps=self.config.eps,
            )  # fmt: skip
            normed_ahead = True
        return normed_ahead

    def _norm_between(
        self, w: Callable[[str], dict[str, DeviceBuffer]], y: DeviceBuffer, x: DeviceBuffer, normed: DeviceBuffer,
        hidden: DeviceBuffer, squares: Mapping[str, DeviceBuffer],
    ) -> None:  # fmt: skip
        """Attention's result into the residual stream, and what the MLP's first product makes of its norm."""
        eps = self.config.eps
        if squares:
            self._run("linear_residual_squares", x=y, **w("attn.c_proj"), residual=x, out=x, **squares)  # (N, C)
            self._run("rms_linear_gelu", x=x, **squares, **w("mlp.c_fc"), out=hidden, eps=eps)  # (N, 4C)
            return
        self._run("linear_residual", x=y, **w("attn.c_proj"), residual=x, out=x)  # (N, C)
        self._run("layernorm", x=x, **w("ln_2"), out=normed, eps=eps)  # (N, C)
        self._run("linear_gelu", x=normed, **w("mlp.c_fc"), out=hidden)  # (N, 4C)

    def _folded_layers(self, work: Workspace, attend: Attend, qkv: DeviceBuffer, attended: DeviceBuffer) -> None:
        """The layers of many rows: what adds to the residual stream gives the squares that the norm behind it needs,
        and the product behind the norm divides by them."""
        x, squares, eps = work.x, work.squares, self.config.eps
        y = attended.reshape(*x.shape)
        for layer in range(self.config.n_layer):
            w = self._layer_weights(layer)
            self._run("rms_linear", x=x, squares=squares, **w("attn.c_attn"), out=work.qkv, eps=eps)  # (N, 3C)
            attend(layer, qkv, attended)  # (B, T, H, D)
            self._run("linear_residual_squares", x=y, **w("attn.c_proj"), residual=x, out=x, squares=squares)  # (N, C)
            self._run("rms_linear_gelu", x=x, squares=squares, **w("mlp.c_fc"), out=work.hidden, eps=eps)  # (N, 4C)
            if layer + 1 < self.config.n_layer:
                self._run(
                    "linear_residual_squares", x=work.hidden, **w("mlp.c_proj"), residual=x, out=x, squares=squares
                )  # (N, C)
            else:  # the last norm is a launch
                self._run("linear_residual", x=work.hidden, **w("mlp.c_proj"), residual=x, out=x)  # (N, C)

    def _squares(self, rows: int) -> tuple[int, int]:
        """Parts and rows of `squares`; none where all norms are launches: in a model that is not folded, and of more
        rows than have their products' weights read at once, but not many."""
        width = self.config.n_embd
        few = rows <= FEW_PANEL and width == PANEL
        if not self.folded or (rows <= MANY and not few):
            return 0, 0
        part = THIN if few else part_width(width, rows)
        tile = next((step for step in ROW_TILES if few and rows <= step), 64)
        return cdiv(width, part), cdiv(rows, tile) * tile

    def _in_parts(self, rows: int) -> bool:
        """Whether the product of the longest K is made in parts: of few rows a tile of it has few blocks to share it.
        Of a single row only where a part's weights are read at once: else it has a kernel of its own."""
        width = self.config.n_embd  # of a part's K too: the MLP is four times as wide, and there are four parts
        at_once = width == PANEL and ITEMSIZE[self.storage] == 2
        fewest, most = (1, FEW_PANEL) if at_once else (2, FEW)
        return fewest <= rows <= most and width <= WIDEST

    def _logits(self, x: DeviceBuffer, normed: DeviceBuffer, out: DeviceBuffer, *, ready: bool) -> None:
        """The final norm, unless `normed` has it already, and the tied output weights: (M, C) -> (M, padded V)."""
        if not ready:
            self._run("layernorm", x=x, **self._named("ln_f"), out=normed, eps=self.config.eps)  # (M, C)
        self._run("logits", x=normed, weight=self.weights["wte.weight"], out=out)  # (M, padded V)

    @property
    def _scale(self) -> float:
        return self.config.head_size**-0.5

    def _run(self, op: str, **args: DeviceBuffer | float) -> None:
        # tf32 is a way to multiply matrices: the other ops of a tf32 model are the f32 ones
        self.launcher(op, self.dtype if ops()[op].products else self.storage, **args)

    def _layer_weights(self, layer: int) -> Callable[[str], dict[str, DeviceBuffer]]:
        return lambda name: self._named(f"h.{layer}.{name}")

    def _named(self, name: str) -> dict[str, DeviceBuffer]:
        """A weight and its bias."""
        return {part: self.weights[f"{name}.{part}"] for part in ("weight", "bias")}

    # Memory

    def new_logits(self, rows: int) -> DeviceBuffer:
        """Room for logits (M, padded V)."""
        return self.executor.empty((rows, self.vocabulary), self.storage)

    def visible(self, logits: DeviceBuffer) -> DeviceBuffer:
        """Logits (M, V) without the padding."""
        return logits.slice(1, 0, self.config.vocab_size)

    def new_parts(self, rows: int) -> tuple[DeviceBuffer, DeviceBuffer]:
        """Room for the largest value of each part of M rows of logits and its place, each (M, Z)."""
        shape = (rows, cdiv(self.config.vocab_size, PART))
        return self.executor.empty(shape, "f32"), self.executor.empty(shape, "i32")

    def new_spans(self, cache: KVCache) -> Spans | None:
        """Room for what decode_attention makes of a cache's spans: partial (B, H, Z, D) and stats (B, H, Z, 2). Spans
        are as long as leaves no multiprocessor idle. None if that is the whole cache."""
        h, d = self.config.n_head, self.config.head_size
        enough = SPREAD * self.executor.sms
        if d == WHOLE and cache.batch * h >= enough:
            return None
        counts = [cdiv(cache.positions, span) for span in SPANS]
        shape = (cache.batch, h, next((z for z in counts if cache.batch * h * z >= enough), counts[-1]))
        return self.executor.empty((*shape, d), "f32"), self.executor.empty((*shape, 2), "f32")

    def new_workspace(self, batch: int, length: int) -> Workspace:
        """The arena of B sequences of T tokens."""
        rows = max(self._chunk_sizes(batch, length)) * length
        return allocate(
            self.executor, self.storage, self.config.n_embd, batch, batch * length, rows,
            parts=PARTS if self._in_parts(rows) else 0, squares=self._squares(rows),
        )  # fmt: skip

    def _kept_workspace(self, batch: int, length: int) -> Workspace:
        """Only the last prefill's and the last decode's are kept."""
        key = (batch, length)
        if key not in self._workspaces:
            for old in [k for k in self._workspaces if (k[1] == 1) == (length == 1)]:
                del self._workspaces[old]
            self._workspaces[key] = self.new_workspace(batch, length)
        return self._workspaces[key]

    def place(self, work: Workspace, tokens: Tokens, starts: NDArray[np.int32]) -> None:
        """Copies tokens (B, T) and their positions, from `starts` (B) on, to the device."""
        length = tokens.shape[1]
        positions = starts[:, None] + np.arange(length, dtype=np.int32)  # (B, T)
        work.tokens.copy_from(tokens.astype(np.int32).reshape(-1))
        work.positions.copy_from(positions.reshape(-1))
        work.starts.copy_from(starts)

    def check_tokens(
        self, tokens: Tokens, cache: KVCache | None = None, lengths: NDArray[np.integer[Any]] | None = None
    ) -> tuple[int, int]:
        """B and T of tokens that fit the model and the cache, of whose sequences (B,) positions are filled: by default
        its own lengths. Raises UsageError before anything is launched."""
        if tokens.ndim != 2 or 0 in tokens.shape or not np.issubdtype(tokens.dtype, np.integer):
            raise UsageError(f"tokens must be integers (B, T), at least one; got {tokens.dtype}{list(tokens.shape)}")
        (batch, length), vocab = tokens.shape, self.config.vocab_size
        if tokens.min() < 0 or tokens.max() >= vocab:
            raise UsageError(
                f"token {tokens.max() if tokens.max() >= vocab else tokens.min()} is outside the vocabulary of {vocab}",
                hint="was the text encoded by another model's tokenizer?",
            )
        limit, used = self.config.n_ctx, 0
        if cache is not None:
            if cache.batch != batch:
                raise UsageError(f"{batch} sequences for a cache of {cache.batch}")
            filled = cache.lengths if lengths is None else lengths
            if filled.shape != (batch,) or not np.issubdtype(filled.dtype, np.integer) or filled.min() < 0:
                raise UsageError(f"lengths of {batch} sequences must be as many integers from 0, not {filled.tolist()}")
            limit, used = cache.positions, int(filled.max())
        if used + length > limit:
            raise UsageError(f"{used} + {length} positions are more than the {limit} there are")
        return batch, length
