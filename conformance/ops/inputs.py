"""Fresh seeded inputs of the op cases, with values chosen to make an op's usual bugs visible."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from conformance.reference.float64 import LARGEST, LARGEST_I8, LEAST
from toolchain.contract.op import CHANNEL, WORK, ops

from ..cases import Case
from ..cases.scaled import SCALED, SCALED_F8, SCALED_I8
from ..cases.weights_8bits import WEIGHT_8BITS, WEIGHT_F8, WEIGHT_I8
from .normal import PERIOD, normal, normal_of

Array = NDArray[np.generic]

NUMPY_DTYPES: Mapping[str, np.dtype[np.generic]] = {
    "f32": np.dtype(np.float32),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f8E4M3FN": np.dtype(ml_dtypes.float8_e4m3fn),
    "i8": np.dtype(np.int8),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
}


@dataclass(frozen=True)
class Inputs:
    """Arguments of a launch. `arrays`: inputs in storage dtype; those that differ from rank to rank have a first
    dimension for the ranks. `outputs`: what the output buffers hold before it."""

    arrays: Mapping[str, Array]
    outputs: Mapping[str, Array]
    scalars: Mapping[str, float]


def poison(shape: tuple[int, ...], dtype: str) -> Array:
    """An output before a launch: NaN, or the smallest integer. An element that the kernel never writes cannot pass."""
    kind = NUMPY_DTYPES[dtype]
    return np.full(shape, np.iinfo(str(kind)).min if kind.kind == "i" else np.nan, kind)


def make_inputs(case: Case, dtype: str, seed: int) -> Inputs:
    """Seeded inputs: normal values, changed to make an op's usual bugs visible (see the comments in `_values`)."""
    rng = np.random.default_rng(seed)
    params = ops()[case.op].params
    arrays: dict[str, Array] = {}
    outputs: dict[str, Array] = {}
    for param in params:
        if not param.dims:
            continue
        shape = tuple(case.dims[d] for d in param.dims)
        if param.name in ops()[case.op].own:
            shape = (case.dims[ops()[case.op].ranks], *shape)
        storage = param.storage(dtype)
        if param.role == "output":
            outputs[param.name] = poison(shape, storage)
        elif storage == "i32":
            arrays[param.name] = _indices(case, param.name, shape, rng)
        else:
            arrays[param.name] = _array(case, param.name, shape, NUMPY_DTYPES[storage], rng)
    if (
        case.op in GROUPED_DECODING
    ):  # NaN behind the position: in a real cache a former sequence's values are left there
        for batch, position in enumerate(arrays["positions"]):
            for name in ("k_cache", "v_cache"):
                arrays[name][batch, int(position) + 1 :] = np.nan
            for name in ("k_scales", "v_scales"):
                if name in arrays:
                    arrays[name][batch, :, int(position) + 1 :] = np.nan
    if case.op in PAGED:  # as much is left in pages, behind a text or of nobody
        for name in ("k_cache", "v_cache"):
            _forget(arrays[name], arrays["tables"], arrays["positions"].astype(np.int32) + case.dims["T"])
    for name in ops()[case.op].scratch:
        outputs[name] = np.zeros_like(outputs[name])
    for name in IN_OUT.get(case.op, ()):  # what is not written must stay as it was
        outputs[name] = _in_out(case, name, outputs[name], rng)
    if case.in_place:
        outputs[case.in_place_output] = arrays[case.in_place].copy()
    if case.op in DECODING:  # NaN from the new position on: in a real cache a former sequence's values are left there
        for batch, position in enumerate(arrays["positions"]):
            for name in ("k_cache", "v_cache"):
                outputs[name][batch, int(position) :] = np.nan
            for name in ("k_scales", "v_scales"):
                if name in outputs:
                    outputs[name][batch, :, int(position) :] = np.nan
    if case.op in STEPS:
        for text, position in enumerate(arrays["positions"]):
            of_text = outputs["cache"][:, :, text] if case.op in STEPS_TEXTS else outputs["cache"]
            of_text[:, :, int(position) :] = np.nan
            if "cache_scales" in outputs:
                outputs["cache_scales"][..., int(position) :] = np.nan
    scalars = {p.name: _scalar(case, p.name) for p in params if p.role == "scalar"}
    return Inputs(arrays, outputs, scalars)


