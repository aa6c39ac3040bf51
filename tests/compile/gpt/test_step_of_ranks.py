"""Steps of a model that ranks share, one launch on each, thread by thread on the executor of CuTe: each rank with the
entry for its own part. In one process within the bounds of a forward pass, and in two the same bits."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from benchmarks.cute.kernels import SOURCE, TABLE
from conformance.ops.compare import compare
from gpt.config import GPTConfig
from gpt.families.one_launch import OP_RANKS
from gpt.model import KVCache
from gpt.parallel import ParallelDecode, ParallelGPT
from gpt.parameters.weights import random_weights
from gpt.reference import forward as reference
from tests.compile.conftest import LazyBundle
from tests.compile.gpt.processes import run_in_processes
from toolchain.bundles.bundle import Bundle, BundleEntry, FileRef
from toolchain.caching.cache import Cache
from toolchain.compiling import pipeline
from toolchain.contract.entries import load_table
from toolchain.knobs import cache_dir
from toolchain.runtime import Launcher, cpu
from toolchain.runtime.cpu import CpuExecutor
from toolchain.runtime.peers import Peers, Place, open_peers, open_rank

CONFIG = GPTConfig(n_layer=1, n_head=3, n_embd=192, n_ctx=32, vocab_size=190)
SIZES = {"L": 1, "C": 192, "X": 32, "K": 96, "R": 2, "CLUSTER": 2, "SLOTS": 4, "FLYING": 0}
PARTS = (  # of the ranks: a head and 2, and half of the hidden units each
    {"H": 1, "CLUSTERS": 2, "UNITS": 64, "UNITS_APART": 128},
    {"H": 2, "CLUSTERS": 3, "UNITS": 80, "UNITS_APART": 32},
)
SYMBOLS = (f"{OP_RANKS}_of_1", f"{OP_RANKS}_of_2")
SMS = 8  # of a CPU: an array has no more than twice as many blocks as a launch
FIRST, STEPS = 7, 2


@pytest.fixture(scope="module")
def stepping(bundle: Bundle) -> Bundle:
    """With an entry for each rank's part."""
    (like,) = (spec for spec in load_table(TABLE).entries(SOURCE) if spec.symbol == f"{OP_RANKS}_xl_12_bf16")
    entries, make = list(bundle.entries), dict(cast("LazyBundle", bundle).make)
    for symbol, part in zip(SYMBOLS, PARTS, strict=True):
        spec = replace(like, symbol=symbol, constants={**SIZES, **part})
        made = pipeline.exported("kernels_cute", spec, Cache(cache_dir()))
        file = FileRef(Path("cute", spec.symbol), spec.symbol)
        make[file.path] = lambda text=made.ir: text
        entries.append(BundleEntry(spec, file, made.form, {}, ir=file))
    return replace(cast("LazyBundle", bundle), entries=tuple(entries), make=make)


@pytest.fixture(autouse=True)
def sms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "SMS", SMS)


def model_of(bundle: Bundle, peers: Peers) -> ParallelGPT:
    for executor in peers.executors:
        cast("CpuExecutor", executor).by_threads = True
    launchers = [Launcher(bundle, "cute", each, "sm_90", borrows_from="mlir") for each in peers.executors]
    return ParallelGPT(CONFIG, random_weights(CONFIG, 5), launchers, peers, "bf16")


def stepped(model: ParallelGPT) -> tuple[list[int], np.ndarray]:
    """The tokens that steps append to FIRST, and the logits of each step."""
    steps = ParallelDecode(model, [KVCache(rank, 1, 32) for rank in model.ranks])
    steps.reset(np.array([FIRST], np.int32), np.zeros(1, np.int64))
    made, logits = list[int](), list[np.ndarray]()
    for _ in range(STEPS):
        steps.run()
        made += steps.likeliest().tolist()
        logits.append(steps.logits.numpy())
    model.peers.synchronize()
    return made, np.stack(logits, 1)  # (1, STEPS, V)


def test_ranks_with_uneven_heads_take_the_entries_of_their_parts(stepping: Bundle) -> None:
    with open_peers(["cpu", "cpu"], sanitize=False) as peers:
        model = model_of(stepping, peers)
        made, logits = stepped(model)
        ran = [{loaded.symbol for loaded in executor.ran} for executor in peers.executors]
    assert [{symbol for symbol in each if OP_RANKS in symbol} for each in ran] == [{SYMBOLS[0]}, {SYMBOLS[1]}]
    tokens = np.array([[FIRST, *made[:-1]]], np.int32)
    weights = random_weights(CONFIG, 5).astype("bf16")
    eager = reference.eager(CONFIG, weights, tokens, dtype="bf16")
    compare("forward", "bf16", logits, reference.float64(CONFIG, weights, tokens), eager)

    def run(place: Place) -> str:
        with open_rank(place, "cpu", sanitize=False) as rank:
            found, own = stepped(model_of(stepping, rank))
            return f"{found} {digest(own)}"

    assert run_in_processes(2, run) == [f"{made} {digest(logits)}"] * 2


def digest(logits: np.ndarray) -> str:
    return hashlib.sha256(logits.tobytes()).hexdigest()
