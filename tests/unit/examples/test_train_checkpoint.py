"""The training script writes a checkpoint, and our model computes the same with it as PyTorch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gpt.config import PRESETS
from gpt.parameters.weights import load, random_weights
from gpt.reference import forward as reference
from toolchain.knobs import ROOT

pytestmark = pytest.mark.needs("torch")
SCRIPT = ROOT / "examples" / "train_checkpoint.py"


def run(*args: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env={"PYTHONPATH": str(ROOT)})


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("text") / "text.txt"
    file.write_text("\n\n".join(f"The {n}th line of\n  a small   text." for n in range(1000)))
    return file


def test_a_short_run_learns_and_is_reproducible(text: Path, tmp_path: Path) -> None:
    folders = tmp_path / "one", tmp_path / "two"
    for folder in folders:
        done = run(
            "--text", text, "--out", folder, "--config", "nano", "--steps", "40", "--batch", "4", "--lr", "0.02",
            "--device", "cpu",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    config, weights, _ = load(folders[0])
    assert config == PRESETS["nano"]
    record = json.loads((folders[0] / "training.json").read_text())
    assert record["corpus_bytes"] == len(" ".join(text.read_text().split())) + 1  # line breaks stay, runs of spaces go
    assert record["held_out_nats_per_byte"] < 4  # ln 257 = 5.5
    tokens = np.frombuffer(b"The 7th line of a small text.\nThe 8th line of", np.uint8).astype(np.int64)[None]
    logits = reference.float64(config, weights, tokens)[0, :-1]
    log_probability = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    here = -log_probability[np.arange(tokens.size - 1), tokens[0, 1:]].mean()
    assert here == pytest.approx(record["held_out_nats_per_byte"], abs=0.5)
    assert (folders[0] / "model.safetensors").read_bytes() == (folders[1] / "model.safetensors").read_bytes()


def test_the_model_is_the_references(tmp_path: Path) -> None:
    """Random weights in PyTorch's model give the logits of the float64 reference: layout and names agree."""
    program = f"""
import runpy, numpy as np, torch
from gpt.config import PRESETS
from gpt.parameters.weights import random_weights
model = runpy.run_path({str(SCRIPT)!r})["Model"](PRESETS["nano"], 0.0).eval()
state = {{n: torch.from_numpy(np.array(t)) for n, t in random_weights(PRESETS["nano"], 9).items()}}
model.load_state_dict(state)
tokens = torch.arange(40).reshape(2, 20) * 6
np.save({str(tmp_path / "logits.npy")!r}, model(tokens).detach().numpy())
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}
    )
    assert done.returncode == 0, done.stderr
    wanted = reference.float64(PRESETS["nano"], random_weights(PRESETS["nano"], 9), np.arange(40).reshape(2, 20) * 6)
    assert np.abs(np.load(tmp_path / "logits.npy") - wanted).max() < 1e-4


def test_what_is_held_out_cannot_come_again(text: Path, tmp_path: Path) -> None:
    done = run("--text", text, text, "--out", tmp_path / "never")
    assert done.returncode == 2
    assert "held out" in done.stderr
    assert not (tmp_path / "never").exists()
