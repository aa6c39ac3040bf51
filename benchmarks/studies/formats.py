"""How much worse the shipped model predicts a text with its products in 8-bit floats, in e4m3 and in e5m2.

python -m benchmarks.studies.formats TEXT [--pieces N]    # on a CPU, in numpy

All else is in f32. A scale makes the largest number of a row, or of the weights of an output, the largest of the
format. `one scale`: rows are divided by one number for all texts instead, which follows from the weights, as
gpt/families/gpt2_f8.py has it for two of the four places (`as the model`).
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from conformance.reference import eager
from gpt.config import GPTConfig
from gpt.families import gpt2_f8
from gpt.parameters import quantize
from gpt.parameters.weights import SHIPPED, load
from gpt.reference import forward as reference
from gpt.reference import perplexity
from gpt.tokens.tokenizer import load_tokenizer

Array = NDArray[Any]
FORMATS = {"e4m3": np.dtype(ml_dtypes.float8_e4m3fn), "e5m2": np.dtype(ml_dtypes.float8_e5m2)}
ROWS = {"attn.c_attn": "ln_1", "attn.c_proj": "attention", "mlp.c_fc": "ln_2", "mlp.c_proj": "hidden"}
PLACES = ("weights", *ROWS.values())
MODEL = ("attention", "hidden")  # places whose rows the model divides by one number


@dataclass(frozen=True)
class Setting:
    """`formats`: by place; the other places stay in f32. `one_scale`: the places whose rows have one scale."""

    formats: Mapping[str, str]
    one_scale: Collection[str] = ()


@dataclass(frozen=True)
class Product:
    """A weight (K, N) in f32, and the dtype to which rows before it are rounded, if any, by a scale of each or one."""

    weight: Array
    dtype: np.dtype[Any] | None
    scale: float | None


def settings() -> dict[str, Setting]:
    """What is measured, by what is printed."""
    made: dict[str, Setting] = {}
    for number in FORMATS:
        everywhere = dict.fromkeys(PLACES, number)
        made[f"all {number}"] = Setting(everywhere)
        made[f"all {number}, as the model"] = Setting(everywhere, MODEL)
        made[f"all {number}, one scale"] = Setting(everywhere, PLACES)
        made |= {f"{place} {number}": Setting({place: number}) for place in PLACES}
        made |= {f"{place} {number}, one scale": Setting({place: number}, PLACES) for place in ROWS.values()}
    mixed = dict.fromkeys(PLACES, "e4m3")
    made |= {f"all e4m3 but {place}, as the model": Setting(mixed | {place: "e5m2"}, MODEL) for place in PLACES}
    return made


def rounded(rows: Array, dtype: np.dtype[Any], scale: float | None = None) -> Array:
    """Rows (N, K) f32, rounded to a format and widened again."""
    largest = np.float32(ml_dtypes.finfo(dtype).max)
    each = np.maximum(np.abs(rows).max(axis=-1, keepdims=True) / largest, np.float32(quantize.LEAST))
    scales = each if scale is None else np.float32(scale)
    return np.clip(rows / scales, -largest, largest).astype(dtype).astype(np.float32) * scales


class Ops:
    """The ops of gpt/reference/forward.py in f32, with products that round their rows first."""

    def __getattr__(self, name: str) -> Any:
        return partial(getattr(eager, name), dtype="f32")

    def linear(self, x: Array, of: Product, bias: Array) -> Array:
        rows = x if of.dtype is None else rounded(x, of.dtype, of.scale)
        return rows @ of.weight + bias

    def linear_gelu(self, x: Array, of: Product, bias: Array) -> Array:
        return eager.gelu(self.linear(x, of, bias), dtype="f32")

    def linear_residual(self, x: Array, of: Product, bias: Array, residual: Array) -> Array:
        return residual + self.linear(x, of, bias)


def model(config: GPTConfig, tensors: Mapping[str, Array], setting: Setting) -> dict[str, Any]:
    """The tensors in f32, and its products."""
    made: dict[str, Any] = {name: np.asarray(tensor, np.float32) for name, tensor in tensors.items()}
    for layer in range(config.n_layer):
        bounds = largest_of_rows(config, tensors, layer) if setting.one_scale else {}
        for product, place in ROWS.items():
            name = f"h.{layer}.{product}.weight"
            weight, dtype = made[name], FORMATS.get(setting.formats.get(place, ""))
            if "weights" in setting.formats:
                weight = rounded(weight.T, FORMATS[setting.formats["weights"]]).T
            one = dtype is not None and place in setting.one_scale
            made[name] = Product(weight, dtype, bounds[place] / float(ml_dtypes.finfo(dtype).max) if one else None)
    return made


def largest_of_rows(config: GPTConfig, tensors: Mapping[str, Array], layer: int) -> dict[str, float]:
    """What no number of a place's rows is beyond, whatever the text."""
    scaled = quantize.quantize(tensors, quantize.F8)
    norms = {
        name: np.abs(np.asarray(tensors[f"h.{layer}.{name}.weight"], np.float32)) * np.sqrt(config.n_embd)
        + np.abs(np.asarray(tensors[f"h.{layer}.{name}.bias"], np.float32))
        for name in ("ln_1", "ln_2")
    }  # a row of C numbers whose squares add up to C has none beyond sqrt(C)
    return {name: float(each.max()) for name, each in norms.items()} | {
        "attention": gpt2_f8.value_step(config, scaled, layer) * quantize.F8.largest,
        "hidden": gpt2_f8.hidden_step(config, scaled, layer) * quantize.F8.largest,
    }


@dataclass(frozen=True)
class Measured:
    """A model with a setting, as `perplexity.losses` asks it."""

    config: GPTConfig
    weights: Mapping[str, Any]

    def logits(self, tokens: Array, *, steps: bool) -> Array:  # noqa: ARG002 - there is no cache
        return reference.forward(Ops(), self.config, self.weights, tokens)


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.studies.formats", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("text", type=Path)
    parser.add_argument("--pieces", type=int, default=perplexity.PIECES, help="each as long as the context")
    asked = parser.parse_args(words)
    config, tensors, place = load(SHIPPED)
    text = load_tokenizer(place, config).encode(asked.text.read_text())
    tokens = perplexity.pieces(text, config.n_ctx, asked.pieces)

    def losses(setting: Setting) -> NDArray[np.float64]:
        return perplexity.losses(Measured(config, model(config, tensors, setting)), tokens)

    base = losses(Setting({}))
    for label, setting in settings().items():
        print(f"{label}: {perplexity.compared(losses(setting), base)}", flush=True)


if __name__ == "__main__":
    main()
