"""The sizes that make a GPT, and the well-known ones by name."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Any, Literal

from toolchain.errors import UsageError

HEAD_SIZES = (32, 64, 128)  # what the attention kernels are made for
MOST_LAYERS = 1 << 12  # far more than anybody has trained; a limit, because the twelve tensors of each are listed
VOCABULARY_STEP = 64  # the vocabulary is padded to a multiple of it, so that rows of logits are aligned whole tiles
HIDDEN_STEP = 64  # columns: a rank's part of the hidden layer is so many, or a multiple
_DERIVED = ("kv_heads", "head_size", "ffn")  # sizes that follow from the others where nobody gives them
MOST = 2**31 - 1  # the limit of all other sizes: kernels count in 32 bits


Family = Literal["gpt2", "llama"]
# What each family computes. Every field that is not here may have any value.
_FAMILIES: Mapping[str, Mapping[str, object]] = {
    "gpt2": {
        "norm": "layernorm", "positions": "learned", "activation": "gelu", "biases": True, "tied": True,
        "qk_norm": False, "rope_scaling": None,
    },
    "llama": {"norm": "rmsnorm", "positions": "rope", "activation": "swiglu", "biases": False},
}  # fmt: skip


@dataclass(frozen=True)
class GPTConfig:
    """A decoder-only model of pre-norm blocks. By default a GPT-2: layernorm, learned positions, tanh GELU, biases,
    output weights tied to the token embedding.

    `family`: which forward pass computes it; it takes only its own values of some of the fields (see `_FAMILIES`).
    `kv_heads`, `head_size` and `ffn` follow from the other sizes where they are 0, and in a GPT-2 always: as many key
    heads as heads, which share the width, and a hidden layer of 4 widths.
    """

    n_layer: int
    n_head: int
    n_embd: int
    n_ctx: int
    vocab_size: int
    eps: float = 1e-5
    end_tokens: tuple[int, ...] = ()  # a text ends at each of them, beside the tokenizer's end of text
    family: Family = "gpt2"
    norm: Literal["layernorm", "rmsnorm"] = "layernorm"
    positions: Literal["learned", "rope"] = "learned"
    activation: Literal["gelu", "swiglu"] = "gelu"
    biases: bool = True
    tied: bool = True  # the output weights are the token embedding's
    kv_heads: int = 0  # n_head / kv_heads heads of queries share each head of keys and values
    head_size: int = 0
    ffn: int = 0  # the width of the MLP's hidden layer
    qk_norm: bool = False  # an RMSNorm of each head of queries and keys, before they are turned
    rope_base: float = 10000.0
    rope_scaling: tuple[float, ...] | None = None  # D/2 numbers that divide the frequencies of a head's pairs
    weights_only: bool = (
        False  # of a model with weights in 8 bits: its products take rows in 16, see parameters/quantize.py
    )

    def __post_init__(self) -> None:
        if self.family not in _FAMILIES:
            raise UsageError(f"no family {self.family!r}", hint=f"one of {', '.join(_FAMILIES)}")
        for name, value in _FAMILIES[self.family].items():
            if getattr(self, name) != value:
                raise UsageError(
                    f"{name} is {getattr(self, name)!r}; models of the family {self.family} have {value!r}"
                )
        if self.family == "gpt2":
            self._set(dict.fromkeys(_DERIVED, 0))
        check_sizes(vars(self))
        derived = (self.n_head, self.n_embd // self.n_head, 4 * self.n_embd)
        self._set({name: getattr(self, name) or size for name, size in zip(_DERIVED, derived, strict=True)})
        divisors = self.rope_scaling
        if divisors is not None and (len(divisors) * 2 != self.head_size or not all(0 < d < inf for d in divisors)):
            raise UsageError(f"rope_scaling is {self.head_size // 2} numbers above 0, not {divisors}")

    def _set(self, sizes: Mapping[str, int]) -> None:
        for name, size in sizes.items():
            object.__setattr__(self, name, size)

    def part(self, rank: int, ranks: int) -> GPTConfig:
        """The sizes that one of several ranks has of a model: its heads of keys, with the heads of queries that share
        them, and its part of the hidden layer. Raises UsageError for a model that so many ranks cannot share."""
        hidden = -(-self.ffn // HIDDEN_STEP)
        for count, what in (
            (self.kv_heads, "heads" if self.group == 1 else "heads of keys"),
            (hidden, f"times {HIDDEN_STEP} columns of a hidden layer"),
        ):
            if count < ranks:
                raise UsageError(
                    f"{count} {what} cannot be shared by {ranks} GPUs: each takes at least one",
                    hint=f"at most {count} can share this model" if count > 1 else "run it on one",
                )
        if (ranks - 1) * vocabulary_part(self.vocab_size, ranks) >= self.vocab_size:
            raise UsageError(f"a vocabulary of {self.vocab_size} cannot be shared by {ranks} GPUs", hint="take fewer")
        made = copy(self)
        keys = len(shared(self.kv_heads, rank, ranks))
        ffn = len(shared(self.ffn, rank, ranks, HIDDEN_STEP))
        for name, size in (("n_head", keys * self.group), ("kv_heads", keys), ("ffn", ffn)):
            object.__setattr__(made, name, size)  # not as `replace` does, which would derive the head size anew
        return made

    @property
    def group(self) -> int:
        """How many heads of queries share a head of keys and values."""
        return self.n_head // self.kv_heads


def shared(count: int, rank: int, ranks: int, step: int = 1) -> range:
    """Which of `count` numbered things, such as heads, a rank has: as even as whole steps of so many things allow."""
    steps = -(-count // step)
    first, stop = (min(steps * each // ranks * step, count) for each in (rank, rank + 1))
    return range(first, stop)


def vocabulary_part(size: int, ranks: int) -> int:
    """How many tokens' logits each of several ranks makes. The last one's reach past the end of the vocabulary."""
    step = VOCABULARY_STEP if size >= VOCABULARY_STEP**2 else VOCABULARY_STEP // 8
    return -(-size // (ranks * step)) * step


def check_sizes(sizes: Mapping[str, Any], spelled: Mapping[str, str] | None = None) -> None:
    """Raises UsageError if the sizes, by their names in a GPTConfig, are not those of a model. `spelled`: what to call
    them, where they come from a file with other names."""
    called = {name: name for name in sizes} | dict(spelled or {})
    given = [name for name in _DERIVED if sizes.get(name)]  # the others follow
    for name in ("n_layer", "n_head", "n_embd", "n_ctx", "vocab_size", *given):
        size, most = sizes[name], MOST_LAYERS if name == "n_layer" else MOST
        if not 1 <= size <= most:
            raise UsageError(f"{called[name]} is {size}: it must be from 1 to {most}")
    width, heads, head = sizes["n_embd"], sizes["n_head"], sizes.get("head_size")
    if not head and (width % heads or width // heads not in HEAD_SIZES):
        raise UsageError(
            f"{called['n_embd']} {width} with {called['n_head']} {heads} is a head size of {width / heads:g}; "
            f"attention takes {', '.join(map(str, HEAD_SIZES))}"
        )
    if head and head not in HEAD_SIZES:
        raise UsageError(f"{called['head_size']} is {head}; attention takes {', '.join(map(str, HEAD_SIZES))}")
    if heads % (sizes.get("kv_heads") or heads):
        raise UsageError(f"{called['n_head']} {heads} is not a multiple of {called['kv_heads']} {sizes['kv_heads']}")
    if not 0 < sizes["eps"] < 1:
        raise UsageError(f"{called['eps']} is {sizes['eps']}: it must be between 0 and 1")
    if not sizes.get("rope_base", 1) > 0:
        raise UsageError(f"{called['rope_base']} is {sizes['rope_base']}: it must be above 0")


llama = partial(GPTConfig, family="llama", norm="rmsnorm", positions="rope", activation="swiglu", biases=False)

# nano: the smallest that has every kind of layer, for tests. mini: what we train and ship. The others are GPT-2's.
PRESETS: Mapping[str, GPTConfig] = {
    "nano": GPTConfig(n_layer=2, n_head=2, n_embd=64, n_ctx=128, vocab_size=257),
    "mini": GPTConfig(n_layer=6, n_head=5, n_embd=160, n_ctx=256, vocab_size=257),
    "gpt2": GPTConfig(n_layer=12, n_head=12, n_embd=768, n_ctx=1024, vocab_size=50257),
    "medium": GPTConfig(n_layer=24, n_head=16, n_embd=1024, n_ctx=1024, vocab_size=50257),
    "large": GPTConfig(n_layer=36, n_head=20, n_embd=1280, n_ctx=1024, vocab_size=50257),
    "xl": GPTConfig(n_layer=48, n_head=25, n_embd=1600, n_ctx=1024, vocab_size=50257),
}
# Those of the family llama. nano has three heads of queries to a head of keys, as SmolLM2-135M has.
LLAMAS: Mapping[str, GPTConfig] = {
    "nano": llama(2, 6, 192, 128, 257, kv_heads=2, head_size=32, ffn=320),
    "smollm2": llama(30, 9, 576, 8192, 49152, kv_heads=3, ffn=1536, rope_base=100000.0),
}


def preset(name: str) -> GPTConfig:
    if name not in PRESETS:
        raise UsageError(f"no model size {name!r}", hint=f"one of {', '.join(PRESETS)}")
    return PRESETS[name]
