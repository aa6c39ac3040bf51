from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from gpt.config import PRESETS, GPTConfig, preset
from gpt.parameters.weights import Weights, check, finite, load, random_weights, save, shapes
from toolchain.errors import UsageError

from ..llamas import CONFIGS


@pytest.fixture
def saved(tmp_path: Path, config: GPTConfig, weights: Weights) -> Path:
    save(tmp_path, config, weights.astype("bf16"))
    return tmp_path


def test_saved_and_loaded(saved: Path, config: GPTConfig, weights: Weights) -> None:
    found_config, found, folder = load(saved)
    assert (found_config, folder) == (config, saved)
    assert found["wte.weight"].dtype == ml_dtypes.bfloat16
    assert all(np.array_equal(found[name], tensor) for name, tensor in weights.astype("bf16").items())
    assert load(str(saved))[0] == config
    assert len({path.stat().st_mode for path in saved.iterdir()}) == 1, "who may read one may read both"


def test_a_save_that_fails_leaves_the_checkpoint_that_was_there(
    saved: Path, config: GPTConfig, weights: Weights, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: object, file: Path, **__: object) -> None:
        file.write_bytes(b"a part")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("gpt.parameters.weights.save_file", full)
    with pytest.raises(OSError, match="No space"):
        save(saved, dataclasses.replace(config, eps=1e-3), weights)
    assert load(saved)[0] == config
    assert sorted(path.name for path in saved.iterdir()) == ["config.json", "model.safetensors"]


def test_hugging_faces_spelling(saved: Path, weights: Weights) -> None:
    tensors = {f"transformer.{name}": tensor for name, tensor in weights.items()}
    tensors["lm_head.weight"] = weights["wte.weight"]
    tensors["transformer.h.0.attn.bias"] = np.ones((1, 1, 4, 4), np.float32)
    save_file(tensors, saved / "model.safetensors")
    assert set(load(saved)[1]) == set(weights)
    tensors["lm_head.weight"] = weights["wte.weight"] + 1
    save_file(tensors, saved / "model.safetensors")
    with pytest.raises(UsageError, match="ties"):
        load(saved)
    del tensors["transformer.wte.weight"]  # tensors that share memory may be stored once
    save_file(tensors, saved / "model.safetensors")
    assert np.array_equal(load(saved)[1]["wte.weight"], tensors["lm_head.weight"])


def test_a_tensor_under_both_its_names(saved: Path, weights: Weights) -> None:
    save_file({**weights, "transformer.ln_f.bias": weights["ln_f.bias"] + 1}, saved / "model.safetensors")
    with pytest.raises(UsageError, match=r"ln_f\.bias is there twice"):
        load(saved)


def test_a_truncated_file(saved: Path) -> None:
    file = saved / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-10])
    with pytest.raises(UsageError, match=r"model\.safetensors is truncated or damaged"):
        load(saved)


def test_a_dtype_that_numpy_lacks(saved: Path) -> None:
    header = json.dumps({"ln_f.bias": {"dtype": "F8_E5M2", "shape": [4], "data_offsets": [0, 4]}}).encode()
    (saved / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    with pytest.raises(UsageError, match=r"model\.safetensors: .*float8_e5m2.*; weights are float32"):
        load(saved)


@pytest.mark.parametrize(
    ("name", "tensor", "match"),
    [
        ("h.1.ln_2.bias", None, "1 tensors are missing: h.1.ln_2.bias"),
        ("h.7.ln_1.bias", np.zeros(64, np.float32), "does not have: h.7.ln_1.bias"),
        ("wpe.weight", np.zeros((4, 64), np.float32), r"wpe.weight has shape \(4, 64\), wants \(128, 64\)"),
        ("ln_f.bias", np.full(64, np.nan, np.float32), "ln_f.bias holds NaN"),
        ("ln_f.bias", np.zeros(64, np.float64), "ln_f.bias is float64"),
    ],
)
def test_weights_that_do_not_fit(saved: Path, name: str, tensor: Any, match: str) -> None:
    tensors = load_file(saved / "model.safetensors")
    tensors.pop(name, None)
    if tensor is not None:
        tensors[name] = tensor
    save_file(tensors, saved / "model.safetensors")
    with pytest.raises(UsageError, match=match):
        load(saved)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"model_type": "mamba"}, "model_type is 'mamba'"),
        ({"n_embd": 10**400}, "n_embd is 10{400}: it must be from 1 to 2147483647"),
        ({"layer_norm_epsilon": None}, "layer_norm_epsilon is None, which is not a number"),
    ],
)
def test_configs_that_the_model_does_not_compute(saved: Path, change: dict[str, Any], match: str) -> None:
    file = saved / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(UsageError, match=rf"{file}: .*{match}"):
        load(saved)


def test_how_texts_go_on_is_read_from_a_file_of_its_own(saved: Path) -> None:
    file = saved / "generation_config.json"
    file.write_text('{"eos_token_id": [256, 32], "temperature": 0.6, "transformers_version": "5.0"}')
    assert load(saved)[0].end_tokens == (32, 256)
    file.write_text('{"num_beams": 4}')
    with pytest.raises(UsageError, match=rf"^{file}: num_beams is 4"):
        load(saved)
    file.write_text("{")
    with pytest.raises(UsageError, match=rf"^{file} cannot be read"):
        load(saved)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\x00", b"[]", b"null", b'"gpt2"', b"[" * 10**5])
def test_a_config_that_is_none_is_named(saved: Path, content: bytes) -> None:
    (saved / "config.json").write_bytes(content)
    with pytest.raises(UsageError, match=rf"{saved}/config\.json (cannot be read|does not hold a JSON object)"):
        load(saved)


def test_no_such_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"config\.json cannot be read"):
        load(tmp_path)
    with pytest.raises(UsageError, match="is not a folder"):
        load(tmp_path / "missing")


