"""The sizes that make a GPT, and the well-known ones by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from toolchain.errors import UsageError
from toolchain.tables import is_integer

HEAD_SIZES = (32, 64, 128)  # what the attention kernels are made for
MOST_LAYERS = 1 << 12  # far more than anybody has trained; a limit, because the twelve tensors of each are listed
MOST = 2**31 - 1  # the limit of all other sizes: kernels count in 32 bits
_IS_IT = "is it the config.json of a GPT-2?"


@dataclass(frozen=True)
class GPTConfig:
    """A GPT-2: pre-norm blocks, learned positions, tanh GELU, output weights tied to the token embedding."""

    n_layer: int
    n_head: int
    n_embd: int
    n_ctx: int
    vocab_size: int
    eps: float = 1e-5

    def __post_init__(self) -> None:
        for name in ("n_layer", "n_head", "n_embd", "n_ctx", "vocab_size"):
            size, most = getattr(self, name), MOST_LAYERS if name == "n_layer" else MOST
            if not 1 <= size <= most:
                raise UsageError(f"{name} is {size}: it must be from 1 to {most}")
        if self.n_embd % self.n_head or self.head_size not in HEAD_SIZES:
            raise UsageError(
                f"n_embd {self.n_embd} in {self.n_head} heads is a head size of {self.n_embd / self.n_head:g}; "
                f"attention takes {', '.join(map(str, HEAD_SIZES))}"
            )
        if not 0 < self.eps < 1:
            raise UsageError(f"eps is {self.eps}: it must be between 0 and 1")

    @property
    def head_size(self) -> int:
        return self.n_embd // self.n_head

    @classmethod
    def from_hugging_face(cls, row: object, where: str) -> GPTConfig:
        """The config in `row`, the content of a GPT-2 `config.json` at `where`. Raises UsageError for anything else,
        and for a variant of GPT-2 that the model does not compute."""
        if not isinstance(row, dict):
            raise UsageError(f"{where} does not hold a JSON object", hint=_IS_IT)
        row = cast("dict[str, Any]", row)
        wanted = {
            "model_type": "gpt2", "activation_function": "gelu_new", "scale_attn_weights": True,
            "scale_attn_by_inverse_layer_idx": False, "tie_word_embeddings": True, "add_cross_attention": False,
        }  # fmt: skip
        for key, value in wanted.items():
            if row.get(key, value) != value:
                raise UsageError(f"{where}: {key} is {row[key]!r}; this model is the GPT-2 with {value!r}")
        names = ("n_layer", "n_head", "n_embd", "n_positions", "vocab_size")
        if missing := [name for name in names if not is_integer(row.get(name))]:
            raise UsageError(f"{where}: no integer {', '.join(missing)}", hint=_IS_IT)
        n_layer, n_head, n_embd, n_ctx, vocab_size = (int(row[name]) for name in names)
        if (inner := row.get("n_inner")) not in (None, 4 * n_embd):
            raise UsageError(f"{where}: n_inner is {inner}; this model has 4 x n_embd")
        if not isinstance(eps := row.get("layer_norm_epsilon", cls.eps), int | float):
            raise UsageError(f"{where}: layer_norm_epsilon is {eps!r}, which is not a number")
        try:
            return cls(n_layer, n_head, n_embd, n_ctx, vocab_size, eps)
        except UsageError as error:
            raise UsageError(f"{where}: {error.args[0]}") from error

    def to_hugging_face(self) -> dict[str, Any]:
        """The `config.json` that `from_hugging_face` reads."""
        return {
            "model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "activation_function": "gelu_new",
            "n_layer": self.n_layer, "n_head": self.n_head, "n_embd": self.n_embd, "n_positions": self.n_ctx,
            "vocab_size": self.vocab_size, "layer_norm_epsilon": self.eps,
        }  # fmt: skip


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
