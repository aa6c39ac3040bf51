"""A quantized model: how weights are rounded, its checkpoint, its forward pass in numpy, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from conformance.reference import float64
from gpt.config import LLAMAS, PRESETS, GPTConfig
from gpt.families import gpt2_f8
from gpt.model import GPT, KVCache
from gpt.parameters import quantize
from gpt.parameters.spelling import stored_names
from gpt.parameters.weights import Weights, check, load, quantized, random_weights, save
from gpt.reference import forward as reference
from toolchain.errors import UsageError

FC = "h.1.mlp.c_fc.weight"


@pytest.fixture(params=quantize.KINDS)
def kind(request: pytest.FixtureRequest) -> quantize.Kind:
    return quantize.KINDS[request.param]


@pytest.fixture
def eighths(config: GPTConfig, weights: Weights, kind: quantize.Kind) -> Weights:
    return quantized(config, weights, kind.name)[1]


@pytest.fixture
def floats(config: GPTConfig, weights: Weights) -> Weights:
    return quantized(config, weights, "f8")[1]


@pytest.fixture
def tokens(config: GPTConfig) -> Any:
    return np.random.default_rng(8).integers(0, config.vocab_size, (2, 40)).astype(np.int32)


def test_rows_are_rounded_as_the_kernel_rounds_them(kind: quantize.Kind) -> None:
    rows = np.random.default_rng(1).standard_normal((5, 48)).astype(np.float32) * 10.0 ** np.arange(-3, 2)[:, None]
    rows[2] = 0
    found, scales = quantize.rounded(rows.astype(np.float32), kind)
    wanted, wanted_scales = (float64.quantize_rows if kind is quantize.F8 else float64.quantize_rows_i8)(rows)
    assert np.array_equal(found.astype(np.float64), wanted) and np.array_equal(scales[:, 0], wanted_scales)
    assert np.isfinite(found.astype(np.float32)).all() and not found[2].any()
    # Half a step at the largest number of a row: e4m3 has four significant bits there, i8 steps of 1/127 of it.
    steps = np.abs(rows).max(axis=1) * (2.0**-4 if kind is quantize.F8 else 1 / 253)
    assert (np.abs(found.astype(np.float64) * scales - rows).max(axis=1) <= steps).all()


def test_only_products_are_rounded(
    config: GPTConfig, weights: Weights, eighths: Weights, kind: quantize.Kind
) -> None:  # fmt: skip
    products = [name for name in weights if quantize.is_product(name)]
    assert len(products) == 4 * config.n_layer
    assert set(eighths) == {*weights, *map(quantize.scale_of, products)}
    assert all(eighths[name] is weights[name] for name in weights if name not in products)
    back = quantize.dequantized(eighths)
    for name in products:
        assert eighths[name].shape == weights[name].shape[::-1] and eighths[name].dtype == kind.dtype
        assert np.abs(back[name] - weights[name]).max() <= np.abs(weights[name]).max() / 16
    assert quantize.is_quantized(eighths) and not quantize.is_quantized(back)


def test_the_model_computes_its_reference(
    config: GPTConfig, eighths: Weights, launcher: Any, tokens: np.ndarray[Any, Any], kind: quantize.Kind
) -> None:
    logits = GPT(config, eighths, launcher, "bf16").forward(tokens).numpy()
    wanted = reference.eager(config, eighths.astype("bf16"), tokens, dtype="bf16")
    assert np.abs(logits.astype(np.float64) - wanted.astype(np.float64)).max() < 5e-2
    ran = [op for op, _ in launcher.launches]
    assert {"linear", "linear_gelu", "linear_residual"}.isdisjoint(ran)
    assert not any("weight" in op for op in ran)
    if kind is quantize.F8:
        assert ran.count("attention_to_f8") == config.n_layer and "quantize_rows" not in ran
    else:
        assert ran.count("quantize_rows_i8") == 2 * config.n_layer, "the hidden layer too"
    exact = reference.float64(config, eighths, tokens)
    assert 1e-3 < np.abs(wanted - exact).max() < 0.1 * np.abs(exact).max(), "activations are rounded"


def test_logits_of_many_rows_in_8_bits(
    config: GPTConfig, weights: Weights, launcher: Any, tokens: np.ndarray[Any, Any], kind: quantize.Kind
) -> None:
    """Those of few rows are of the embedding, which is not rounded."""
    _, stored = quantized(config, weights, kind.name, logits=True)
    model = GPT(config, stored, launcher, "bf16")
    logits = model.forward(tokens).numpy().astype(np.float64)
    assert [op for op, _ in launcher.launches][-2:] == [f"layernorm_{kind.name}", f"linear_{kind.name}"]
    wanted = reference.eager(config, stored.astype("bf16"), tokens, dtype="bf16").astype(np.float64)
    exact, whole = (
        reference.float64(config, each, tokens) for each in (stored, quantized(config, weights, kind.name)[1])
    )
    assert np.abs(logits - wanted).max() < 5e-2
    assert 1e-3 < np.abs(exact - whole).max() < 0.1 * np.abs(exact).max(), "the embedding is rounded"
    few = model.forward(tokens[:1]).numpy().astype(np.float64)
    assert launcher.launches[-1][0] == "logits" and np.abs(few - whole[:1]).max() < 5e-2


def test_a_checkpoint_with_logits_in_8_bits(
    tmp_path: Path, config: GPTConfig, weights: Weights, kind: quantize.Kind
) -> None:
    stored = quantized(config, weights, kind.name, logits=True)[1].astype("bf16")
    save(tmp_path, config, stored)
    found = load(tmp_path)[1]
    assert found.keys() == stored.keys() and found["lm_head.weight"].dtype == kind.dtype
    assert all(found[name].tobytes() == stored[name].tobytes() for name in stored)
    row = json.loads((tmp_path / "config.json").read_text())
    assert row[quantize.KEY]["ignore"] == []
    row[quantize.KEY]["ignore"] = ["lm_head"]
    (tmp_path / "config.json").write_text(json.dumps(row))
    with pytest.raises(UsageError, match=r"it has an lm_head in 8 bits, but its config\.json says otherwise"):
        load(tmp_path)
    save(tmp_path, config, quantized(config, weights, kind.name)[1])
    row[quantize.KEY]["ignore"] = []
    (tmp_path / "config.json").write_text(json.dumps(row))
    with pytest.raises(UsageError, match=r"it has no lm_head in 8 bits, but its config\.json says otherwise"):
        load(tmp_path)


def test_it_decodes_as_forward_does(
    config: GPTConfig, eighths: Weights, launcher: Any, tokens: np.ndarray[Any, Any], kind: quantize.Kind
) -> None:
    """Few rows over the same weights, but not rounded."""
    model = GPT(config, eighths, launcher, "bf16")
    wanted = model.forward(tokens).numpy().astype(np.float64)
    cache = KVCache(model, 2)
    model.prefill(tokens[:, :38], cache)
    launcher.launches.clear()
    for at in (38, 39):
        found = model.decode(tokens[:, at], cache).numpy().astype(np.float64)
        assert np.abs(found - wanted[:, at]).max() < 5e-2
    ran = [op for op, _ in launcher.launches]
    assert ran.count(f"linear_residual_weight_{kind.name}") == 4 * config.n_layer
    assert not any(op.startswith(("quantize", "layernorm_")) for op in ran)


@pytest.mark.parametrize(
    ("rows", "norms", "in_blocks", "in_parts"),
    [(1, 1, 4, 0), (2, 0, 3, 2), (16, 0, 3, 2), (17, 3, 0, 2), (64, 3, 0, 2), (65, 5, 0, 0)],
)
def test_few_rows_take_few_launches(
    launcher: Any, kind: quantize.Kind, rows: int, norms: int, in_blocks: int, in_parts: int
) -> None:  # fmt: skip
    """In two layers: launches of a norm, products that norm their rows, and products in parts, whose sums are normed.
    The result is that of a model whose norms are all launches."""
    config, stored = quantized(PRESETS["nano"], random_weights(PRESETS["nano"], 4), f"{kind.name}-weights")
    tokens = np.random.default_rng(8).integers(0, config.vocab_size, (rows, 1)).astype(np.int32)
    policy = launcher.bundle.policy("")
    whole, few = (
        GPT(config, stored, launcher, "bf16", policy=each)
        for each in (replace(policy, panel_rows=0), replace(policy, panel_width=config.n_embd))
    )
    wanted = whole.forward(tokens).numpy().astype(np.float64)
    launcher.launches.clear()
    assert np.abs(few.forward(tokens).numpy().astype(np.float64) - wanted).max() < 3e-2
    ran = [op for op, _ in launcher.launches]
    assert config.n_layer == 2 and ran.count("layernorm") == norms
    assert len([op for op in ran if op.startswith("layernorm_linear")]) == in_blocks
    assert ran.count(f"linear_split_k_weight_{kind.name}") == ran.count("residual_layernorm") == in_parts


@pytest.mark.parametrize("name", ["nano", "llama"])
def test_with_weights_alone_no_row_is_rounded(name: str, launcher: Any, kind: quantize.Kind) -> None:
    """However many there are: the model computes what its weights stand for."""
    given = LLAMAS["nano"] if name == "llama" else PRESETS[name]
    config, stored = quantized(given, random_weights(given, 4), f"{kind.name}-weights")
    assert config.weights_only and not given.weights_only
    tokens = np.random.default_rng(8).integers(0, config.vocab_size, (2, 40)).astype(np.int32)
    model = GPT(config, stored, launcher, "bf16")
    logits = model.forward(tokens).numpy().astype(np.float64)
    wanted = reference.eager(config, stored.astype("bf16"), tokens, dtype="bf16").astype(np.float64)
    exact = reference.float64(config, stored, tokens)
    assert np.abs(logits - exact).max() < 2 * np.abs(wanted - exact).max() + 1e-2
    ran = {op for op, _ in launcher.launches}
    assert f"linear_residual_weight_{kind.name}" in ran and not any(op.startswith("quantize") for op in ran)
    assert ran.isdisjoint({"linear", "linear_gelu", "linear_residual", "matmul", "matmul_residual", "swiglu"})
    half = sum(tensor.nbytes for tensor in stored.astype("bf16").values())
    assert half < 0.75 * 2 * sum(tensor.size for tensor in random_weights(given, 4).values())


@pytest.mark.parametrize("name", ["nano", "llama"])
def test_a_checkpoint_of_weights_alone(tmp_path: Path, name: str, kind: quantize.Kind) -> None:
    given = LLAMAS["nano"] if name == "llama" else PRESETS[name]
    config, stored = quantized(given, random_weights(given, 4).astype("bf16"), f"{kind.name}-weights")
    save(tmp_path, config, stored)
    found_config, found, _ = load(tmp_path, "bf16")
    assert found_config == config and found.keys() == stored.keys()
    assert all(found[key].tobytes() == stored[key].tobytes() for key in stored)
    said = json.loads((tmp_path / "config.json").read_text())["quantization_config"]
    group = said["config_groups"]["group_0"]
    assert group["input_activations"] is None and group["format"] == said["format"] == kind.format
    names = load_file_names(tmp_path / "model.safetensors")
    assert ("model.layers.0.self_attn.q_proj.weight_scale" in names) == (name == "llama")


def test_an_older_checkpoint_of_weights_alone_is_read(tmp_path: Path, kind: quantize.Kind) -> None:
    """Its group does not say the format again; one that says another is refused."""
    config, stored = quantized(LLAMAS["nano"], random_weights(LLAMAS["nano"], 4), f"{kind.name}-weights")
    save(tmp_path, config, stored)
    row = json.loads((tmp_path / "config.json").read_text())
    group = row[quantize.KEY]["config_groups"]["group_0"]
    del group["format"]
    (tmp_path / "config.json").write_text(json.dumps(row))
    found_config, found, _ = load(tmp_path)
    assert found_config == config and all(found[key].tobytes() == stored[key].tobytes() for key in stored)
    group["format"] = "pack-quantized"
    (tmp_path / "config.json").write_text(json.dumps(row))
    with pytest.raises(UsageError, match="quantization_config is another than tilestack quantize writes"):
        load(tmp_path)


def test_no_text_makes_the_hidden_layer_too_large(config: GPTConfig, floats: Weights) -> None:
    """The worst row of a norm for each output: the direction of its weights."""
    worst_row_stays_within(config, floats, "ln_2", "mlp.c_fc", 0, gpt2_f8.hidden_step(config, floats, 1))


def test_no_text_makes_values_too_large(config: GPTConfig, weights: Weights, floats: Weights) -> None:
    step = gpt2_f8.value_step(config, floats, 1)
    worst_row_stays_within(config, floats, "ln_1", "attn.c_attn", 2 * config.n_embd, step)
    louder = dict(weights)
    for part in ("weight", "bias"):  # queries and keys do not count
        louder[f"h.1.attn.c_attn.{part}"] = weights[f"h.1.attn.c_attn.{part}"] * np.float32(8)
        louder[f"h.1.attn.c_attn.{part}"][..., 2 * config.n_embd :] /= 8
    assert gpt2_f8.value_step(config, quantized(config, Weights(louder), "f8")[1], 1) == step


def worst_row_stays_within(
    config: GPTConfig, floats: Weights, norm: str, product: str, first: int, step: float
) -> None:  # fmt: skip
    gain, shift, bias = (floats[f"h.1.{name}"] for name in (f"{norm}.weight", f"{norm}.bias", f"{product}.bias"))
    name = f"h.1.{product}.weight"
    weight = (floats[name].astype(np.float64) * floats[quantize.scale_of(name)])[first:]  # (N, C)
    direction = gain * weight
    normed = np.sqrt(config.n_embd) * direction / np.linalg.norm(direction, axis=1, keepdims=True)
    rows, scales = quantize.rounded((normed * gain + shift).astype(np.float32), quantize.F8)
    largest = np.abs((rows.astype(np.float64) * scales * weight).sum(axis=1) + bias[first:]).max()
    assert np.log2(step) % 1 == 0 and largest / 448 < step < 8 * largest / 448


def load_file_names(file: Path) -> set[str]:
    with safe_open(file, framework="numpy") as opened:
        return set(opened.keys())


MUTATIONS: dict[str, Callable[[dict[str, Any]], None]] = {
    "a scale is dropped": lambda w: w.update({quantize.scale_of(FC): np.ones_like(w[quantize.scale_of(FC)])}),
    "scales are turned round": lambda w: w.update({quantize.scale_of(FC): w[quantize.scale_of(FC)][::-1].copy()}),
    "a scale is applied twice": lambda w: w.update({quantize.scale_of(FC): w[quantize.scale_of(FC)] ** 2}),
    "weights are turned round": lambda w: w.update({FC: w[FC][::-1].copy()}),
}


@pytest.mark.parametrize("change", MUTATIONS)
def test_a_wrong_scale_is_seen(
    config: GPTConfig, weights: Weights, launcher: Any, tokens: np.ndarray[Any, Any], change: str, kind: quantize.Kind
) -> None:
    """An error that is far beyond that of the rounding, whose outputs differ in size as a model's do."""
    spread = dict(weights)
    spread[FC] = weights[FC] * np.exp2(np.arange(4 * config.n_embd) % 7).astype(np.float32)
    good = quantized(config, Weights(spread), kind.name)[1]
    wrong = dict(good)
    MUTATIONS[change](wrong)
    exact = reference.float64(config, spread, tokens)
    errors = [
        np.linalg.norm(GPT(config, Weights(each), launcher, "bf16").forward(tokens).numpy().astype(np.float64) - exact)
        for each in (good, wrong)
    ]
    assert errors[1] > 3 * errors[0]