def _array(
    case: Case, name: str, shape: tuple[int, ...], dtype: np.dtype[np.generic], rng: np.random.Generator
) -> Array:
    """The values of an input in its dtype. A large one whose elements mean the same wherever they lie repeats some."""
    alike = name in WEIGHTS or (name in CACHES and case.op in CACHED_F8)
    drawn = (PERIOD,) if alike and math.prod(shape) > PERIOD else shape
    return np.resize(_values(case, name, drawn, rng).astype(dtype), shape)


def _forget(pages: Array, tables: Array, lengths: Array) -> None:
    """Fills pages with NaN, but for the first positions of each sequence."""
    kept, size = np.zeros(pages.shape[:2], bool), pages.shape[1]  # (R, PAGE)
    for pages_of, length in zip(tables, lengths, strict=True):
        at = np.arange(int(length))
        kept[pages_of[at // size], at % size] = True
    pages[~kept] = np.nan


WIDTH = 50257  # of a row of logits, GPT-2's vocabulary
PAGED = ("paged_attention", "paged_decode_attention")
GROUPED_DECODING = (
    "grouped_decode_attention", "grouped_decode_attention_unsplit", "grouped_decode_attention_f8",
)  # fmt: skip
CACHED_F8 = (
    "kv_append_f8", "rope_append_f8", "norm_rope_append_f8", "grouped_decode_attention_f8",
    "decode_attention_unsplit_f8", "kv_from_f8", *(name for name in ops() if name.endswith("cache_f8")),
)  # fmt: skip
RMS_OF_RANKS = ("rms_linear_of_ranks", "rms_linear_gelu_of_ranks")
WEIGHTS = ("weight", "gate", "up", "qkv", "proj", "fc", "out", "head", "wte", "wpe")
CACHES = ("k_cache", "v_cache")
STEPS = tuple(name for name in ops() if name.startswith("decode_step"))
STEPS_TEXTS = tuple(name for name in STEPS if name.startswith("decode_step_texts"))
# Ops that append one token per sequence and attend to it
DECODING = ("decode_attention", "decode_attention_unsplit", "decode_attention_unsplit_f8", "rope_decode_attention")

# Outputs that the op also reads: the reference needs their values from before the launch.
IN_OUT: Mapping[str, tuple[str, ...]] = {name: spec.updates for name, spec in ops().items() if spec.updates}


def _in_out(case: Case, name: str, array: Array, rng: np.random.Generator) -> Array:
    if (case.op, name) in (("next_token", "positions"), ("next_token_of_ranks", "positions")):
        return np.arange(len(array), dtype=np.int32)
    if name in (*CHANNEL, *WORK, *ops()[case.op].scratch) or (case.op, name) == ("all_reduce_two_shot", "out"):
        return array
    if case.op in (*DECODING, *STEPS) and case.op in CACHED_F8:  # attention reads them
        return _array(case, name, array.shape, array.dtype, rng)
    if case.op in DECODING and name == "k_cache":
        return (normal(rng, array.shape) * _ramp(array.shape[1], 0.25, 1.0)).astype(array.dtype)
    return normal_of(rng, array.shape, array.dtype)


def _ramp(positions: int, first: float, last: float) -> NDArray[np.float64]:
    """Factors (P, 1, 1) that make scores grow along the keys. The running maximum then rises from tile to tile, and a
    kernel that forgets to rescale its sums gives a wrong result."""
    return np.linspace(first, last, positions)[:, None, None]


def _scalar(case: Case, name: str) -> float:
    if name == "eps":
        return 1e-5
    if name == "sends":
        return 0  # all ranks have all rows
    if name in ("rank", "root"):
        return case.dims["R"] - 1
    if name == "width":
        return WIDTH
    if name == "visible":
        return case.dims["K" if ops()[case.op].peers else "V"] - 3
    return float(np.float32(1 / np.sqrt(case.dims["D"])))  # scale


def _indices(case: Case, name: str, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    count = shape[0]
    match case.op, name:
        case (("next_token" | "next_token_of_ranks"), "indices"):
            indices = np.sort(rng.integers(0, WIDTH, shape), axis=-1).astype(np.int32)
            indices[..., ::2, :] = indices[..., ::2, ::-1]  # parts follow one another in every other row alone
            return indices
        case (("embedding" | "embedding_centred" | "token_embedding"), "tokens"):
            tokens = rng.integers(0, case.dims["V"], count)
            tokens[-1] = case.dims["V"] - 1  # the last row of the table
            return tokens.astype(np.int32)
        case (("embedding" | "embedding_centred"), "positions"):
            return (np.arange(count) % case.dims["P"]).astype(np.int32)
        case (op, "positions") if op.removesuffix("_f8") in ("kv_append", "rope_append", "norm_rope_append"):
            room = case.dims["P"] - case.dims["T"]
            return np.linspace(0, room, count).astype(np.int32)  # from the start of the cache to the last that fits
        case (
            (
                "decode_attention"
                | "decode_attention_unsplit"
                | "decode_attention_unsplit_f8"
                | "grouped_decode_attention"
                | "grouped_decode_attention_unsplit"
                | "grouped_decode_attention_f8"
                | "rope_decode_attention"
            ),
            "positions",
        ):
            return np.linspace(0, case.dims["P"] - 1, count).astype(np.int32)  # from an empty cache to the last place
        case op, "tokens" if op in STEPS:
            return (case.dims["V"] - 1 - 7 * np.arange(count)).astype(np.int32)
        case op, "positions" if op in STEPS_TEXTS:
            return np.linspace(case.dims["P"] - 1, 0, count).astype(np.int32)  # from the last place to an empty cache
        case op, "positions" if op in STEPS:  # the last place of a whole cache, the middle of another
            places = case.dims["P"]
            return np.array([places - 1 if places == case.dims["X"] else places // 2], np.int32)
        case op, "tables" if op.startswith("paged_"):  # of all texts, each page once, in no order
            return rng.permutation(case.dims["R"])[: np.prod(shape)].reshape(shape).astype(np.int32)
        case op, "positions" if op.startswith("paged_"):  # from an empty cache to the last that fit
            room = case.dims["L"] * case.dims["PAGE"] - case.dims["T"]
            return np.linspace(0, room, count).astype(np.int32)
        case op, _:
            raise AssertionError(f"no way to make index input {name} of {op}")


def _values(case: Case, name: str, shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.float64]:
    values = normal(rng, shape)
    match case.op, name:
        case (_, "x") if case.mean:
            values += case.mean
        case ("rmsnorm", "x"):
            values[0] *= 2e-3  # a mean square near eps shows a wrong eps
        case ("layernorm", "x"):
            values += 3.0  # a mean away from zero shows a one-pass variance
            values[0] *= 2e-3  # a variance near eps shows a wrong eps
        case (("layernorm" | "rmsnorm"), "weight") | (_, "norm_weight"):
            values += 1.0
        case (
            (
                "linear"
                | "linear_gelu"
                | "linear_residual"
                | "linear_residual_squares"
                | "merge_linear_residual_squares"
                | "rms_linear"
                | "rms_linear_gelu"
                | "linear_split_k"
                | "matmul"
                | "matmul_residual"
                | "swiglu"
                | "matmul_reduce_scatter"
                | "all_gather_matmul"
                | "linear_to_ranks"
                | "rms_linear_of_ranks"
                | "rms_linear_gelu_of_ranks"
                | "linear_of_own_rows"
                | "rms_swiglu"
            ),
            ("weight" | "gate" | "up"),
        ):
            values /= np.sqrt(case.dims["K"])
        case (("rms_linear" | "rms_linear_gelu" | "rms_swiglu"), "squares"):
            values = np.abs(values) * case.dims["K"] / case.dims["Z"]  # sums over K elements of about 1, in Z parts
            values[:, 0] *= 4e-6  # the first row of x is small, see below
        case (op, "squares") if op in RMS_OF_RANKS:
            values = np.abs(values) * case.dims["K"] / case.dims["Z"]
            values[:, :, 0] *= 4e-6  # as of one rank
        case (op, "x") if op in RMS_OF_RANKS:
            values[:, 0] *= 2e-3
        case (("rms_linear" | "rms_linear_gelu" | "rms_swiglu"), "x"):
            values[0] *= 2e-3  # a mean square near eps shows a wrong eps
        case (("decode_step" | "decode_step_texts" | "decode_step_cache_f8"), ("qkv" | "proj" | "fc" | "out")):
            values /= np.sqrt(case.dims["F" if name == "out" else "C"])
        case "decode_step_of_ranks", ("qkv" | "proj" | "fc" | "out" | "head"):
            values /= np.sqrt(case.dims["R"] * case.dims["F"] if name == "out" else case.dims["C"])
        case op, "wte" if op in STEPS:
            values /= np.sqrt(case.dims["C"])
        case op, ("qkv_bias" | "proj_bias" | "fc_bias" | "out_bias" | "norm_bias" | "wpe") if op in STEPS:
            values *= 0.1
            if "weight_f8" in op and name in ("proj_bias", "out_bias"):
                values += 0.3  # a mean of the residual stream
        case op, ("qkv" | "proj" | "fc" | "out" | "head") if op in STEPS:
            values = np.clip(100 * values, -LARGEST, LARGEST)
        case op, ("qkv_scales" | "proj_scales" | "fc_scales" | "out_scales" | "head_scales") if op in STEPS:
            inputs = case.dims["F" if name == "out_scales" else "C"]
            values = np.exp2(rng.uniform(-1, 1, shape)) / 100 / np.sqrt(inputs)
        case op, ("qkv_sums" | "fc_sums") if op in STEPS:
            values *= 100 * np.sqrt(case.dims["C"])
        case op, ("norm_1" | "norm_2") if op in STEPS:
            values += 1.0
        case "logits", "weight":
            values /= np.sqrt(case.dims["C"])
        case (("norm_rope_append" | "paged_norm_rope_append" | "norm_rope_append_f8"), ("q" | "k")):
            values[0] *= 2e-3  # a mean square near eps shows a wrong eps
        # Of angles: each place and pair has its own
        case (op, ("cos" | "sin")) if "rope_append" in op or op == "rope_decode_attention":
            values = np.array(np.cos(values * np.pi) if name == "cos" else np.sin(values * np.pi))
        case (("grouped_decode_attention" | "grouped_decode_attention_unsplit"), "k_cache"):
            values *= _ramp(shape[1], 0.25, 1.0)
        case "decode_attention_unsplit_f8", ("k" | "v"):
            values *= np.exp2(rng.uniform(-2, 2, (*shape[:2], 1)))
        case ("kv_append_f8", ("k" | "v")):
            values *= np.exp2(rng.uniform(-8, 4, (*shape[:3], 1)))  # each head has a scale of its own
            values[0, 0, 0] = 0.0
        case (op, ("k_cache" | "v_cache" | "cache")) if op in CACHED_F8:
            values = np.clip(100 * values, -LARGEST, LARGEST)
        case (op, ("k_scales" | "v_scales" | "cache_scales")) if op in CACHED_F8:
            # growing along the positions, as _ramp
            values = np.exp2(rng.uniform(-1, 1, shape)) * np.linspace(0.25, 1.0, shape[-1]) / 100
        case (op, "k_cache") if op in PAGED:  # along the pages, in whatever order they are
            values *= np.linspace(0.25, 3.0, shape[0] * shape[1]).reshape(*shape[:2], 1, 1)
        case "grouped_attention", ("q" | "k"):
            values *= _ramp(shape[1], 0.5, 3.0).reshape(shape[1], *(1,) * (len(shape) - 2))
        case "attention_to_f8", "v":
            values = np.clip(100 * values, -LARGEST, LARGEST)
        case (("attention" | "attention_to_f8"), ("q" | "k")):
            values *= _ramp(shape[1], 0.5, 3.0)
            if case.towering and name == "k":
                values[:, 5] *= 30.0
        case "gelu", "x":
            values *= 3.0  # both tails
        case "softmax", "x":
            values *= 4.0
            values[:, -1] += 12.0  # the largest value last: the rescale matters, and so does the last column
            values[:1] -= 200.0  # if padding counted as 0, it would outweigh the row
            for row in range(
                1, shape[0], 2
            ):  # a maximum that misses this element overflows: in each row another seventh
                values[row, shape[1] * (2 * ((row + 7) // 2 % 7) + 1) // 14] += 200.0
            # The ends hold nearly all the weight of a row: it shows if they are missing, or read by the row beside.
            values[2::2, 0] += 52.0
            values[2::2, -1] += 40.0
        case (("merge_attention" | "merge_linear_residual_squares"), "stats"):
            values = np.abs(values) + 0.5
            values[..., 0] *= 8  # the spans' largest scores differ much, so their weights matter
            values[-1, ..., 0] -= 300  # if padding counted as 0 in the maximum, all weights were 2^-300, 0 in f32
            if shape[2] > 2:
                values[:, :, 1:-1:2] = LEAST, 0.0  # empty spans
        case "next_token", "values":
            for row in (0, 3):  # ties: the least index, which the last part has in row 0 and the first in row 3
                values[row : row + 1, [shape[1] // 3, shape[1] - 1]] = 9.0
            values[-1, -1] = 9.5  # the last part
            values[1:2] = -1 - np.abs(values[1:2])  # zeros past the last part must not win
        case "next_token_of_ranks", "values":
            values[:, 0, -1] = 9.0  # a tie of all ranks: the first wins
            for row in (2, 3):  # as in next_token, within a rank
                values[:1, row : row + 1, [shape[2] // 3, shape[2] - 1]] = 9.0
            values[-1, -1, -1] = 9.5  # the last part of the last rank
            values[:, 1:2] = -1 - np.abs(values[:, 1:2])  # zeros past the last part must not win
        case "argmax_parts", "x":
            values[0, [shape[1] // 3, shape[1] - 1]] = 9.0  # a tie: the first wins
            values[-1, -1] = 9.5  # the last column
            values[1] = -1 - np.abs(values[1])  # zeros past the last column must not win
        case (("quantize_rows" | "quantize_rows_i8"), "x"):
            values *= np.exp2(rng.uniform(-8, 4, (shape[0], 1)))  # each row has a scale of its own
            values[0] = 0.0
            values[1:2, -1:] = -300 * np.abs(values[1:2, :1])  # the largest is the last, and negative
        case (op, ("x" | "weight")) if op in SCALED_F8:
            values = np.clip(100 * values, -LARGEST, LARGEST)
        case (op, ("x" | "weight")) if op in SCALED_I8:
            values = np.clip(np.rint(40 * values), -LARGEST_I8, LARGEST_I8)
        case (op, "x") if op.startswith("layernorm_linear"):
            values += 3.0  # as of layernorm
            values[0] *= 2e-3
        case (op, ("weight" | "gate" | "up")) if op in WEIGHT_F8:
            values = np.clip(100 * values, -LARGEST, LARGEST)
        case (op, ("weight" | "gate" | "up")) if op in WEIGHT_I8:
            values = np.clip(np.rint(40 * values), -LARGEST_I8, LARGEST_I8)
        case (op, ("weight_scales" | "gate_scales" | "up_scales")) if op in WEIGHT_8BITS:
            values = np.exp2(rng.uniform(-3, 3, shape)) / (100 * np.sqrt(case.dims["K"]))
        case (_, "factors"):
            values = np.exp2(rng.uniform(-3, 0, shape))
        case (op, ("x_scales" | "weight_scales")) if op in SCALED:  # of each row and column, as far from one another
            values = np.exp2(rng.uniform(-3, 3, shape)) / (100 * np.sqrt(np.sqrt(case.dims["K"])))
        case _:
            pass
    return values
