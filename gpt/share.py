"""One rank's share of a model that several GPUs run together (tensor parallelism).

The products that read the residual stream (QKV, the first of the MLP) are split by columns: each rank has some heads
and some of the hidden layer, and the keys and values of its heads. The products behind them are split by rows, so that
each rank makes a part of the sum that goes into the residual stream; all_reduce_layernorm adds these parts up on every
rank. Of the logits each rank makes those of some tokens, and next_token_of_ranks finds the likeliest of all. The
residual stream, its norms and the embeddings are whole on each: of these a pass reads few rows.

Heads that do not divide are shared unevenly: of GPT-2 XL's 25 one of two ranks has 12, the other 13.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.runtime import DeviceBuffer

from .config import HIDDEN_STEP, GPTConfig, shared, vocabulary_part
from .weights import stored_as

NOTHING = "nothing"  # the name of a bias of zeros (C,): the real one is added once, with the parts


@dataclass(frozen=True)
class Share:
    """`vocab_size`: of the whole model. `arguments`: flags, state and rank of this rank's collectives. `part`: for the
    0th or 1st product of a layer and a number of rows N, where each rank puts its part of the sum, (R, N, C).
    `likeliest`: for M rows of logits, where each rank puts the largest of its parts and their indices, (R, M, Z)."""

    rank: int
    ranks: int
    vocab_size: int
    arguments: Mapping[str, DeviceBuffer | float]
    part: Callable[[int, int], DeviceBuffer]
    likeliest: Callable[[int], tuple[DeviceBuffer, DeviceBuffer]]

    @property
    def vocabulary(self) -> int:
        """How many tokens' logits this rank makes, some of them perhaps behind the vocabulary."""
        return vocabulary_part(self.vocab_size, self.ranks)

    @property
    def tokens(self) -> range:
        """Those that are in the vocabulary."""
        first = self.rank * self.vocabulary
        return range(first, min(first + self.vocabulary, self.vocab_size))

    def device_weights(self, weights: Mapping[str, NDArray[Any]], dtype: str) -> Iterator[tuple[str, NDArray[Any]]]:
        """This rank's weights, which `weights` of this share made, as they lie on the device, one after the other.
        Raises UsageError for a weight that is out of the dtype's range."""
        for name in weights:
            tensor = stored_as(name, weights[name], dtype)
            if name == "wte.weight":  # (padded V, C)
                tensor = np.pad(tensor, ((0, self.ranks * self.vocabulary - len(tensor)), (0, 0)))
            yield name, tensor

    def weights(self, config: GPTConfig, weights: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        """The tensors of this rank, each a view of the whole one."""
        return _Part(self, config, weights)


class _Part(Mapping[str, NDArray[Any]]):
    """Takes each whole tensor when it is asked for, so that no more than one of them need be there."""

    def __init__(self, share: Share, config: GPTConfig, whole: Mapping[str, NDArray[Any]]) -> None:
        self._config, self._whole = config, whole
        self._heads = shared(config.n_head, share.rank, share.ranks)
        hidden = shared(config.ffn, share.rank, share.ranks, HIDDEN_STEP)
        self._hidden = slice(hidden.start, hidden.stop)

    def __iter__(self) -> Iterator[str]:
        yield from self._whole
        yield NOTHING

    def __len__(self) -> int:
        return len(self._whole) + 1

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name == NOTHING:
            return np.zeros(self._config.n_embd, np.float32)
        whole, size = self._whole[name], self._config.head_size
        if ".attn.c_attn." in name:  # (C, 3C) and (3C,)
            by_head = whole.reshape(*whole.shape[:-1], 3, self._config.n_head, size)
            own = by_head[..., self._heads.start : self._heads.stop, :]
            return own.reshape(*whole.shape[:-1], -1)
        if ".mlp.c_fc." in name:
            return whole[..., self._hidden]
        if name.endswith(".attn.c_proj.weight"):
            return whole[self._heads.start * size : self._heads.stop * size]
        return whole[self._hidden] if name.endswith(".mlp.c_proj.weight") else whole