def test_its_checkpoint_is_read_back(
    tmp_path: Path, config: GPTConfig, eighths: Weights, kind: quantize.Kind
) -> None:  # fmt: skip
    stored = eighths.astype("bf16")
    assert stored[quantize.scale_of(FC)].dtype == np.float32 and stored[FC].dtype == kind.dtype
    save(tmp_path, config, stored)
    found_config, found, _ = load(tmp_path)
    assert found_config == config and found.keys() == stored.keys()
    for name, tensor in stored.items():
        assert found[name].dtype == tensor.dtype and found[name].tobytes() == tensor.tobytes()
    said = json.loads((tmp_path / "config.json").read_text())["quantization_config"]
    assert (said["quant_method"], said["format"]) == ("compressed-tensors", f"{kind.type}-quantized")
    assert said["config_groups"]["group_0"].keys() == {"targets", "weights", "input_activations"}


def test_what_transformers_saves_of_it(tmp_path: Path) -> None:
    """All keys that it knows, most of them null, and scales in the model's dtype."""
    config, stored = quantized(LLAMAS["nano"], random_weights(LLAMAS["nano"], 4).astype("bf16"), "i8-weights")
    save(tmp_path, config, stored)
    row = json.loads((tmp_path / "config.json").read_text())
    group = row[quantize.KEY]["config_groups"]["group_0"]
    group |= {"output_activations": None}
    group["weights"] |= {"group_size": None, "observer": "minmax", "observer_kwargs": {}}
    row[quantize.KEY] |= {"kv_cache_scheme": None, "global_compression_ratio": None}
    (tmp_path / "config.json").write_text(json.dumps(row))
    narrow = {
        name: each.astype(ml_dtypes.bfloat16) if name.endswith(quantize.SCALE) else each
        for name, each in stored.items()
    }
    save_file(stored_names(config, narrow), tmp_path / "model.safetensors")
    found_config, found, _ = load(tmp_path, "bf16")
    assert found_config == config
    for name, each in stored.items():
        wanted = narrow[name].astype(np.float32) if name.endswith(quantize.SCALE) else each
        assert found[name].dtype == wanted.dtype and np.array_equal(found[name], wanted)
    group["weights"]["group_size"] = 128
    (tmp_path / "config.json").write_text(json.dumps(row))
    with pytest.raises(UsageError, match="quantization_config is another"):
        load(tmp_path)


