"""Forward passes of a GPT-2 in PyTorch, in bf16 and with products of 8-bit floats, for `benchmarks.eighths`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpt.config import GPTConfig

from .harness.passes import Pass
from .peers import torch_gpt, torch_gpt_f8
from .peers.pytorch import Tensor, torch
from .peers.torch_side import Replay, TorchSide

NAME = "PyTorch "  # before the name of each way
ATTENTION = "cudnn"  # the fastest of PyTorch's at these sizes on an H100 and an H200


class TorchWays:
    """The models. `wide`: bf16, with the GELU in a product's call, whose graph is PyTorch's fastest way at these sizes.
    `narrow`: with products of 8 bits."""

    def __init__(self, config: GPTConfig, weights: Mapping[str, NDArray[Any]], device: str, *, compiles: bool) -> None:
        self.config, self.compiles, self.side = config, compiles, TorchSide(device, flush_bytes=0)
        tensors = torch_gpt.state(config, weights, self.side.device)
        self.wide = torch_gpt.build(config, tensors, torch.bfloat16, fused_gelu=True)
        self.narrow = {
            name: torch_gpt_f8.build(config, tensors.items(), logits=logits)
            for name, logits in (("f8", False), ("f8, logits", True))
        }

    def passes(self, tokens: NDArray[np.int32]) -> Iterator[tuple[str, Pass]]:
        """Graphs over tokens (B, T). `compiles`: of 8 bits also those of what torch.compile makes of the model."""
        given = torch.from_numpy(tokens.astype(np.int64)).to(self.side.device)
        yield f"{NAME}bf16", self._pass(self.wide, given)
        for name, model in self.narrow.items():
            yield f"{NAME}{name}", self._pass(model, given)
            if self.compiles:
                yield f"{NAME}{name}, compiled", self._pass(self.side.compile(model, "default"), given)

    def _pass(self, model: Callable[[Tensor], Tensor], tokens: Tensor) -> Pass:
        def call() -> Tensor:
            with self.side.sdpa(ATTENTION if self.side.on_gpu else "any"):
                return model(tokens)

        replay = self.side.capture([call], 1)
        return Pass(
            replay.run, replay.poison, functools.partial(self._last, replay),
            lambda: self.side.time_us(replay.run, replay.poison),
        )  # fmt: skip

    def _last(self, replay: Replay) -> NDArray[np.float32]:
        """Logits (B, V) of the last positions."""
        self.side.synchronize()
        (made,) = replay.outputs()
        return made[:, -1, : self.config.vocab_size].float().cpu().numpy()
