"""How models spell their tensors, and which way round a GPT-2's linear weights lie: all to one form."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.errors import UsageError

from ..config import Family, GPTConfig

Array = NDArray[Any]
LINEAR = ("attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj")
HEAD = "lm_head.weight"
HEAD_SCALE = "lm_head.weight_scale"  # of a head in 8 bits, which is no longer the embedding
LLAMA_LINEAR = (
    "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
    "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj",
)  # fmt: skip


@dataclass(frozen=True)
class _Spelling:
    """`prefix`: before some or all names. `unread`: the ends of names of what older versions of transformers stored,
    and nobody reads."""

    prefix: str
    unread: tuple[str, ...]
    embedding: str


_OF: Mapping[Family, _Spelling] = {
    "gpt2": _Spelling("transformer.", (".attn.bias", ".attn.masked_bias"), "wte.weight"),  # causal masks
    "llama": _Spelling("model.", (".rotary_emb.inv_freq",), "embed_tokens.weight"),
}


def our_names(
    config: GPTConfig, stored: Iterable[str], alike: Callable[[str, str], bool], where: str
) -> dict[str, str]:
    """The stored name of each tensor by ours: without the prefix, and without a `lm_head.weight` that is tied to the
    embedding, unless it is in 8 bits. A file that stores shared memory once may have only one of these two. `alike`:
    whether two stored tensors are equal. Raises UsageError for two of one name, and for two that are tied and differ.
    """
    spelling = _OF[config.family]
    found: dict[str, str] = {}
    for full in stored:
        name = full.removeprefix(spelling.prefix)
        if name in found:
            raise UsageError(f"{where}: {name} is there twice, with `{spelling.prefix}` before it and without")
        if not name.endswith(spelling.unread):
            found[name] = full
    head = found.pop(HEAD, None) if config.tied and HEAD_SCALE not in found else None
    if head is not None and (other := found.setdefault(spelling.embedding, head)) != head and not alike(head, other):
        raise UsageError(f"{where}: {HEAD} differs from {spelling.embedding}; this model ties them")
    return found


def stored_names(config: GPTConfig, tensors: Mapping[str, Array]) -> dict[str, Array]:
    """The tensors by the names that transformers gives them: those of a llama with `model.` before them."""
    if config.family != "llama":
        return dict(tensors)
    prefix = _OF[config.family].prefix
    return {name if name == HEAD else prefix + name: each for name, each in tensors.items()}


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