@pytest.mark.parametrize("scale", [0.0, -1.0, np.nan, np.inf, 1e-40])
def test_a_scale_that_is_none_is_refused(config: GPTConfig, eighths: Weights, scale: float) -> None:
    name, wrong = quantize.scale_of(FC), dict(eighths)
    wrong[name] = wrong[name].copy()
    wrong[name][3] = scale
    with pytest.raises(UsageError, match=rf"here: {name} has .* for output 3: a scale is a normal number above 0"):
        check(config, wrong, "here")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({quantize.scale_of(FC): None}, "1 tensors are missing: h.1.mlp.c_fc.weight_scale"),
        ({quantize.scale_of(FC): np.ones((256, 1))}, "is float64; scales are float32"),
        ({quantize.scale_of(FC): np.ones((256,), np.float32)}, r"has shape \(256,\), wants \(256, 1\)"),
        ({FC: np.zeros((256, 64), np.float32)}, "is float32, but has scales: it must be float8_e4m3fn"),
        ({FC: np.zeros((64, 256), quantize.F8.dtype)}, r"has shape \(64, 256\), wants \(256, 64\)"),
        ({FC: np.full((256, 64), np.nan, quantize.F8.dtype)}, "c_fc.weight holds NaN"),
    ],
)
def test_wrong_tensors_are_refused(config: GPTConfig, floats: Weights, change: dict[str, Any], why: str) -> None:
    wrong = {name: each for name, each in {**floats, **change}.items() if each is not None}
    with pytest.raises(UsageError, match=why):
        check(config, wrong, "here")


