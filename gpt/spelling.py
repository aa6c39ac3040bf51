"""How models spell their tensors, and which way round a GPT-2's linear weights lie: all to one form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.errors import UsageError

from .config import GPTConfig

Array = NDArray[Any]
PREFIX = "transformer."
LINEAR = ("attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj")
LLAMA_PREFIX = "model."
FREQUENCIES = ".rotary_emb.inv_freq"  # which older versions of transformers stored, and none reads
MASKS = (".attn.bias", ".attn.masked_bias")  # causal masks, which older versions of transformers stored


def our_names(tensors: Mapping[str, Array], where: str) -> dict[str, Array]:
    """The tensors by our names: without the `transformer.` prefix, the stored causal masks and `lm_head.weight`, which
    is tied to the embedding `wte.weight`. A file that stores shared memory once may have only one of these two."""
    found: dict[str, Array] = {}
    for full, tensor in tensors.items():
        name = full.removeprefix(PREFIX)
        if name in found:
            raise UsageError(f"{where}: {name} is there twice, with `{PREFIX}` before it and without")
        if not name.endswith(MASKS):
            found[name] = tensor
    head = found.pop("lm_head.weight", None)
    if head is not None and not np.array_equal(head, found.setdefault("wte.weight", head)):
        raise UsageError(f"{where}: lm_head.weight differs from wte.weight; this model ties them")
    return found


def llama_names(config: GPTConfig, tensors: Mapping[str, Array], where: str) -> dict[str, Array]:
    """The tensors of a Llama or Qwen3 by our names: without the `model.` prefix, the stored frequencies of rotary
    positions, and an `lm_head.weight` that is tied to the embedding."""
    found: dict[str, Array] = {}
    for full, tensor in tensors.items():
        name = full.removeprefix(LLAMA_PREFIX)
        if name in found:
            raise UsageError(f"{where}: {name} is there twice, with `{LLAMA_PREFIX}` before it and without")
        if not name.endswith(FREQUENCIES):
            found[name] = tensor
    head = found.pop("lm_head.weight", None) if config.tied else None
    if head is not None and not np.array_equal(head, found.setdefault("embed_tokens.weight", head)):
        raise UsageError(f"{where}: lm_head.weight differs from embed_tokens.weight; by its config they are tied")
    return found


def input_first(config: GPTConfig, tensors: Mapping[str, Array], where: str) -> dict[str, Array]:
    """Linear weights as (in, out). GPT-2's own Conv1D stores them so; models with torch's Linear, such as nanoGPT's,
    store (out, in), which the shapes of three of the four layers tell. Raises UsageError for a mixture: the square one,
    attn.c_proj, could then be either."""
    c = config.n_embd
    first = {"attn.c_attn": (c, 3 * c), "mlp.c_fc": (c, 4 * c), "mlp.c_proj": (4 * c, c)}
    wanted = {f"h.{i}.{name}.weight": shape for i in range(config.n_layer) for name, shape in first.items()}
    turned = [name for name, shape in wanted.items() if name in tensors and tensors[name].shape == shape[::-1]]
    if not turned:
        return dict(tensors)
    straight = [name for name, shape in wanted.items() if name in tensors and tensors[name].shape == shape]
    if straight:
        raise UsageError(f"{where}: {straight[0]} is stored (in, out), {turned[0]} (out, in): what is attn.c_proj?")
    linear = {f"h.{i}.{name}.weight" for i in range(config.n_layer) for name in LINEAR}
    return {n: np.ascontiguousarray(x.T) if n in linear and x.ndim == 2 else x for n, x in tensors.items()}
