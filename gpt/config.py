"""The sizes that make a GPT, and the well-known ones by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from toolchain.errors import UsageError

HEAD_SIZES = (32, 64, 128)  # what the attention kernels are made for
MOST_LAYERS = 1 << 12  # far more than anybody has trained; a limit, because the twelve tensors of each are listed
MOST = 2**31 - 1  # the limit of all other sizes: kernels count in 32 bits


@dataclass(frozen=True)
class GPTConfig:
    """A GPT-2: pre-norm blocks, learned positions, tanh GELU, output weights tied to the token embedding."""

    n_layer: int
    n_head: int
    n_embd: int
    n_ctx: int
    vocab_size: int
    eps: float = 1e-5
    end_tokens: tuple[int, ...] = ()  # a text ends at each of them, beside the tokenizer's end of text

    def __post_init__(self) -> None:
        check_sizes(vars(self))

    @property
    def head_size(self) -> int:
        return self.n_embd // self.n_head


def check_sizes(sizes: Mapping[str, float], spelled: Mapping[str, str] | None = None) -> None:
    """Raises UsageError if the sizes, by their names in a GPTConfig, are not those of a model. `spelled`: what to call
    them, where they come from a file with other names."""
    called = {name: name for name in sizes} | dict(spelled or {})
    for name in ("n_layer", "n_head", "n_embd", "n_ctx", "vocab_size"):
        size, most = sizes[name], MOST_LAYERS if name == "n_layer" else MOST
        if not 1 <= size <= most:
            raise UsageError(f"{called[name]} is {size}: it must be from 1 to {most}")
    width, heads = sizes["n_embd"], sizes["n_head"]
    if width % heads or width // heads not in HEAD_SIZES:
        raise UsageError(
            f"{called['n_embd']} {width} with {called['n_head']} {heads} is a head size of {width / heads:g}; "
            f"attention takes {', '.join(map(str, HEAD_SIZES))}"
        )
    if not 0 < sizes["eps"] < 1:
        raise UsageError(f"{called['eps']} is {sizes['eps']}: it must be between 0 and 1")


# nano: the smallest that has every kind of layer, for tests. mini: what we train and ship. The others are GPT-2's.
PRESETS: Mapping[str, GPTConfig] = {
    "nano": GPTConfig(n_layer=2, n_head=2, n_embd=64, n_ctx=128, vocab_size=257),
    "mini": GPTConfig(n_layer=6, n_head=5, n_embd=160, n_ctx=256, vocab_size=257),
    "gpt2": GPTConfig(n_layer=12, n_head=12, n_embd=768, n_ctx=1024, vocab_size=50257),
    "medium": GPTConfig(n_layer=24, n_head=16, n_embd=1024, n_ctx=1024, vocab_size=50257),
    "large": GPTConfig(n_layer=36, n_head=20, n_embd=1280, n_ctx=1024, vocab_size=50257),
    "xl": GPTConfig(n_layer=48, n_head=25, n_embd=1600, n_ctx=1024, vocab_size=50257),
}


def preset(name: str) -> GPTConfig:
    if name not in PRESETS:
        raise UsageError(f"no model size {name!r}", hint=f"one of {', '.join(PRESETS)}")
    return PRESETS[name]