def test_all_products_are_of_one_kind(config: GPTConfig, weights: Weights, floats: Weights) -> None:
    mixed = {**floats, FC: quantized(config, weights, "i8")[1][FC]}
    with pytest.raises(UsageError, match=f"{FC} is int8, but has scales: it must be float8_e4m3fn"):
        check(config, mixed, "here")


def test_config_and_tensors_must_agree(tmp_path: Path, config: GPTConfig, weights: Weights, eighths: Weights) -> None:
    save(tmp_path, config, eighths)
    row = json.loads((tmp_path / "config.json").read_text())
    save_file(dict(weights), tmp_path / "model.safetensors")
    with pytest.raises(UsageError, match=r"it has no scales, but its config\.json does say so"):
        load(tmp_path)
    save_file(dict(eighths), tmp_path / "model.safetensors")
    said = row.pop(quantize.KEY)
    (tmp_path / "config.json").write_text(json.dumps(row))
    with pytest.raises(UsageError, match=r"it has scales, but its config\.json does not say so"):
        load(tmp_path)
    other = quantize.I8 if said["format"] == quantize.F8.format else quantize.F8
    (tmp_path / "config.json").write_text(json.dumps({**row, quantize.KEY: dict(other.scheme(weights_only=False))}))
    with pytest.raises(UsageError, match=rf"config\.json says {other.format}, and its weights are not {other.dtype}"):
        load(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({**row, quantize.KEY: {**said, "format": other.format}}))
    with pytest.raises(UsageError, match="quantization_config is another than tilestack quantize writes"):
        load(tmp_path)


def test_what_cannot_be_quantized(config: GPTConfig, weights: Weights, eighths: Weights, launcher: Any) -> None:
    for kind, given, of, why in (
        ("int4", weights, config, "no quantization 'int4'"),
        ("f8", eighths, config, "quantized already"),
        ("f8", random_weights(LLAMAS["nano"], 1), LLAMAS["nano"], "the activations of a llama are not rounded here"),
    ):
        with pytest.raises(UsageError, match=why):
            quantized(of, given, kind)
    with pytest.raises(UsageError, match="logits in 8 bits are of rows in 8 bits"):
        quantized(config, weights, "i8-weights", logits=True)
    of, given = quantized(LLAMAS["nano"], random_weights(LLAMAS["nano"], 1), "f8-weights")
    with pytest.raises(UsageError, match="a llama whose activations are in 8 bits is not computed here"):
        GPT(replace(of, weights_only=False), given, launcher, "bf16")
    with pytest.raises(UsageError, match="computes in bf16 beside its products, not in f16"):
        GPT(config, eighths, launcher, "f16")
    with pytest.raises(UsageError, match="the norms of a quantized model are launches of their own"):
        GPT(config, eighths, launcher, "bf16", folded=True)