def test_a_weight_outside_of_a_dtype(weights: Weights) -> None:
    large = Weights({**weights, "ln_f.bias": np.full(64, 1e5, np.float32)})
    large.astype("bf16")
    with pytest.raises(UsageError, match=r"ln_f\.bias.*f16"):
        large.astype("f16")
    with pytest.raises(UsageError, match="f64"):
        weights.astype("f64")


def test_random_weights_are_seeded_and_fit(config: GPTConfig) -> None:
    one, same, other = random_weights(config, 1), random_weights(config, 1), random_weights(config, 2)
    check(config, one, "random")
    assert all(np.array_equal(one[name], same[name]) for name in one)
    assert not np.array_equal(one["wte.weight"], other["wte.weight"])


def test_presets_are_the_published_sizes() -> None:
    counts = {name: sum(int(np.prod(s)) for s in shapes(config).values()) for name, config in PRESETS.items()}
    published = {"gpt2": 124_439_808, "medium": 354_823_168, "large": 774_030_080, "xl": 1_557_611_200}
    assert {name: counts[name] for name in published} == published
    assert 2 * counts["mini"] <= 4 * 2**20  # bf16: what is shipped is at most 4 MB
    assert preset("gpt2").head_size == 64
    with pytest.raises(UsageError, match="one of nano"):
        preset("huge")
    with pytest.raises(UsageError, match="eps"):
        dataclasses.replace(preset("nano"), eps=0)


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_what_is_finite_is_what_numpy_calls_so(weights: Weights, dtype: str) -> None:
    stored = weights.astype(dtype)["wpe.weight"].dtype
    bits = np.array([0, 1, 0x7BFF, 0x7C00, 0x7C01, 0x7F7F, 0x7F80, 0x7F81, 0x7FFF], np.uint16)
    numbers = np.concatenate([bits, bits | 0x8000])
    if dtype == "f32":
        numbers = numbers.astype(np.uint32) << 16
    one = np.float32(1).astype(stored)
    for number in numbers.view(stored):
        with np.errstate(invalid="ignore"):
            wanted = bool(np.isfinite(number))
        assert finite(np.array([one, number, -one])) == wanted, number
        assert finite(np.full((3, 2), number)[::2, 1]) == wanted, number
    assert finite(np.empty((0, 4), stored))


@pytest.mark.parametrize("name", ["llama", "qwen3"])
@pytest.mark.parametrize("dtype", [None, "bf16", "f16"])
def test_a_llama_saved_and_loaded(tmp_path: Path, name: str, dtype: str | None) -> None:
    config, _ = CONFIGS[name]
    weights = random_weights(config, 8)
    save(tmp_path, config, weights)
    found_config, found, _ = load(tmp_path, dtype)
    wanted = weights.astype(dtype or "f32")
    assert found_config == config and found.keys() == wanted.keys()
    assert all(found[n].dtype == x.dtype and np.array_equal(found[n], x) for n, x in wanted.items())


def test_a_llama_as_transformers_spells_it(tmp_path: Path) -> None:
    config, _ = CONFIGS["llama"]
    weights = random_weights(config, 8)
    save(tmp_path, config, weights)
    stored = {f"model.{name}": tensor for name, tensor in weights.items()}
    stored["model.layers.0.self_attn.rotary_emb.inv_freq"] = np.ones(16, np.float32)
    stored["lm_head.weight"] = weights["embed_tokens.weight"]
    save_file(stored, tmp_path / "model.safetensors")
    assert load(tmp_path)[1].keys() == weights.keys()
    save_file(stored | {"lm_head.weight": stored["lm_head.weight"] + 1}, tmp_path / "model.safetensors")
    with pytest.raises(UsageError, match=r"lm_head\.weight differs from embed_tokens"):
        load(tmp_path)
    save_file(stored | {"norm.weight": stored["model.norm.weight"]}, tmp_path / "model.safetensors")
    with pytest.raises(UsageError, match=r"norm\.weight is there twice"):
        load(tmp_path)


def test_a_weight_that_the_wanted_dtype_lacks_and_one_that_is_none(tmp_path: Path) -> None:
    config, _ = CONFIGS["llama"]
    weights = dict(random_weights(config, 8))
    for value, said in ((1e6, "outside of f16's range"), (np.inf, "holds NaN or infinity")):
        save(tmp_path, config, weights)
        changed = weights | {"norm.weight": np.full(192, value, np.float32)}
        save_file(changed, tmp_path / "model.safetensors")
        with pytest.raises(UsageError, match=rf"model\.safetensors: norm\.weight .*{said}"):
            load(tmp_path, "f16")


def test_a_model_by_name_unless_a_folder_has_it(
    saved: Path, config: GPTConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpt.parameters.weights.find", lambda name: saved if name == "smollm2" else None)
    assert load("smollm2")[0] == config
    monkeypatch.chdir(saved.parent)
    (saved.parent / "smollm2").mkdir()
    with pytest.raises(UsageError, match=r"smollm2/config\.json cannot be read"):
        load("smollm2")
