"""quantize: what it writes, that it is read back, and what it refuses."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from safetensors import SafetensorError

from gpt.config import LLAMAS, PRESETS
from gpt.parameters import quantize, weights
from gpt.reference import perplexity
from tilestack.cli.common.options import QUANTIZATIONS

from ..conftest import Run


@pytest.fixture
def nano(tmp_path: Path) -> Path:
    config = PRESETS["nano"]
    weights.save(tmp_path / "nano", config, weights.random_weights(config, 3).astype("bf16"))
    (tmp_path / "nano" / "tokenizer.json").write_text("{}")
    return tmp_path / "nano"


def test_it_says_how_much_worse_a_text_is_foretold(
    nano: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    monkeypatch.setattr(perplexity, "pieces", partial(perplexity.pieces, count=2))
    (nano / "tokenizer.json").unlink()
    text, out = tmp_path / "text", tmp_path / "i8"
    text.write_text("It was so. " * 20)
    ran = run("quantize", str(nano), "--to", "i8", "--output", str(out), "--compare", str(text))
    assert ran.code == 0
    found = re.search(r"text: perplexity ([\d.]+), ([\d.]+) before: [+-][\d.]+% ± [\d.]+%, of \d+ tokens\n", ran.out)
    assert found and abs(float(found[1]) / float(found[2]) - 1) < 0.02
    text.write_text("Short.")
    ran = run("quantize", str(nano), "--output", str(tmp_path / "f8"), "--compare", str(text))
    assert ran.code == 2 and "a text of 6 tokens has no pieces of" in ran.err and not (tmp_path / "f8").exists()


@pytest.mark.parametrize("kind", quantize.KINDS)
def test_it_writes_a_smaller_checkpoint(nano: Path, tmp_path: Path, run: Run, kind: str) -> None:
    out = tmp_path / kind
    ran = run("quantize", str(nano), "--to", kind, "--output", str(out))
    assert ran.code == 0 and ran.out.startswith(f"{out}: 0.2 MB of weights, 0.2 MB before")
    config, found, _ = weights.load(out)
    _, before, _ = weights.load(nano)
    wanted = weights.quantized(config, before, kind)[1]
    sizes = [(folder / "model.safetensors").stat().st_size for folder in (nano, out)]
    assert sizes[1] < 0.75 * sizes[0], "what is not rounded is a quarter of so small a model"
    assert found.keys() == wanted.keys() and (out / "tokenizer.json").read_text() == "{}"
    assert all(np.array_equal(found[name].astype(np.float32), wanted[name].astype(np.float32)) for name in wanted)
    assert json.loads((out / "config.json").read_text())[quantize.KEY] == quantize.KINDS[kind].scheme(
        weights_only=False
    )
    assert run("quantize", str(nano), "--to", kind, "--logits", "--output", str(out)).code == 0
    assert weights.load(out)[1]["lm_head.weight"].dtype == quantize.KINDS[kind].dtype
    again = run("quantize", str(out), "--output", str(tmp_path / "twice"))
    assert again.code == 2 and "quantized already" in again.err and not (tmp_path / "twice").exists()


def test_it_overwrites_no_other_folder(nano: Path, tmp_path: Path, run: Run) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a").touch()
    (tmp_path / "file").touch()
    weights.save(tmp_path / "other", PRESETS["nano"], weights.random_weights(PRESETS["nano"], 4))
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "config.json").write_text("[]")
    something = [(name, "holds something else") for name in ("full", "other", "odd")]
    for name, why in (*something, ("file", "is not a folder"), ("nano", "is not a folder")):
        ran = run("quantize", str(nano), "--output", str(tmp_path / name))
        assert ran.code == 2 and why in ran.err
    assert not quantize.is_quantized(weights.load(nano)[1])


def test_a_full_disk_leaves_nothing(nano: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise SafetensorError("Error while serializing: No space left on device")

    monkeypatch.setattr(weights, "save_file", full)
    ran = run("quantize", str(nano), "--output", str(tmp_path / "f8"))
    assert ran.code == 2 and ran.err.startswith(f"error: {tmp_path / 'f8'} cannot be written: Error while serializing")
    assert [path.name for path in tmp_path.iterdir()] == ["nano"]


def test_generate_takes_it_either_way(nano: Path, tmp_path: Path, run: Run) -> None:
    """The kernels of 8-bit products have no entry for every target: the interpreter takes those of sm_90."""
    (nano / "tokenizer.json").unlink()
    words = ["generate", "a", "--executor", "cpu", "--max-new-tokens", "1", "--temperature", "0"]
    here = run(*words, "--model", str(nano), "--quantize", "f8")
    assert here.code == 0, here.err
    run("quantize", str(nano), "--output", str(tmp_path / "f8"))
    assert run(*words, "--model", str(tmp_path / "f8")).out == here.out
    twice = run(*words, "--model", str(tmp_path / "f8"), "--quantize", "f8")
    assert twice.code == 2 and "quantized already" in twice.err


def test_a_llama_takes_weights_alone(tmp_path: Path, run: Run) -> None:
    config = LLAMAS["nano"]
    weights.save(tmp_path / "llama", config, weights.random_weights(config, 3))
    out = tmp_path / "i8"
    refused = run("quantize", str(tmp_path / "llama"), "--to", "i8", "--output", str(out))
    assert refused.code == 2 and "take i8-weights" in refused.err and not out.exists()
    words = ["generate", "a", "--executor", "cpu", "--max-new-tokens", "2", "--temperature", "0"]
    here = run(*words, "--model", str(tmp_path / "llama"), "--quantize", "i8-weights")
    assert here.code == 0, here.err
    assert run("quantize", str(tmp_path / "llama"), "--to", "i8-weights", "--output", str(out)).code == 0
    assert run(*words, "--model", str(out)).out == here.out
    assert weights.load(out)[1]["embed_tokens.weight"].dtype == ml_dtypes.bfloat16


def test_the_choices_are_those_of_the_model() -> None:
    assert QUANTIZATIONS == quantize.CHOICES
