"""The families of models: for each, what computes its layers and how its weights lie on a device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import NDArray

from . import gpt2, gpt2_8bits, gpt2_f8, llama
from .config import Family, GPTConfig
from .layers import Layers
from .weights import Weights


class DeviceWeights(Protocol):
    """Makes the weights as they lie on the device. Raises UsageError for one outside of the dtype's range."""

    def __call__(
        self, config: GPTConfig, weights: Weights, dtype: str, vocabulary: int, *, folded: bool
    ) -> Mapping[str, NDArray[Any]]: ...


@dataclass(frozen=True)
class Parts:
    """What differs between families. `folds`: it has a form whose norms are part of the products beside them."""

    layers: type[Layers]
    device_weights: DeviceWeights
    folds: bool


FAMILIES: Mapping[Family, Parts] = {
    "gpt2": Parts(gpt2.GPT2, gpt2.device_weights, folds=True),
    "llama": Parts(llama.Llama, llama.device_weights, folds=True),
}
QUANTIZED: Mapping[str, Mapping[Family, Parts]] = {  # by the kind, see quantize.py
    "f8": {"gpt2": Parts(gpt2_f8.GPT2InF8, gpt2_f8.device_weights, folds=False)},
    "i8": {"gpt2": Parts(gpt2_8bits.GPT2InI8, gpt2_8bits.device_weights, folds=False)},
}
