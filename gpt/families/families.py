"""The families of models: for each, what computes its layers and how its weights lie on a device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import NDArray

from toolchain.errors import UsageError

from ..config import Family, GPTConfig
from ..parameters.quantize import Kind
from ..parameters.share import Share
from ..parameters.weights import Weights
from ..passes.layers import Layers
from . import gpt2, gpt2_8bits, gpt2_f8, gpt2_shared, llama, llama_shared, weights_8bits
from .shared_layers import SharedLayers


class DeviceWeights(Protocol):
    """Makes the weights as they lie on the device. Raises UsageError for one outside of the dtype's range."""

    def __call__(
        self, config: GPTConfig, weights: Weights, dtype: str, vocabulary: int, *, folded: bool
    ) -> Mapping[str, NDArray[Any]]: ...


class SharedWeights(Protocol):
    """Makes one rank's weights as they lie on the device, one after the other, of those that `share.weights` made."""

    def __call__(
        self, config: GPTConfig, weights: Mapping[str, NDArray[Any]], share: Share
    ) -> Iterator[tuple[str, NDArray[Any]]]: ...


@dataclass(frozen=True)
class Parts:
    """What differs between families. `folds`: it has a form whose norms are part of the products beside them."""

    layers: type[Layers]
    device_weights: DeviceWeights
    folds: bool


@dataclass(frozen=True)
class SharedParts:
    """The same for one of several ranks."""

    layers: type[SharedLayers]
    device_weights: SharedWeights


FAMILIES: Mapping[Family, Parts] = {
    "gpt2": Parts(gpt2.GPT2, gpt2.device_weights, folds=True),
    "llama": Parts(llama.Llama, llama.device_weights, folds=True),
}
SHARED: Mapping[Family, SharedParts] = {
    "gpt2": SharedParts(gpt2_shared.SharedGPT2, gpt2_shared.device_weights),
    "llama": SharedParts(llama_shared.SharedLlama, llama_shared.device_weights),
}
QUANTIZED: Mapping[tuple[Family, str], Parts] = {  # by the kind, see quantize.py
    ("gpt2", "f8"): Parts(gpt2_f8.GPT2InF8, gpt2_f8.device_weights, folds=False),
    ("gpt2", "i8"): Parts(gpt2_8bits.GPT2InI8, weights_8bits.gpt2_weights, folds=False),
}
WEIGHTS_ONLY: Mapping[tuple[Family, str], Parts] = {
    ("gpt2", "f8"): Parts(weights_8bits.GPT2OnF8, weights_8bits.gpt2_weights, folds=False),
    ("gpt2", "i8"): Parts(weights_8bits.GPT2OnI8, weights_8bits.gpt2_weights, folds=False),
    ("llama", "f8"): Parts(weights_8bits.LlamaOnF8, weights_8bits.llama_weights, folds=False),
    ("llama", "i8"): Parts(weights_8bits.LlamaOnI8, weights_8bits.llama_weights, folds=False),
}


def parts_of(config: GPTConfig, kind: Kind | None) -> Parts:
    """The parts of a model. `kind`: of its weights in 8 bits, or None. Raises UsageError for a llama whose activations
    would be rounded too."""
    if kind is None:
        return FAMILIES[config.family]
    found = (WEIGHTS_ONLY if config.weights_only else QUANTIZED).get((config.family, kind.name))
    if found is None:
        raise UsageError(f"a {config.family} whose activations are in 8 bits is not computed here")
    return found
