"""A decoding step of one text as a single launch, of the op `decode_step`: for a folded GPT-2, where the launcher's
source has an entry for its sizes. docs/one-kernel.md has the kernel.

C = n_embd = H heads of D, L layers, V tokens in the vocabulary, P positions in a cache.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from toolchain.runtime import DeviceBuffer, Executor, Launcher

from .config import GPTConfig
from .kv_cache import KVCache
from .threads import in_threads
from .workspace import Workspace

OP = "decode_step"
COLUMNS = 64  # of the residual stream in a warp of the kernel, and of a head


class OneLaunch:
    """Launches steps. It has copies of the weights of the layers, as the op takes them."""

    def __init__(
        self, config: GPTConfig, weights: Mapping[str, DeviceBuffer], executor: Executor, vocabulary: int
    ) -> None:
        """`weights`: a folded model's, on the device, whose vocabulary is padded to `vocabulary` rows."""
        sizes = dims(config, vocabulary, config.n_ctx, executor.sms)
        self._eps = config.eps
        self._arrays = _packed(config, weights, executor) | {
            "wte": weights["wte.weight"], "wpe": weights["wpe.weight"], "norm_weight": weights["ln_f.weight"],
            "norm_bias": weights["ln_f.bias"],
        }  # fmt: skip
        for name, shape, kind in (
            ("launches", "B", np.int32), ("sums", "S", np.int64), ("errors", "BW", np.int32)
        ):  # fmt: skip
            self._arrays[name] = executor.from_numpy(np.zeros([sizes[dim] for dim in shape], kind))

    def __call__(self, launcher: Launcher, work: Workspace, cache: KVCache, out: DeviceBuffer) -> None:
        """Appends the token in `work` to a cache of one text, and makes the logits `out` (1, padded V)."""
        layers, _, _, positions, heads, size = cache.memory.shape
        launcher(
            OP, out.dtype, **self._arrays, tokens=work.tokens, positions=work.positions, logits=out,
            cache=cache.memory.reshape(layers, 2, positions, heads * size), eps=self._eps,
        )  # fmt: skip


def dims(config: GPTConfig, vocabulary: int, positions: int, sms: int) -> dict[str, int]:
    """The sizes of the op's arrays. Its scratch has room for a block on each multiprocessor."""
    layers, width = config.n_layer, config.n_embd
    return {
        "N": 1, "L": layers, "C": width, "E": 3 * width, "F": config.ffn, "H": config.n_head, "D": config.head_size,
        "V": vocabulary, "X": config.n_ctx, "P": positions, "TWO": 2, "B": sms, "W": width // COLUMNS,
        "S": 4 * layers * width,
    }  # fmt: skip


def _packed(config: GPTConfig, weights: Mapping[str, DeviceBuffer], executor: Executor) -> dict[str, DeviceBuffer]:
    """The weights and biases of all layers."""
    layers, width, hidden = config.n_layer, config.n_embd, config.ffn
    by_head = (config.n_head, config.head_size, width)  # of a weight (C, C): what each head gives to each column
    shapes = {
        "qkv": (3 * width, width), "proj": (config.n_head, width, config.head_size), "fc": (hidden, width),
        "out": (hidden, width), "qkv_bias": (3 * width,), "proj_bias": (width,), "fc_bias": (hidden,),
        "out_bias": (width,),
    }  # fmt: skip
    storage = weights["wte.weight"].dtype
    made = {name: executor.empty((layers, *shape), storage) for name, shape in shapes.items()}

    def pack(layer: int) -> None:
        def of(name: str, part: str = "weight") -> DeviceBuffer:
            return weights[f"h.{layer}.{name}.{part}"]

        rows = {
            "qkv": of("attn.c_attn").numpy().T, "fc": of("mlp.c_fc").numpy().T,  # (in, out) -> (out, in)
            "proj": of("attn.c_proj").numpy().reshape(by_head).swapaxes(1, 2),
        }  # fmt: skip
        for name, array in rows.items():
            made[name].select(0, layer).copy_from(array)
        for name, source in (
            ("out", of("mlp.c_proj")), ("qkv_bias", of("attn.c_attn", "bias")),
            ("proj_bias", of("attn.c_proj", "bias")), ("fc_bias", of("mlp.c_fc", "bias")),
            ("out_bias", of("mlp.c_proj", "bias")),
        ):  # fmt: skip
            made[name].select(0, layer).copy_from(source)

    in_threads(pack, range(layers))
    return made
