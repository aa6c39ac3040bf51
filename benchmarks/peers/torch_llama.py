"""A Llama in PyTorch: transformers' LlamaForCausalLM, with its static cache. Our forward and decode are compared with
it; in f32 it is also the reference.

B sequences of T tokens, G heads of keys and values of D numbers, V tokens in the vocabulary, P positions in a cache.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping
from typing import Any

from gpt.config import GPTConfig
from toolchain.errors import ToolchainError

from .pytorch import Tensor, nn, torch
from .torch_gpt import Cache, as_tensors

NAME = "transformers, "  # before the name of each peer
# transformers' attention, without a mask. While a CUDA graph is captured or a model is compiled, its own `sdpa` makes a
# mask for everything, with which PyTorch takes slower kernels and each head of keys is copied for its heads of queries.
UNMASKED = "sdpa_without_a_mask"


@functools.cache
def transformers() -> Any:
    """The library, with its attention registered under UNMASKED too. Raises ToolchainError where it is missing."""
    try:
        library = importlib.import_module("transformers")
    except ModuleNotFoundError as error:
        if error.name != "transformers":
            raise
        raise ToolchainError(
            "not run: transformers missing", hint="pip install transformers==5.17.0 beside PyTorch"
        ) from error
    sdpa = importlib.import_module("transformers.integrations.sdpa_attention").sdpa_attention_forward
    library.AttentionInterface.register(UNMASKED, sdpa)
    return library


class TorchLlama(nn.Module):
    """`masked`: as transformers runs it. `unmasked`: the same weights with UNMASKED, for whole texts, and for steps
    that attend to all of a cache."""

    def __init__(self, config: GPTConfig, tensors: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.masked, self.unmasked = (_model(config, tensors, how) for how in ("sdpa", UNMASKED))

    def forward(self, tokens: Tensor, *, masked: bool = False) -> Tensor:
        """Logits (B, T, V) of tokens (B, T)."""
        model = self.masked if masked else self.unmasked
        return model(input_ids=tokens, use_cache=False).logits

    def fill(self, tokens: Tensor, cache: Cache) -> None:
        """Write keys and values of tokens (B, T) to the first T positions of a cache."""
        made = self.masked.model(input_ids=tokens, use_cache=True).past_key_values
        for layer, k, v in zip(made.layers, cache.k, cache.v, strict=True):
            k[:, :, : tokens.shape[1]], v[:, :, : tokens.shape[1]] = layer.keys, layer.values

    def hold(self, cache: Cache) -> Any:
        """A static cache on the memory of a cache of (B, G, P, D); `rewind` says how many positions are filled."""
        held = transformers().StaticCache(config=self.masked.config, max_cache_len=cache.k[0].shape[2])
        for layer, k, v in zip(held.layers, cache.k, cache.v, strict=True):
            layer.lazy_initialization(k[:, :, :1], v[:, :, :1])
            layer.keys, layer.values = k, v  # not the memory that it took
        return held

    def rewind(self, held: Any, length: int) -> None:
        """The next step's position is `length`. transformers counts the positions of each layer by itself."""
        for layer in held.layers:
            layer.cumulative_length.fill_(length)

    def step(self, tokens: Tensor, position: Tensor, held: Any, *, masked: bool = False) -> Tensor:
        """Logits (B, V) after one more token (B,) of each sequence at one position (1,), which is written to the cache.

        If `masked`, the token attends to positions up to `position`; otherwise to all, for a cache that it fills.
        """
        model = self.masked if masked else self.unmasked
        made = model(input_ids=tokens[:, None], position_ids=position[None], past_key_values=held, use_cache=True)
        return made.logits[:, 0]


def _model(config: GPTConfig, tensors: Mapping[str, Tensor], how: str) -> Any:
    library = transformers()
    sizes = library.LlamaConfig(
        vocab_size=config.vocab_size, hidden_size=config.n_embd, intermediate_size=config.ffn,
        num_hidden_layers=config.n_layer, num_attention_heads=config.n_head, num_key_value_heads=config.kv_heads,
        head_dim=config.head_size, max_position_embeddings=config.n_ctx, rms_norm_eps=config.eps,
        rope_parameters={"rope_type": "default", "rope_theta": config.rope_base}, tie_word_embeddings=config.tied,
        attn_implementation=how,
    )  # fmt: skip
    with torch.device("meta"):
        model = library.LlamaForCausalLM(sizes)
    model.load_state_dict(tensors, assign=True)
    (device,) = {value.device for value in tensors.values()}
    rotary = type(model.model.rotary_emb)
    model.model.rotary_emb = rotary(sizes).to(device)  # its frequencies are no weights
    return model


def state(config: GPTConfig, weights: Mapping[str, Any], device: Any) -> dict[str, Tensor]:
    """Our weights under the module's names, on `device`."""
    del config  # torch_gpt's pads the vocabulary
    return {name if name == "lm_head.weight" else f"model.{name}": value for name, value in as_tensors(weights, device)}


def build(config: GPTConfig, tensors: Mapping[str, Tensor], dtype: Any) -> TorchLlama:
    """A model with these tensors in `dtype`. Tensors that already have this dtype are shared, not copied."""
    cast = {name: value.to(dtype) for name, value in tensors.items()}
    if config.tied:
        cast["lm_head.weight"] = cast["model.embed_tokens.weight"]
    return TorchLlama(config, cast).requires_grad_(False).eval()
