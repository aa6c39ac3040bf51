"""The model against the GPT-2, Llama and Qwen3 of Hugging Face's transformers: checkpoints that it writes, those with
weights in 8 bits that it reads, and the logits that it computes from them. Where it is not installed, logits that it
once computed stand in for it: golden_logits.npy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gpt.config import PRESETS
from gpt.files.stored import INDEX
from gpt.generate import generate
from gpt.model import GPT
from gpt.parameters import quantize
from gpt.parameters.weights import Weights, load, quantized, random_weights, save
from gpt.reference import forward as reference

from .llamas import CONFIGS as LLAMAS

CONFIG = replace(PRESETS["nano"], vocab_size=203)
TOKENS = np.random.default_rng(8).integers(0, CONFIG.vocab_size, (2, 24)).astype(np.int32)
GOLDEN = Path(__file__).parent / "golden_logits.npy"  # (B, V) f64 of transformers 5.17, after the last token


@pytest.fixture
def weights() -> Weights:
    return random_weights(CONFIG, seed=8)


def theirs(folder: Path, dtype: str = "float64") -> Any:
    """A checkpoint of ours as transformers reads it."""
    import torch
    from transformers import GPT2LMHeadModel

    return GPT2LMHeadModel.from_pretrained(folder, dtype=getattr(torch, dtype)).eval()


def logits(model: Any) -> NDArray[np.float64]:
    import torch

    with torch.no_grad():
        return model(torch.from_numpy(TOKENS.astype(np.int64))).logits.double().numpy()  # (B, T, V)


def close(found: NDArray[Any], wanted: NDArray[Any]) -> None:
    """Two computations in float64 of the same logits, which are about 1."""
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12)


def test_the_reference_computes_what_transformers_once_computed(weights: Weights) -> None:
    close(reference.float64(CONFIG, weights, TOKENS)[:, -1], np.load(GOLDEN))


@pytest.mark.needs("transformers")
def test_logits_are_those_of_transformers(tmp_path: Path, weights: Weights) -> None:
    save(tmp_path, CONFIG, weights)
    wanted = logits(theirs(tmp_path))
    close(reference.float64(CONFIG, weights, TOKENS), wanted)
    close(np.load(GOLDEN), wanted[:, -1])


@pytest.mark.needs("transformers")
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("size", ["5GB", "100KB"])
def test_a_checkpoint_that_transformers_wrote(tmp_path: Path, weights: Weights, dtype: str, size: str) -> None:
    save(tmp_path, CONFIG, weights)
    model = theirs(tmp_path, dtype)
    model.save_pretrained(tmp_path / "again", max_shard_size=size)
    assert (tmp_path / "again" / INDEX).exists() == (size == "100KB")
    config, found, _ = load(tmp_path / "again")
    assert config == CONFIG and {str(tensor.dtype) for tensor in found.values()} == {dtype}
    close(reference.float64(config, found, TOKENS), logits(model.double()))


@pytest.mark.needs("transformers")
@pytest.mark.parametrize("penalty", [1.0, 1.3])
def test_a_greedy_text_is_that_of_transformers(tmp_path: Path, weights: Weights, launcher: Any, penalty: float) -> None:
    import torch

    save(tmp_path, CONFIG, weights)
    text = torch.from_numpy(TOKENS[:1].astype(np.int64))
    options = {"do_sample": False, "max_new_tokens": 30, "min_new_tokens": 30, "repetition_penalty": penalty}
    wanted = theirs(tmp_path, "float32").generate(text, **options, pad_token_id=0)
    model = GPT(CONFIG, weights, launcher, "f32")
    found = list(generate(model, TOKENS[0], max_new_tokens=30, temperature=0, repetition_penalty=penalty))
    assert found == wanted[0, TOKENS.shape[1] :].tolist()


@pytest.mark.needs("transformers")
@pytest.mark.parametrize("name", LLAMAS)
@pytest.mark.parametrize(("dtype", "size"), [("float32", "5GB"), ("bfloat16", "100KB")])
def test_a_llama_or_qwen3_that_transformers_wrote(tmp_path: Path, name: str, dtype: str, size: str) -> None:
    import torch
    import transformers

    config, row = LLAMAS[name]
    family = {"llama": "Llama", "qwen3": "Qwen3"}[row["model_type"]]
    made = getattr(transformers, f"{family}Config")(**{key: row[key] for key in row if key != "model_type"})
    torch.manual_seed(1)
    model = getattr(transformers, f"{family}ForCausalLM")(made).to(getattr(torch, dtype)).eval()
    model.save_pretrained(tmp_path, max_shard_size=size)
    assert (tmp_path / INDEX).exists() == (size == "100KB")
    found, weights, _ = load(tmp_path)
    assert replace(found, end_tokens=()) == config and {str(tensor.dtype) for tensor in weights.values()} == {dtype}
    wanted = logits(transformers.AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float64).eval())
    # transformers' cosines and sines are f32, and logits are about 1
    np.testing.assert_allclose(reference.float64(found, weights, TOKENS), wanted, rtol=0, atol=2e-6)


@pytest.mark.needs("compressed-tensors")
@pytest.mark.parametrize("name", ["llama", "qwen3"])
@pytest.mark.parametrize("kind", quantize.KINDS)
def test_weights_in_8_bits_are_read_by_transformers(tmp_path: Path, name: str, kind: str) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    config = LLAMAS[name][0]
    config, stored = quantized(config, random_weights(config, seed=8).astype("bf16"), f"{kind}-weights")
    save(tmp_path, config, stored)
    model, report = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float64, output_loading_info=True)
    assert not any(report.values()), "a tensor is missing, not expected or of another shape"
    weight = model.model.layers[0].mlp.up_proj.weight
    assert weight.dtype == {"i8": torch.int8, "f8": torch.float8_e4m3fn}[kind], "widened when it is first computed with"
    # transformers' cosines and sines are f32, and logits are about 1
    wanted = reference.float64(config, stored, TOKENS)
    np.testing.assert_allclose(logits(model.eval()), wanted, rtol=0, atol=2e-6)
