"""Keeps one model at a time on both sides, with the same weights: building a large one takes longer than measuring."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from gpt.config import Family, GPTConfig
from gpt.model import GPT
from gpt.parameters.weights import Weights, random_weights

from ..cases.roofline import parameters
from ..peers import torch_gpt, torch_llama
from ..peers.pytorch import Tensor, torch
from .kernels import Kernels
from .rig import Rig

SEED = 7
BACKENDS = ("flash", "cudnn")
PEERS: Mapping[Family, Any] = {"gpt2": torch_gpt, "llama": torch_llama}  # the module with a family's model in PyTorch
PeerModel = Any  # TorchGPT or TorchLlama


class Models:
    """The models of a config, each made when it is first needed. All have weights rounded to `dtype`, also the f32
    reference, so that only the computation is compared."""

    def __init__(self, rig: Rig, config: GPTConfig, dtype: str) -> None:
        self.rig, self.config, self.dtype = rig, config, dtype
        self.peer = PEERS[config.family]
        self._ours: dict[tuple[str, bool | None], GPT] = {}

    @functools.cached_property
    def weights(self) -> Weights:
        return random_weights(self.config, SEED).astype(self.dtype)

    @functools.cached_property
    def tensors(self) -> dict[str, Tensor]:
        return self.peer.state(self.config, self.weights, self.rig.torch.device)

    @functools.cached_property
    def bytes(self) -> int:
        """Bytes of the weights, without padding."""
        return parameters(self.config) * next(iter(self.weights.values())).itemsize

    def ours(self, kernels: Kernels, folded: bool | None = None) -> GPT:
        """Our model. `folded`: norms are part of the products; None leaves the choice to the model."""
        key = (kernels.name, folded)
        if key not in self._ours:
            launcher = kernels.launcher(self.rig.executor, model=True)
            self._ours[key] = GPT(self.config, self.weights, launcher, self.dtype, folded=folded)
        return self._ours[key]

    def forget_ours(self) -> None:
        """Free our models, so that the memory of the next ones can be measured from the start."""
        self._ours.clear()

    @functools.cached_property
    def peer_bytes(self) -> int:
        """Bytes of PyTorch's weights, whose vocabulary is padded."""
        return sum(value.numel() * value.element_size() for value in self.tensors.values())

    @functools.cached_property
    def eager(self) -> PeerModel:
        return self.peer.build(self.config, self.tensors, self.rig.torch.dtype(self.dtype))

    @functools.cached_property
    def fused_gelu(self) -> PeerModel:
        """A GPT-2 whose GELU is part of the product before it."""
        return torch_gpt.build(self.config, self.tensors, self.rig.torch.dtype(self.dtype), fused_gelu=True)

    @functools.cached_property
    def reference(self) -> PeerModel:
        """PyTorch's model in f32, with the same weights."""
        return self.peer.build(self.config, self.tensors, torch.float32)

    def fastest_attention(self, batch: int, queries: int, keys: int, *, causal: bool) -> str:
        """The fastest SDPA backend for this size, for peers that only try one."""
        side, config = self.rig.torch, self.config
        q = side.normal((batch, config.n_head, queries, config.head_size), self.dtype)
        k, v = (side.normal((batch, config.kv_heads, keys, config.head_size), self.dtype) for _ in range(2))
        grouped = {"enable_gqa": True} if config.group > 1 else {}
        attend = functools.partial(
            torch.nn.functional.scaled_dot_product_attention, q, k, v, is_causal=causal, **grouped
        )
        return side.fastest_attention(attend, BACKENDS)

    def cut(self, logits: Tensor) -> Tensor:
        """Without the padded vocabulary."""
        return logits[..., : self.config.vocab_size]


class Zoo:
    """Holds the models of the last config that was asked for."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self._last: Models | None = None

    def get(self, config: GPTConfig, dtype: str) -> Models:
        last = self._last
        if last is None or (last.config, last.dtype) != (config, dtype):
            self._last = last = None  # before the next is built: two large ones may not fit
            self.rig.torch.release()
            self._last = last = Models(self.rig, config, dtype)
        return last
