"""Weights of all layers as the ops `decode_step` take them: copies of a model's own, in another order (ops.toml).

C = n_embd = H heads of D, L layers, F hidden units. Of each op: U hidden units side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.runtime import DeviceBuffer, Executor

from ..config import GPTConfig
from .quantize import SCALE, WEIGHT
from .spelling import HEAD, HEAD_SCALE
from .threads import in_threads

Array = NDArray[Any]
UNITS, UNITS_F8, UNITS_TEXTS = 8, 16, 64
ROWS, COLUMNS = 8, 64  # of a tile in 8 bits
LINEAR = {"qkv": "attn.c_attn", "proj": "attn.c_proj", "fc": "mlp.c_fc", "out": "mlp.c_proj"}
NORMS = {"qkv": "ln_1", "fc": "ln_2"}


class Kept:
    """The copies of one model on its device. Of an array that several of its ops take alike there is one."""

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        self._known: dict[tuple[str, tuple[int, ...], str], DeviceBuffer] = {}  # by name, shape and dtype

    def __call__(self, name: str, array: Array) -> DeviceBuffer:
        """An array of the model's weights, on the device."""
        key = name, array.shape, array.dtype.name
        if key not in self._known:
            self._known[key] = self.executor.from_numpy(array)
        return self._known[key]


def packed(
    config: GPTConfig, weights: Mapping[str, DeviceBuffer], kept: Kept, units: int = UNITS
) -> dict[str, DeviceBuffer]:  # fmt: skip
    """Those of a folded model in 16 bits, whose weights are (in, out). `units`: hidden units side by side."""
    width, hidden = config.n_embd, config.ffn
    by_head = (config.n_head, config.head_size, width)

    def of(layer: int) -> dict[str, Array]:
        def part(name: str, kind: str = "weight") -> Array:
            return weights[f"h.{layer}.{LINEAR[name]}.{kind}"].numpy()

        made = {f"{name}_bias": part(name, "bias") for name in LINEAR}
        return made | {
            "qkv": part("qkv").T, "fc": part("fc").T, "proj": part("proj").reshape(by_head).swapaxes(1, 2),
            "out": part("out").reshape(hidden // units, units, width).swapaxes(1, 2),
        }  # fmt: skip

    return _of_layers(config, kept, of)


def packed_f8(
    config: GPTConfig, weights: Mapping[str, DeviceBuffer], kept: Kept, units: int = UNITS_F8
) -> dict[str, DeviceBuffer]:  # fmt: skip
    """Those of a model in 8 bits, whose weights are (out, in). `units`: hidden units side by side."""
    width, hidden = config.n_embd, config.ffn

    def of(layer: int) -> dict[str, Array]:
        def part(name: str, kind: str) -> Array:
            return weights[f"h.{layer}.{name}{kind}"].numpy()

        made: dict[str, Array] = {}
        for name, full in LINEAR.items():
            made[f"{name}_scales"], made[f"{name}_bias"] = part(full, SCALE), part(full, ".bias")
        for i, (name, norm) in enumerate(NORMS.items()):
            weight, gain, shift = part(LINEAR[name], WEIGHT), part(norm, WEIGHT), part(norm, ".bias")
            made[name], made[f"norm_{i + 1}"] = _tiled(weight), gain
            made[f"{name}_sums"] = _times(weight, gain)
            of_shift = made[f"{name}_scales"] * _times(weight, shift)
            made[f"{name}_bias"] = made[f"{name}_bias"].astype(np.float32) + of_shift
        proj, out = part(LINEAR["proj"], WEIGHT), part(LINEAR["out"], WEIGHT)
        made["proj"] = proj.reshape(width, config.n_head, -1).swapaxes(0, 1)
        made["out"] = out.reshape(width, hidden // units, units).swapaxes(0, 1)
        return made

    return _of_layers(config, kept, of)


def packed_head(weights: Mapping[str, DeviceBuffer], kept: Kept) -> dict[str, DeviceBuffer]:
    """What makes the logits in 8 bits."""
    return {"head": kept("head", _tiled(weights[HEAD].numpy())), "head_scales": weights[HEAD_SCALE]}


def _tiled(weight: Array) -> Array:
    """Rows (N, K) in tiles (N / 8, K / 64, 8, 64)."""
    rows, columns = weight.shape
    return np.ascontiguousarray(weight.reshape(rows // ROWS, ROWS, columns // COLUMNS, COLUMNS).swapaxes(1, 2))


def _times(weight: Array, row: Array) -> Array:
    """weight (N, K) @ row (K), in f32, summed in f64 as gpt/parameters/fold.py does."""
    wide = (each.astype(np.float32) for each in (weight, row))
    return np.einsum("nk,k->n", *wide, dtype=np.float64).astype(np.float32)


def _of_layers(config: GPTConfig, kept: Kept, of: Callable[[int], dict[str, Array]]) -> dict[str, DeviceBuffer]:
    """The arrays of each layer, with the layers as their first dimension. The host has them once until they are on the
    device, and beside them the layers that threads work at."""
    stacked = {
        name: np.empty((config.n_layer, *array.shape), array.dtype) for name, array in of(0).items()
    }  # fmt: skip

    def fill(layer: int) -> None:
        for name, array in of(layer).items():
            stacked[name][layer] = array

    in_threads(fill, range(config.n_layer))
    return {name: kept(name, stacked.pop(name)) for name in list(stacked)}
