"""Weights that are read one at a time: what `weights.load` reads, in little memory."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from gpt.config import PRESETS, GPTConfig, llama
from gpt.files.stored import CONFIG, INDEX, WHOLE
from gpt.launches import DryExecutor, DryPeers
from gpt.parallel import ParallelGPT
from gpt.parameters import one_by_one, weights
from gpt.parameters.spelling import LINEAR
from gpt.parameters.weights import random_weights, save, shapes
from toolchain.bundles.bundle import Bundle
from toolchain.contract.entries import committed
from toolchain.errors import UsageError
from toolchain.runtime import Launcher

from ..gguf_bytes import plain, write
from ..llamas import CONFIGS, gguf_keys, gguf_tensors

NANO = PRESETS["nano"]
Tensors = dict[str, np.ndarray]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save(tmp_path, NANO, random_weights(NANO, 3))
    return tmp_path


def turned(tensors: Tensors) -> Tensors:
    """As torch's Linear stores them."""
    linear = {f"h.{layer}.{name}.weight" for layer in range(NANO.n_layer) for name in LINEAR}
    return {name: np.ascontiguousarray(x.T) if name in linear else x for name, x in tensors.items()}


def spelled(tensors: Tensors) -> Tensors:
    masks = {"transformer.h.0.attn.bias": np.zeros((1, 1), np.float32)}
    head = {"lm_head.weight": tensors["wte.weight"].copy()}
    return {f"transformer.{name}": x for name, x in tensors.items()} | masks | head


def with_the_head_alone(tensors: Tensors) -> Tensors:
    return {"lm_head.weight" if name == "wte.weight" else name: x for name, x in tensors.items()}


@pytest.mark.parametrize("change", [dict, turned, spelled, with_the_head_alone])
def test_they_are_what_load_reads(change: Callable[[Tensors], Tensors], folder: Path) -> None:
    save_file(change(load_file(folder / WHOLE)), folder / WHOLE)
    config, wanted, _ = weights.load(folder)
    found_config, found, place = one_by_one.load(folder)
    assert (found_config, place) == (config, folder)
    assert set(found) == set(wanted) and len(found) == len(wanted)
    assert all(np.array_equal(found[name], wanted[name]) for name in wanted)


def test_weights_in_several_files(folder: Path) -> None:
    tensors = load_file(folder / WHOLE)
    (folder / WHOLE).unlink()
    names = sorted(tensors)
    parts = {"model-1.safetensors": names[:5], "model-2.safetensors": names[5:]}
    for part, inside in parts.items():
        save_file({name: tensors[name] for name in inside}, folder / part)
    index = {name: part for part, inside in parts.items() for name in inside}
    (folder / INDEX).write_text(json.dumps({"weight_map": index}))
    _, found, _ = one_by_one.load(folder)
    assert all(np.array_equal(found[name], tensors[name]) for name in names)


def test_tensors_that_are_not_the_models(folder: Path) -> None:
    good = load_file(folder / WHOLE)
    for spoilt, says in (
        ({n: x for n, x in good.items() if n != "ln_f.bias"}, "1 tensors are missing: ln_f.bias"),
        (good | {"more": good["ln_f.bias"]}, "does not have: more"),
        (good | {"ln_f.bias": good["ln_f.bias"][:3]}, r"ln_f.bias has shape \(3,\), wants \(64,\)"),
        (good | {"transformer.ln_f.bias": good["ln_f.bias"]}, "ln_f.bias is there twice"),
        (good | {"lm_head.weight": good["wte.weight"] + 1}, "lm_head.weight differs from wte.weight"),
    ):
        save_file(spoilt, folder / WHOLE)
        with pytest.raises(UsageError, match=says):
            one_by_one.load(folder)
    save_file(good | {"ln_f.bias": np.full(64, np.nan, np.float32)}, folder / WHOLE)
    _, found, _ = one_by_one.load(folder)
    with pytest.raises(UsageError, match=r"ln_f.bias holds NaN or infinity"):
        found["ln_f.bias"]


