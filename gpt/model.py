"""A GPT on a device: its weights, its memory, and the calls that run it. The layers of each family are in
families/gpt2.py and families/llama.py.

B sequences of T tokens, N = B * T rows, C = n_embd, H heads of queries and G of keys and values, each of D numbers, V
tokens in the vocabulary, P positions in a cache.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.contract.expressions import cdiv
from toolchain.contract.policy import Policy
from toolchain.errors import UsageError
from toolchain.runtime import DeviceBuffer, Launcher
from toolchain.runtime.layout import dtype_name

from .config import VOCABULARY_STEP, GPTConfig
from .families.families import SHARED, parts_of
from .families.one_launch import OP_RANKS, OneLaunch, Parts, dims, op_of
from .parameters.quantize import has_head, kind_of
from .parameters.share import Share
from .parameters.step_weights import Kept
from .parameters.weights import Weights, check, load
from .passes.arena import Arena
from .passes.chosen import Chosen
from .passes.kv_cache import KVCache, check_kind, elsewhere
from .passes.layers import Launch, Spans
from .passes.passes import Passes
from .passes.plan import ModelPlan
from .passes.recorder import Recorder
from .passes.squares import is_folded
from .passes.workspace import Shape, Workspace, allocate, buffers
from .sampling import check_finite

Tokens = NDArray[np.integer[Any]]
FOLDED = "rms_linear"  # an op that only folded models launch
PART = 2048  # columns of a row of logits that one block of argmax_parts reads


class GPT:
    """A GPT on the launcher's executor.

    `dtype`: f32, tf32 (f32 with tf32 matrix products), f16 or bf16.
    `folded`: True makes the norms of many rows part of the products beside them (see parameters/fold.py and
    passes/squares.py); by default this is done if the target has kernels for it.
    Weights that are quantized (`weights.quantized`) make a model whose products are in 8 bits.
    `policy`: by default the one that the bundle has for the launcher's target.
    `vocabulary_step`: the vocabulary is padded to a multiple of it.
    `share`: what this model has of one that several GPUs run together, with its config and weights: see parallel.py.
    `cache`: "f8" makes its caches of keys and values in 8-bit floats: see passes/kv_cache.py.
    """

    def __init__(
        self, config: GPTConfig, weights: Mapping[str, NDArray[Any]], launcher: Launcher, dtype: str = "bf16", *,
        folded: bool | None = None, policy: Policy | None = None, vocabulary_step: int = VOCABULARY_STEP,
        share: Share | None = None, cache: str = "",
    ) -> None:  # fmt: skip
        """Copies the weights to the device. Raises UsageError if they do not fit the config, if `folded` is asked for
        and this model cannot be folded, and for a cache that it cannot have."""
        check_kind(cache, dtype)
        if share is None:  # the whole weights were checked
            check(config, weights, "weights")
        self.config, self.launcher, self.dtype, self.cache = config, launcher, dtype, cache
        self.storage = "f32" if dtype == "tf32" else dtype
        self.executor = launcher.executor
        self._share = share
        # Padded: columns of logits; and those of them that are tokens
        self.vocabulary = cdiv(config.vocab_size, vocabulary_step) * vocabulary_step
        self.visible_tokens = range(config.vocab_size)
        if share is not None:
            self.vocabulary, self.visible_tokens = share.vocabulary, share.tokens
        kind = kind_of(weights)
        self.quantized = dtype_name(kind.dtype) if kind else ""  # the dtype of its products, if that is of 8 bits
        self._family = parts_of(config, kind)
        policy = policy or launcher.policy
        if not self._family.folds or share is not None:
            if folded:
                which = "quantized model" if self.quantized else config.family
                raise UsageError(f"the norms of a {which} are launches of their own: it cannot be folded")
            folded = False
        if folded is None and launcher.borrows_from and launcher.source_of(FOLDED, dtype) != launcher.source:
            folded = False  # a source that has no kernels for it runs its own products and norms
        self.folded = is_folded(folded, config.n_embd, dtype, policy)
        if share is None:
            whole = weights if isinstance(weights, Weights) else Weights(weights)
            stored = self._family.device_weights(config, whole, dtype, self.vocabulary, folded=self.folded).items()
        else:
            stored = SHARED[config.family].device_weights(config, weights, share)
        self.weights = {name: self.executor.from_numpy(tensor) for name, tensor in stored}
        if share is not None:
            self.weights |= share.own_rows(config, self.weights)
        self._plan = ModelPlan(config, self.storage, self.folded, self.executor.sms, policy, bool(kind))
        self.passes = self._passes_through(launcher)
        self._workspaces: dict[tuple[int, int], Workspace] = {}
        self._one_launches: dict[str, OneLaunch] = {}  # by op, made when they are first wanted
        self._kept = Kept(self.executor)  # what they have of the weights

    @classmethod
    def from_pretrained(cls, path_or_name: str | Path, *, launcher: Launcher, dtype: str = "bf16") -> GPT:
        """The model in a checkpoint's folder, or a GPT-2 of the Hugging Face hub by name."""
        config, weights, _ = load(path_or_name)
        return cls(config, weights, launcher, dtype)

    def launched_by(self, launcher: Launcher) -> GPT:
        """The same model on the same weights, with another launcher of its executor."""
        made = copy(self)
        made.launcher, made.passes = launcher, self._passes_through(launcher)
        made._workspaces = {}  # noqa: SLF001 - of the copy; those of this model are its own
        return made

    def beside(self, share: Share) -> GPT:
        """The same rank's model on the same weights, with other flags and other room for sums, so that its graphs may
        run beside those of this one."""
        made = copy(self)
        made._share, made._workspaces = share, {}  # noqa: SLF001 - of the copy; those of this model are its own
        made.passes = made._passes_through(self.launcher)  # noqa: SLF001
        return made

    @property
    def nbytes(self) -> int:
        """Bytes of the weights on the device."""
        allocations = {id(tensor.allocation): tensor.allocation for tensor in self.weights.values()}
        return sum(each.nbytes for each in allocations.values())

    # The calls that run the model: each copies its tokens to the device and launches

    def forward(self, tokens: Tokens) -> DeviceBuffer:
        """Logits (B, T, V) at every position of tokens (B, T), in memory that later calls do not touch."""
        batch, length = self.check_tokens(tokens)
        work = self._kept_workspace(batch, length)
        self.place(work, tokens, np.zeros(batch, np.int32))
        out = self.new_logits(batch * length)
        self.passes.forward(work, batch, length, out)
        return self.visible(out).unflatten(0, batch, length)

    def prefill(self, tokens: Tokens, cache: KVCache) -> DeviceBuffer:
        """Append tokens (B, T) to a cache whose sequences are equally long. Returns logits (B, V) after the last
        one."""
        launch, logits = self.prefill_launches(tokens, cache)
        launch()
        return logits

    def prefill_launches(self, tokens: Tokens, cache: KVCache) -> tuple[Callable[[], None], DeviceBuffer]:
        """What launches a prefill, and the logits that it writes. The cache counts the tokens from here on."""
        batch, length = self.check_tokens(tokens, cache)
        start = int(cache.lengths[0])
        if (cache.lengths != start).any():
            raise UsageError(f"prefill needs equally long sequences, the cache has {cache.lengths.tolist()}")
        work = self._kept_workspace(batch, length)
        self.place(work, tokens, cache.lengths)
        out = self.new_logits(batch)
        launch = partial(self.passes.prefill, work, cache.layer, batch, length, start, out)
        cache.lengths += length
        return launch, self.visible(out)

    def decode(self, tokens: Tokens, cache: KVCache) -> DeviceBuffer:
        """Append one token (B,) to each sequence of a cache, of any lengths. Returns the logits (B, V) after it."""
        column = np.asarray(tokens).reshape(-1, 1)  # (B, 1)
        batch, _ = self.check_tokens(column, cache)
        work = self._kept_workspace(batch, 1)
        self.place(work, column, cache.lengths)
        out = self.new_logits(batch)
        self.step_launches(work, cache, out)()
        cache.lengths += 1
        return self.visible(out)

    def step_launches(self, work: Workspace, cache: KVCache, out: DeviceBuffer) -> Callable[[], None]:
        """What launches a decoding step, as `Passes.decode` or as one launch."""
        if self.takes_one_launch(cache):
            return self._one_step(work, cache, out, self.new_chosen(cache).parts)
        return partial(self.passes.decode, work, cache.layer, cache.batch, self.new_spans(cache), out)

    def choosing_launches(
        self, work: Workspace, cache: KVCache, out: DeviceBuffer, chosen: Chosen
    ) -> Callable[[], None]:  # fmt: skip
        """A function that launches a decoding step and the choice of the next token, written to `chosen` and `work`."""
        parts, place = chosen.parts, {"tokens": work.tokens, "positions": work.positions}
        if self.takes_one_launch(cache):
            step, choose = self._one_step(work, cache, out, parts), partial(self.passes.choose, parts, **place)
            if cache.batch == 1 and self._share is None:  # chooses itself
                return step
        else:
            step = self.step_launches(work, cache, out)
            choose = partial(self.passes.next_token, self.visible(out), parts, **place)

        def both() -> None:
            step()
            choose()

        return both

    def new_chosen(self, cache: KVCache) -> Chosen:
        """Room for what the steps over a cache choose."""
        if self._share is not None:
            count = self.executor.sms if self.takes_one_launch(cache) else 0
            return Chosen(self.executor.empty((cache.batch,), "i32"), *self.new_parts(cache.batch, count))
        parts = self.executor.sms if self.takes_one_launch(cache) else cdiv(len(self.visible_tokens), PART)
        return Chosen.new(self.executor, cache.batch, parts)

    def _one_step(self, work: Workspace, cache: KVCache, out: DeviceBuffer, parts: Parts) -> Callable[[], None]:
        op = self._step_op(cache.batch)
        if op not in self._one_launches:
            self._one_launches[op] = OneLaunch(op, self.config, self.weights, self.vocabulary, self._kept, self._share)
        return partial(self._one_launches[op], self.launcher, work, cache, out, parts)

    def _step_op(self, texts: int) -> str:
        """The op of a step of so many texts as one launch, or "" if there is none for such a model."""
        if self.config.family != "gpt2":
            return ""
        if self._share is not None:
            return OP_RANKS if texts == 1 and not self.cache else ""
        logits = has_head(self.weights)
        return op_of(texts, folded=self.folded, quantized=self.quantized, logits=logits, cache=self.cache)

    def takes_one_launch(self, cache: KVCache) -> bool:
        """Whether a step over this cache is one launch. It is for a GPT-2 that is folded, or whose weights are 8-bit
        floats: for one text, and for two to eight whose cache is in 16 bits, if the source has an entry for its sizes
        and the device has as many multiprocessors as the one that the policy is for."""
        launcher, config, op = self.launcher, self.config, self._step_op(cache.batch)
        parts = [cache.memory] if cache.scales is None else [cache.memory, cache.scales]
        whole = all(part.layout.aligned_contiguous for part in parts)
        if not (whole and op and launcher.target):
            return False
        if self._share is not None:
            return self._share.step(cache.positions) is not None
        if self.executor.sms < self._plan.policy.sms:
            return False
        sizes = dims(op, cache.batch, config, self.vocabulary, cache.positions, self.executor.sms)
        return launcher.has(op, self.dtype, sizes)

    def check_step(self, largest: NDArray[Any]) -> None:
        """Raises ConformanceError if one of a step's largest logits is NaN or positive infinity, and what check_waits
        does if one is NaN."""
        if np.isnan(largest).any():
            self.check_waits(len(largest))
        check_finite(largest)

    def check_waits(self, texts: int) -> None:
        """Raises ConformanceError if a block of the last step waited too long, DeviceError if for another rank."""
        if step := self._one_launches.get(self._step_op(texts)):
            step.check()

    def step_by_step(self, tokens: Tokens) -> NDArray[np.float32]:
        """Logits (B, T, V) after each of tokens (B, T), which come one by one, through a cache, as a text is
        continued."""
        cache = KVCache(self, len(tokens), tokens.shape[1])
        steps = [self.prefill(tokens[:, :1], cache)]
        steps += [self.decode(tokens[:, at], cache) for at in range(1, tokens.shape[1])]
        return np.stack([logits.numpy().astype(np.float32) for logits in steps], axis=1)

    def argmax(self, logits: DeviceBuffer) -> NDArray[np.int32]:
        """The likeliest token of each row of logits (M, V). Raises ConformanceError if one of them is NaN or positive
        infinity."""
        launch, likeliest = self.argmax_launches(logits)
        launch()
        return likeliest()

    def argmax_launches(self, logits: DeviceBuffer) -> tuple[Callable[[], None], Callable[[], NDArray[np.int32]]]:
        """What launches it, and what then reads it."""
        rows = logits.shape[0]
        tokens, positions = (self.executor.empty((rows,), "i32") for _ in range(2))
        positions.fill(0)
        parts = largest, _ = self.new_parts(rows)

        def likeliest() -> NDArray[np.int32]:
            check_finite(largest.numpy())
            return tokens.numpy()

        return partial(self.passes.next_token, logits, parts, tokens, positions), likeliest

    # Memory

    def new_logits(self, rows: int) -> DeviceBuffer:
        """Room for logits (M, padded V)."""
        return self.executor.empty((rows, self.vocabulary), self.storage)

    def visible(self, logits: DeviceBuffer) -> DeviceBuffer:
        """Logits (M, V) without the padding; those of this model's share."""
        return logits.slice(1, 0, len(self.visible_tokens))

    def new_parts(self, rows: int, count: int = 0) -> tuple[DeviceBuffer, DeviceBuffer]:
        """Room for the largest value of each part of M rows of logits, and for its index, each (M, Z). `count`: Z of a
        rank's step."""
        shape = (rows, cdiv(len(self.visible_tokens), PART))
        if self._share is not None:
            values, indices = (both.select(0, self._share.rank) for both in self._share.likeliest(rows, count))
            values.fill(-np.inf)  # a rank with fewer parts than the others has nothing in the last
            if count:
                return values, indices
            return values.slice(1, 0, shape[1]), indices.slice(1, 0, shape[1])
        return self.executor.empty(shape, "f32"), self.executor.empty(shape, "i32")

    def new_spans(self, cache: KVCache) -> Spans | None:
        """Room for the results of decode_attention on a cache's spans: partial (B, H, Z, D) and stats (B, H, Z, 2).
        None if the cache is not split into spans."""
        count = self._plan.spans(cache.batch, cache.positions, whole=self._may_be_unsplit(cache))
        if count is None:
            return None
        shape = (cache.batch, self.config.n_head, count)
        sizes = (self.config.head_size, 2)
        partial, stats = (self.executor.empty((*shape, size), "f32") for size in sizes)
        return partial, stats

    def _may_be_unsplit(self, cache: KVCache) -> bool:
        """Whether one launch may attend to all of a cache. Over one in 8 bits it is an op that a source need not have,
        for heads that share no keys."""
        if cache.scales is None:
            return True
        config, sizes = self.config, cache.memory.shape  # (L, 2, B, P, H, D)
        dims = dict(zip("BPHD", sizes[2:], strict=True))
        return config.family == "gpt2" and self.launcher.has("decode_attention_unsplit_f8", self.storage, dims)

    def new_workspace(self, batch: int, length: int) -> Workspace:
        """A new workspace for any pass over B sequences of T tokens."""
        return allocate(self.executor, self._buffers(batch, length), self.layout(batch, length))

    def layout(self, batch: int, length: int) -> Arena:
        """Where the buffers of a workspace lie, chosen so that no pass overwrites data that it still reads."""
        buffers = self._buffers(batch, length)
        recorder = Recorder(self.executor, buffers)
        passes, work = self._passes_through(recorder), recorder.work
        vocabulary, storage, config = self.vocabulary, self.storage, self.config
        heads, size = config.n_head, config.head_size
        cached = elsewhere(self, recorder, batch)
        with recorder.one_pass():
            passes.forward(work, batch, length, recorder.elsewhere((batch * length, vocabulary), storage))
        logits = recorder.elsewhere((batch, vocabulary), storage)
        with recorder.one_pass():
            passes.prefill(work, lambda _: cached, batch, length, 0, logits)
        if length == 1:
            partial, stats = (recorder.elsewhere((batch, heads, 1, last), "f32") for last in (size, 2))
            for spans in ((partial, stats), None)[: 1 if self.cache and config.family != "gpt2" else 2]:
                with recorder.one_pass():
                    passes.decode(work, lambda _: cached, batch, spans, logits)
        return recorder.arena()

    def _buffers(self, batch: int, length: int) -> Mapping[str, Shape]:
        rows = max(self._plan.chunk_sizes(batch, length)) * length
        parts, squares = self._plan.parts(rows), self._plan.squares(rows)
        return buffers(
            self.config, self.storage, batch, batch * length, rows, parts=parts, squares=squares,
            rounded="" if self.config.weights_only else self.quantized,
            widened=batch * self.config.n_ctx if self.cache else 0,
        )  # fmt: skip

    def _passes_through(self, launch: Launch) -> Passes:
        if self._share is not None:
            layers = SHARED[self.config.family].layers
            return Passes(layers(launch, self.weights, self._plan, self.dtype, self._share))
        return Passes(self._family.layers(launch, self.weights, self._plan, self.dtype))

    def _kept_workspace(self, batch: int, length: int) -> Workspace:
        """The workspace for this shape. Only those of the last prefill and of the last decode are kept."""
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
        """B and T of the tokens. Raises UsageError, before anything is launched, if they do not fit the model or the
        cache. `lengths` (B,): filled positions of each sequence, by default those that the cache states."""
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
                raise UsageError(
                    f"the lengths of {batch} sequences must be {batch} integers of at least 0, not {filled.tolist()}"
                )
            limit, used = cache.positions, int(filled.max())
        if used + length > limit:
            raise UsageError(f"{used} + {length} positions are more than the {limit} there are")
        return batch, length
