"""One rank's share of a model that several GPUs run together (tensor parallelism).

The products that read the residual stream (QKV, the first of the MLP) are split by columns: each rank has some heads
and some of the hidden layer, and the keys and values of its heads. The products behind them are split by rows, so that
each rank makes a part of the sum that goes into the residual stream; all_reduce_layernorm adds these parts up on every
rank. Embeddings, norms and the residual stream are whole on each. Heads that do not divide are shared unevenly: of
GPT-2 XL's 25 one of two ranks has 12, the other 13.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.runtime import DeviceBuffer

from .config import HIDDEN_STEP, GPTConfig, shared
from .weights import Weights

NOTHING = "nothing"  # the name of a bias of zeros (C,): the real one is added once, with the parts


@dataclass(frozen=True)
class Share:
    """`arguments`: flags, state and rank of this rank's collectives. `part`: for the 0th or 1st product of a layer and
    a number of rows N, where each rank puts its part of the sum, (R, N, C)."""

    rank: int
    ranks: int
    arguments: Mapping[str, DeviceBuffer | float]
    part: Callable[[int, int], DeviceBuffer]

    def weights(self, config: GPTConfig, weights: Mapping[str, NDArray[Any]]) -> Weights:
        """The tensors of this rank, as views of the whole ones."""
        found = dict(weights)
        heads, size = shared(config.n_head, self.rank, self.ranks), config.head_size
        own_heads = slice(heads.start, heads.stop)
        rows = slice(heads.start * size, heads.stop * size)
        part = shared(config.ffn, self.rank, self.ranks, HIDDEN_STEP)
        hidden = slice(part.start, part.stop)
        for layer in range(config.n_layer):
            qkv, out, first, second = (
                f"h.{layer}.{name}" for name in ("attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj")
            )
            for kind in ("weight", "bias"):  # (C, 3C) and (3C,)
                whole = weights[f"{qkv}.{kind}"]
                by_head = whole.reshape(*whole.shape[:-1], 3, config.n_head, size)[..., own_heads, :]
                found[f"{qkv}.{kind}"] = by_head.reshape(*whole.shape[:-1], -1)
                found[f"{first}.{kind}"] = weights[f"{first}.{kind}"][..., hidden]
            found[f"{out}.weight"] = weights[f"{out}.weight"][rows]
            found[f"{second}.weight"] = weights[f"{second}.weight"][hidden]
        found[NOTHING] = np.zeros(config.n_embd, np.float32)
        return Weights(found)
