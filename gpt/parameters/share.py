"""One rank's share of a model that several GPUs run together (tensor parallelism).

The products that read the residual stream (queries, keys and values; the first of the MLP) are split by columns: each
rank has some heads and some of the hidden layer, and the keys and values of its heads. Heads of queries that share a
head of keys stay together. The products behind them are split by rows, so that each rank makes a part of the sum that
goes into the residual stream; a collective adds these parts up on every rank, and norms the sum. Of the logits each
rank makes those of some tokens, and next_token_of_ranks finds the likeliest of all. The residual stream, its norms and
the embeddings are whole on each: of these a pass reads few rows.

Heads that do not divide are shared unevenly: of GPT-2 XL's 25 one of two ranks has 12, the other 13.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.runtime import DeviceBuffer

from ..config import HIDDEN_STEP, Family, GPTConfig, shared, vocabulary_part
from .fold import fold_one
from .spread import Spread
from .weights import stored_as

WHOLE = "whole"  # the end of a name
NOTHING = "nothing"  # the name of a bias of zeros (C,): the real one is added once, with the parts


@dataclass(frozen=True)
class Share:
    """`vocab_size`: of the whole model. `arguments`: flags, state and rank of this rank's collectives. `part`: for the
    0th or 1st product of a layer and a number of rows N, where each rank puts its part of the sum, (R, N, C).
    `likeliest`: for M rows of logits in Z parts, 0 for as many as passes have, where each rank puts the largest of its
    parts and their indices, (R, M, Z). `spread`: for N rows, the residual stream of a pass whose rows are shared out
    too, or None. `step`: for P positions of a cache, what ranks tell each other in a decoding step that is one launch
    on each, (R, Q), or None."""

    rank: int
    ranks: int
    vocab_size: int
    arguments: Mapping[str, DeviceBuffer | float]
    part: Callable[[int, int], DeviceBuffer]
    likeliest: Callable[[int, int], tuple[DeviceBuffer, DeviceBuffer]]
    spread: Callable[[int], Spread | None] = lambda _: None
    step: Callable[[int], DeviceBuffer | None] = lambda _: None

    @property
    def vocabulary(self) -> int:
        """How many tokens' logits this rank makes, some of them perhaps behind the vocabulary."""
        return vocabulary_part(self.vocab_size, self.ranks)

    @property
    def tokens(self) -> range:
        """Those that are in the vocabulary."""
        first = self.rank * self.vocabulary
        return range(first, min(first + self.vocabulary, self.vocab_size))

    def weights(
        self, config: GPTConfig, weights: Mapping[str, NDArray[Any]], dtype: str, *, folded: bool = False,
        whole: bool = False,
    ) -> Mapping[str, NDArray[Any]]:  # fmt: skip
        """The tensors of this rank in the storage of `dtype`, each a view of the whole one where that is stored so.
        `folded`: in the bits of those of a GPT-2 that was folded as a whole (see fold.py). `whole`: the projections
        behind a GPT-2's attention with all of their rows, by names that end with WHOLE; `own_rows` has the rank's.
        Taking one raises UsageError if it is out of the dtype's range."""
        return _Part(self, config, weights, dtype, folded=folded, whole=whole)

    def own_rows(self, config: GPTConfig, weights: Mapping[str, DeviceBuffer]) -> dict[str, DeviceBuffer]:
        """The rank's rows of each projection that it has as a whole, as views, by the projection's own name. `config`:
        the rank's."""
        made: dict[str, DeviceBuffer] = {}
        for name in weights:
            if name.endswith(WHOLE):
                rows = shared(weights[name].shape[0], self.rank, self.ranks, config.head_size)
                made[name.removesuffix(WHOLE) + "weight"] = weights[name].slice(0, rows.start, rows.stop)
        return made


# Of which tensors a rank has a part, by the ends of their names: along which dimension, and what lies there. Linear
# weights of a GPT-2 are (in, out), of a llama (out, in).
_SHARED: Mapping[Family, Mapping[str, tuple[int, str]]] = {
    "gpt2": {
        "attn.c_attn.weight": (1, "heads"), "attn.c_attn.bias": (0, "heads"), "attn.c_proj.weight": (0, "heads"),
        "mlp.c_fc.weight": (1, "hidden"), "mlp.c_fc.bias": (0, "hidden"), "mlp.c_proj.weight": (0, "hidden"),
    },
    "llama": {
        "self_attn.q_proj.weight": (0, "heads"), "self_attn.k_proj.weight": (0, "keys"),
        "self_attn.v_proj.weight": (0, "keys"), "self_attn.o_proj.weight": (1, "heads"),
        "mlp.gate_proj.weight": (0, "hidden"), "mlp.up_proj.weight": (0, "hidden"),
        "mlp.down_proj.weight": (1, "hidden"), "lm_head.weight": (0, "tokens"),
    },
}  # fmt: skip
_PROJECTION = "attn.c_proj.weight"
_THREE = ".attn.c_attn."  # queries, keys and values beside one another


class _Part(Mapping[str, NDArray[Any]]):
    """Takes each whole tensor when it is asked for, so that no more than one of them need be there, and folds the part
    of it: a column of what is folded is made of the same column, and a row of the same row."""

    def __init__(
        self, share: Share, config: GPTConfig, all_of: Mapping[str, NDArray[Any]], dtype: str, *, folded: bool,
        whole: bool,
    ) -> None:  # fmt: skip
        self._config, self._whole, self._dtype, self._folded = config, all_of, dtype, folded
        self._projections = whole
        self._last: tuple[str, NDArray[Any]] | None = None  # a bias that is folded takes the weight, which comes next
        heads, size = shared(config.kv_heads, share.rank, share.ranks), config.head_size
        keys = range(heads.start * size, heads.stop * size)
        self._own = {
            "heads": range(keys.start * config.group, keys.stop * config.group), "keys": keys,
            "hidden": shared(config.ffn, share.rank, share.ranks, HIDDEN_STEP), "tokens": share.tokens,
        }  # fmt: skip

    def __iter__(self) -> Iterator[str]:
        for name in self._whole:
            yield name.removesuffix("weight") + WHOLE if self._projections and name.endswith(_PROJECTION) else name
        if self._config.biases:
            yield NOTHING

    def __len__(self) -> int:
        return len(self._whole) + self._config.biases

    def __getitem__(self, name: str) -> NDArray[Any]:
        if self._config.biases and name == NOTHING:
            return stored_as(name, np.zeros(self._config.n_embd, np.float32), self._dtype)
        if name.endswith(WHOLE):
            name = name.removesuffix(WHOLE) + "weight"
            tensor = fold_one(name, self._whole.__getitem__) if self._folded else self._whole[name]
            return stored_as(name, tensor, self._dtype)
        return stored_as(name, fold_one(name, self._part) if self._folded else self._part(name), self._dtype)

    def _part(self, name: str) -> NDArray[Any]:
        if self._last is None or self._last[0] != name:
            self._last = None  # before the next one is there
            self._last = name, self._cut(name, self._whole[name])
        return self._last[1]

    def _cut(self, name: str, whole: NDArray[Any]) -> NDArray[Any]:
        found = next((cut for end, cut in _SHARED[self._config.family].items() if name.endswith(end)), None)
        if found is None:
            return whole
        dimension, what = found
        own = slice(self._own[what].start, self._own[what].stop)
        if _THREE in name:
            return whole.reshape(*whole.shape[:-1], 3, -1)[..., own].reshape(*whole.shape[:-1], -1)
        return whole[own] if dimension == 0 else whole[:, own]
