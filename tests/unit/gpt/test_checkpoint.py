"""The checkpoint that comes with the repository, and the few packages needed to read it."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import numpy as np
import pytest

from gpt.config import PRESETS
from gpt.parameters.weights import SHIPPED, Weights, load
from gpt.reference import forward as reference
from gpt.tokens.tokenizer import ByteTokenizer, load_tokenizer
from toolchain.knobs import ROOT

# English in the manner of what it was trained on, written for this test: it has seen none of these sentences.
TEXTS = (
    "And the old man said unto his two sons, Go ye up to the mountain before the night is come, and bring me water.",
    "Then the servant took the bread and the wine, and set them upon the table of the king.",
    "Alice looked at the door for a long time, and thought it was the smallest thing she had ever seen.",
)


@pytest.fixture(scope="module")
def weights() -> Weights:
    return load(SHIPPED)[1].astype("f32")


def nats_per_byte(weights: Weights, text: bytes) -> float:
    """The mean surprise of each byte after the first, given those before it."""
    tokens = np.frombuffer(text, np.uint8).astype(np.int64)
    logits = reference.float64(PRESETS["mini"], weights, tokens[None])[0, :-1]  # (T - 1, V)
    largest = logits.max(axis=-1, keepdims=True)
    log_probability = logits - largest - np.log(np.exp(logits - largest).sum(axis=-1, keepdims=True))
    return float(-log_probability[np.arange(len(tokens) - 1), tokens[1:]].mean())


def test_it_is_the_mini_preset_in_bf16_under_four_megabytes() -> None:
    config, found, folder = load(SHIPPED)
    assert config == PRESETS["mini"]
    assert {str(tensor.dtype) for tensor in found.values()} == {"bfloat16"}
    assert sum(file.stat().st_size for file in SHIPPED.iterdir()) < 4 * 2**20
    assert isinstance(load_tokenizer(folder, config), ByteTokenizer)


@pytest.mark.parametrize("text", TEXTS)
def test_it_knows_words_and_their_order(weights: Weights, text: str) -> None:
    rng = np.random.default_rng(0)
    words = text.split()
    reordered = " ".join(rng.permutation(words))
    misspelt = re.sub(r"\w+", lambda word: "".join(rng.permutation(list(word[0]))), text)
    plain = nats_per_byte(weights, text.encode())
    assert plain < 1.5  # no text at all: ln 257 = 5.5; English letters by their frequency: 2.9
    assert nats_per_byte(weights, reordered.encode()) > plain + 0.7
    assert nats_per_byte(weights, misspelt.encode()) > plain + 2.5


def test_its_record_names_what_it_was_trained_on() -> None:
    record = json.loads((SHIPPED / "training.json").read_text())
    assert record["config"] == "mini"
    assert re.fullmatch("[0-9a-f]{64}", record["corpus_sha256"])
    text = (SHIPPED / "README.md").read_text()
    assert len(re.findall(r"`[0-9a-f]{64}`", text)) >= 2  # each file of the corpus
    assert "public-domain" in text


def test_loading_and_generating_needs_no_package_of_the_compiler() -> None:
    """numpy, ml_dtypes and safetensors are enough to import all of it, to read the checkpoint and its tokenizer."""
    program = """
import importlib.abc, sys
class Refuse(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top in {"xdsl", "tokenizers", "huggingface_hub", "torch", "rich", "jinja2"} or name == "cuda.tile":
            raise ImportError(f"{name} is refused")
sys.meta_path.insert(0, Refuse())
import gpt.generate, gpt.model, gpt.reference.forward
from gpt.tokens import tokenizer
from gpt.parameters import weights
config, tensors, folder = weights.load(weights.SHIPPED)
print(tokenizer.decode(tokenizer.load_tokenizer(folder, config), b"read"), len(tensors))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT)
    assert (done.stdout, done.stderr) == ("read 76\n", "")
