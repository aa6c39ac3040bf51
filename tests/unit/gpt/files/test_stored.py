"""Checkpoints in one file and in parts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from gpt.config import GPTConfig
from gpt.files.stored import INDEX
from gpt.parameters.weights import Weights, load, save
from toolchain.errors import UsageError


@pytest.fixture
def parts(tmp_path: Path, config: GPTConfig, weights: Weights) -> Path:
    """A checkpoint of three parts, as transformers writes them."""
    save(tmp_path, config, weights)
    (tmp_path / "model.safetensors").unlink()
    places = {f"transformer.{name}": f"model-0000{i % 3 + 1}-of-00003.safetensors" for i, name in enumerate(weights)}
    for part in set(places.values()):
        own = {name: weights[name.removeprefix("transformer.")] for name, place in places.items() if place == part}
        save_file(own, tmp_path / part)
    (tmp_path / INDEX).write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": places}))
    return tmp_path


def change(folder: Path, **entries: Any) -> None:
    row = json.loads((folder / INDEX).read_text())
    row["weight_map"] |= entries
    (folder / INDEX).write_text(json.dumps({**row, "weight_map": {k: v for k, v in row["weight_map"].items() if v}}))


def test_parts_are_one_checkpoint(parts: Path, weights: Weights) -> None:
    _, found, _ = load(parts)
    assert all(np.array_equal(found[name], tensor) for name, tensor in weights.items())


def test_the_whole_file_comes_before_parts(parts: Path, weights: Weights) -> None:
    save_file({**weights, "ln_f.bias": weights["ln_f.bias"] + 1}, parts / "model.safetensors")
    assert np.array_equal(load(parts)[1]["ln_f.bias"], weights["ln_f.bias"] + 1)


def test_neither_is_there(tmp_path: Path, config: GPTConfig, weights: Weights) -> None:
    save(tmp_path, config, weights)
    (tmp_path / "model.safetensors").rename(tmp_path / "pytorch_model.bin")
    with pytest.raises(
        UsageError, match=r"model\.safetensors is missing\n.* parts that .*index\.json names; not from a"
    ):
        load(tmp_path)


@pytest.mark.parametrize("part", ["../secret.safetensors", "/etc/secret.safetensors", "model.bin", 3])
def test_a_part_that_is_elsewhere_is_not_read(parts: Path, part: Any) -> None:
    change(parts, **{"transformer.ln_f.bias": part})
    with pytest.raises(UsageError, match=r"transformer\.ln_f\.bias is in .* which is not a \.safetensors file beside"):
        load(parts)


def test_a_part_is_missing(parts: Path) -> None:
    (parts / "model-00002-of-00003.safetensors").unlink()
    with pytest.raises(
        UsageError, match=r"model-00002-of-00003\.safetensors is missing, which model\.safetensors\.index"
    ):
        load(parts)


def test_an_index_of_another_checkpoint(parts: Path) -> None:
    change(parts, another="model-00001-of-00003.safetensors")
    with pytest.raises(UsageError, match=r"by it another is in model-00001-of-00003\.safetensors, but is not in it"):
        load(parts)
    change(parts, another=None, **{"transformer.wte.weight": None})
    with pytest.raises(
        UsageError, match=r"by it transformer\.wte\.weight is not in model.*, but is in it all the same"
    ):
        load(parts)


@pytest.mark.parametrize("content", ["[]", "{}", '{"weight_map": {}}', '{"weight_map": 1}', "{"])
def test_an_index_that_is_none(parts: Path, content: str) -> None:
    (parts / INDEX).write_text(content)
    with pytest.raises(UsageError, match=r"index\.json (has no weight_map|cannot be read)"):
        load(parts)