@pytest.mark.parametrize("kind", ["llama", "qwen3"])
def test_a_llama_from_a_folder(kind: str, tmp_path: Path) -> None:
    config, _ = CONFIGS[kind]
    save(tmp_path, config, random_weights(config, 3))
    good = load_file(tmp_path / WHOLE)
    assert all(name.startswith("model.") or name == "lm_head.weight" for name in good), "transformers' names"
    bare = {name.removeprefix("model."): tensor for name, tensor in good.items()}
    save_file(bare | {"lm_head.weight": bare.get("lm_head.weight", bare["embed_tokens.weight"])}, tmp_path / WHOLE)
    found_config, found, _ = one_by_one.load(tmp_path)
    wanted_config, wanted, _ = weights.load(tmp_path)
    assert found_config == wanted_config
    assert set(found) == set(wanted) and all(np.array_equal(found[name], wanted[name]) for name in wanted)
    save_file(good | {"model.norm.weight": good["model.norm.weight"][:3]}, tmp_path / WHOLE)
    with pytest.raises(UsageError, match=r"norm.weight has shape \(3,\), wants"):
        one_by_one.load(tmp_path)


@pytest.mark.needs("gguf")
@pytest.mark.parametrize("kind", ["llama", "qwen3"])
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_a_llama_from_a_gguf_file(kind: str, dtype: str, tmp_path: Path) -> None:
    config, _ = CONFIGS[kind]
    stored = {name: plain(x) for name, x in gguf_tensors(config, random_weights(config, 3), kind).items()}
    path = write(tmp_path / "a.gguf", gguf_keys(config, kind), stored)
    _, found, place = one_by_one.load(path, dtype)
    _, wanted, _ = weights.load(path, dtype)
    assert place == path and set(found) == set(wanted)
    assert all(np.array_equal(found[name], wanted[name]) for name in wanted)
    assert {tensor.dtype for tensor in found.values()} == {tensor.dtype for tensor in wanted.values()}
    norm = np.full(config.n_embd, np.nan, np.float32)
    _, found, _ = one_by_one.load(write(path, gguf_keys(config, kind), stored | {"output_norm.weight": plain(norm)}))
    with pytest.raises(UsageError, match=r"a.gguf: norm.weight holds NaN or infinity"):
        found["norm.weight"]
    short = stored | {"output_norm.weight": plain(norm[:3])}
    with pytest.raises(UsageError, match=r"norm.weight has shape \(3,\), wants"):
        one_by_one.load(write(path, gguf_keys(config, kind), short))


def test_a_folder_without_a_config(folder: Path) -> None:
    (folder / CONFIG).unlink()
    with pytest.raises(UsageError, match="cannot be read"):
        one_by_one.load(folder)


@pytest.mark.parametrize(
    "config",
    [
        GPTConfig(n_layer=8, n_head=4, n_embd=128, n_ctx=64, vocab_size=300),
        llama(8, 4, 128, 64, 300, kv_heads=2, ffn=512),
    ],
)
def test_a_part_is_never_whole_in_the_hosts_memory(config: GPTConfig, tmp_path: Path) -> None:
    """The limit is 1.2 times what one rank has on its device; all weights, as they are stored, are four times that."""
    save(tmp_path, config, random_weights(config, 3))
    bundle = Bundle(Path(), (), {}, committed().policies)
    with DryPeers(DryExecutor(None, 4), 2) as peers:
        tracemalloc.start()
        try:
            _, found, _ = one_by_one.load(tmp_path)
            launchers = [Launcher(bundle, "mlir", executor) for executor in peers.executors]
            model = ParallelGPT(config, found, launchers, peers, "bf16")
            _, peak = tracemalloc.get_traced_memory()
            part = max(rank.nbytes for rank in model.ranks)
            assert peak <= 1.2 * part
            weights.load(tmp_path)
            assert tracemalloc.get_traced_memory()[1] > 2 * part  # so the measure sees numpy's memory
        finally:
            tracemalloc.stop()


def test_zeros_take_no_memory() -> None:
    found = one_by_one.zeros(shapes(PRESETS["xl"]), "bf16")
    assert found["wte.weight"].shape == (50257, 1600)
    assert found["wte.weight"].strides == (0, 0)
