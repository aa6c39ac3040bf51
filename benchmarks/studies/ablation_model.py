"""The model as a stage of the ablation runs it."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from gpt.config import GPTConfig
from gpt.graphs import Decode
from gpt.model import GPT, VOCABULARY_STEP, KVCache
from gpt.parameters.weights import Weights
from toolchain.runtime import DeviceBuffer, Launcher

from .stages import WATERFALL, WITHOUT, Stage

SOURCE, TARGET, SMS, DTYPE = "mlir", "sm_90", 132, "bf16"
MODEL = "gpt2"
SEED = 7
FORWARD = (8, 1024)  # sequences, tokens
DECODE = (8, 1024)  # sequences, positions of the cache
STAGES = (*WATERFALL, *WITHOUT)


class Apart(Launcher):
    """Launches GELU by itself, where the model asks for a product with GELU."""

    _PLAIN = {"linear_gelu": "linear", "rms_linear_gelu": "rms_linear"}

    def __init__(self, launcher: Launcher) -> None:
        super().__init__(launcher.bundle, launcher.source, launcher.executor, launcher.target)
        self._between: dict[tuple[int, ...], DeviceBuffer] = {}

    def __call__(self, op: str, dtype: str, /, **args: DeviceBuffer | float) -> None:
        if op not in self._PLAIN:
            super().__call__(op, dtype, **args)
            return
        out = args["out"]
        assert isinstance(out, DeviceBuffer)
        if out.shape not in self._between:
            self._between[out.shape] = self.executor.empty(out.shape, out.dtype)
        between = self._between[out.shape]
        super().__call__(self._PLAIN[op], dtype, **{**args, "out": between})
        super().__call__("gelu", dtype, x=between, out=out)


def model(stage: Stage, config: GPTConfig, weights: Weights, launcher: Launcher, dtype: str) -> GPT:
    """The model as a stage runs it."""
    return GPT(
        config, weights, launcher if stage.gelu else Apart(launcher), dtype,
        folded=None if stage.folded else False, vocabulary_step=VOCABULARY_STEP if stage.padded else 1,
    )  # fmt: skip


def decoder(made: GPT) -> tuple[Decode, Callable[[], None]]:
    """Steps of decoding with a cache that is full but for one position, and what sets the cache back to that."""
    batch, positions = DECODE
    cache = KVCache(made, batch, positions)
    cache.memory.fill(0.01)
    step = Decode(made, cache)
    last = np.full(batch, positions - 1, np.int32)
    return step, functools.partial(step.reset, np.arange(batch, dtype=np.int32), last)
