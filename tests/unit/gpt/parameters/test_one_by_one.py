"""Weights that are read one at a time: what `weights.load` reads, in little memory."""

from __future__ import annotations

import gc
import json
import tracemalloc
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from gpt.config import PRESETS, GPTConfig, llama
from gpt.files.stored import CONFIG, INDEX, WHOLE
from gpt.launches import DryExecutor, DryPeers
from gpt.parallel import ParallelGPT
from gpt.parameters import one_by_one, weights
from gpt.parameters.fold import fold
from gpt.parameters.one_by_one import OneByOne
from gpt.parameters.share import Share
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


def folds(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the bundle had products for rows that are shared out."""

    def yes(launcher: Launcher, config: GPTConfig, dtype: str) -> bool:
        return launcher.source == "mlir" and config.family == "gpt2" and bool(dtype)

    monkeypatch.setattr("gpt.parallel.may_spread", yes)


def allocations(peers: DryPeers) -> list[set[Any]]:
    return [set(vars(executor)["_allocations"]) for executor in peers.executors]


@pytest.mark.parametrize("change", [dict, turned])
@pytest.mark.parametrize(("stored", "ranks"), [("f32", 3), ("bf16", 2), ("f16", 2)])
def test_folded_one_by_one_they_have_the_bits_of_all_folded_together(
    change: Callable[[Tensors], Tensors], stored: str, ranks: int, tmp_path: Path
) -> None:
    """Heads that do not divide, and more columns than numpy takes at once."""
    config = GPTConfig(n_layer=1, n_head=10, n_embd=640, n_ctx=16, vocab_size=300)
    save(tmp_path, config, random_weights(config, 3).astype(stored))
    save_file(change(load_file(tmp_path / WHOLE)), tmp_path / WHOLE)
    _, whole, _ = weights.load(tmp_path)
    _, found, _ = one_by_one.load(tmp_path)
    together, nowhere = fold(whole), cast("Any", (None, None))
    for share in (Share(rank, ranks, config.vocab_size, {}, *nowhere) for rank in range(ranks)):
        for dtype in ("f32", "bf16"):
            wanted = share.weights(config, together, dtype)
            made = share.weights(config, found, dtype, folded=True)
            assert list(made) and set(made) == set(wanted)
            for name in made:
                assert made[name].dtype == wanted[name].dtype and made[name].shape == wanted[name].shape
                assert made[name].tobytes() == wanted[name].tobytes(), name
    assert not np.array_equal(together["h.0.attn.c_attn.bias"], np.asarray(whole["h.0.attn.c_attn.bias"], np.float32))


def test_each_weight_that_is_folded_is_read_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bias takes its weight, which comes next."""
    _, found, _ = one_by_one.load(folder)
    count, take = Counter[str](), OneByOne.__getitem__

    def counting(self: OneByOne, name: str) -> np.ndarray:
        count[name] += 1
        return take(self, name)

    monkeypatch.setattr(OneByOne, "__getitem__", counting)
    nowhere: Any = (None, None)
    assert dict(Share(0, 2, NANO.vocab_size, {}, *nowhere).weights(NANO, found, "bf16", folded=True))
    assert {count[name] for name in found if name.endswith(".weight") and ".ln_" not in name} == {1}


@pytest.mark.parametrize(
    "config",
    [
        GPTConfig(n_layer=8, n_head=4, n_embd=128, n_ctx=64, vocab_size=300),
        llama(8, 4, 128, 64, 300, kv_heads=2, ffn=512),
    ],
)
@pytest.mark.parametrize("folded", [True, False])
def test_a_part_is_never_whole_in_the_hosts_memory(
    config: GPTConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, folded: bool
) -> None:
    """The limit is 1.2 times what one rank has on its device; all weights, as they are stored, are four times that."""
    if folded:
        folds(monkeypatch)
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


@pytest.mark.parametrize(
    ("name", "spoilt", "says"),
    [
        ("h.1.ln_2.bias", None, "1 tensors are missing: h.1.ln_2.bias"),
        ("h.1.ln_2.weight", np.ones(63, np.float32), r"h.1.ln_2.weight has shape \(63,\), wants \(64,\)"),
        ("h.1.ln_2.weight", np.ones(64, np.int32), "h.1.ln_2.weight is int32; weights are float32, float16 or"),
        ("h.1.ln_2.weight", np.full(64, np.inf, np.float32), "h.1.ln_2.weight holds NaN or infinity"),
        ("h.1.mlp.c_fc.weight", np.full((64, 256), -3e38, np.float32), "h.1.mlp.c_fc.weight holds NaN or infinity"),
    ],
)
def test_a_checkpoint_that_cannot_be_folded_leaves_nothing_behind(
    name: str, spoilt: np.ndarray | None, says: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folds(monkeypatch)
    good = load_file(folder / WHOLE)
    save_file({n: x for n, x in {**good, name: spoilt}.items() if x is not None}, folder / WHOLE)
    bundle = Bundle(Path(), (), {}, committed().policies)
    with DryPeers(DryExecutor(None, 4), 2) as peers:
        launchers = [Launcher(bundle, "mlir", executor) for executor in peers.executors]
        before = allocations(peers)
        with pytest.raises(UsageError, match=says):
            ParallelGPT(NANO, one_by_one.stored(NANO, folder), launchers, peers, "bf16")
        gc.collect()
        assert allocations(peers) == before
        save_file(good, folder / WHOLE)
        ParallelGPT(NANO, one_by_one.stored(NANO, folder), launchers, peers, "bf16")


def test_zeros_take_no_memory() -> None:
    found = one_by_one.Zeros(shapes(PRESETS["xl"]), "bf16")
    assert found["wte.weight"].shape == (50257, 1600)
    assert found["wte.weight"].strides == (0, 0)
