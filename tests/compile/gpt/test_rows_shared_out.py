"""A pass that shares out the rows of the residual stream, its products thread by thread on the executor of CuTe: in one
process within the bounds of a forward pass, and in two, from a checkpoint, the same bits."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from conformance.ops.compare import compare
from gpt.config import GPTConfig
from gpt.parallel import ParallelForward, ParallelGPT
from gpt.parameters import one_by_one
from gpt.parameters.spread import OPS
from gpt.parameters.weights import random_weights, save
from gpt.reference import forward as reference
from kernels_cute import SOURCE
from tests.compile.conftest import LazyBundle
from tests.compile.gpt.processes import run_in_processes
from toolchain.bundles.bundle import Bundle, BundleEntry, FileRef
from toolchain.caching.cache import Cache
from toolchain.compiling import pipeline
from toolchain.errors import UsageError
from toolchain.knobs import cache_dir
from toolchain.runtime import Launcher
from toolchain.runtime.cpu import CpuExecutor
from toolchain.runtime.peers import Peers, Place, open_peers, open_rank

CONFIG = GPTConfig(n_layer=2, n_head=3, n_embd=192, n_ctx=128, vocab_size=67)
TOKENS = np.random.default_rng(1).integers(0, CONFIG.vocab_size, (2, 128)).astype(np.int32)


@pytest.fixture(scope="module")
def spreading(bundle: Bundle) -> Bundle:
    """With the products of ranks, whose IR the executor runs."""
    entries, make, cache = list(bundle.entries), dict(cast("LazyBundle", bundle).make), Cache(cache_dir())
    for spec in SOURCE.entries():
        if spec.op in OPS and spec.dtype == "bf16":
            made = pipeline.exported("kernels_cute", spec, cache)
            file = FileRef(Path("cute", spec.symbol), spec.symbol)
            make[file.path] = lambda text=made.ir: text
            entries.append(BundleEntry(spec, file, made.form, {}, ir=file))
    return replace(cast("LazyBundle", bundle), entries=tuple(entries), make=make)


def model_of(bundle: Bundle, folder: Path, peers: Peers) -> ParallelGPT:
    """Of the checkpoint, read one tensor at a time."""
    for executor in peers.executors:
        cast("CpuExecutor", executor).by_threads = True
    launchers = [Launcher(bundle, "cute", each, borrows_from="mlir") for each in peers.executors]
    config, stored, _ = one_by_one.load(folder)
    return ParallelGPT(config, stored, launchers, peers, "bf16")


def passed(model: ParallelGPT) -> np.ndarray:
    passes = ParallelForward(model, *TOKENS.shape, spread=True)
    passes.set_tokens(TOKENS)
    passes.run()
    logits = passes.logits.numpy()
    model.peers.synchronize()
    return logits


LONG = "half a minute; tests/unit/gpt/parameters/test_spread.py has what is copied"


@pytest.mark.parametrize("copied", [False, pytest.param(True, marks=pytest.mark.long(LONG))])
def test_processes_share_out_rows_as_one_does(
    spreading: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, copied: bool
) -> None:
    """`copied`: copies send rows, not the products that read them. Of three heads one rank has two."""
    monkeypatch.setattr("gpt.parameters.spread.COPIED_ROWS", TOKENS.size if copied else TOKENS.size + 1)
    weights = random_weights(CONFIG, 5).astype("bf16")
    save(tmp_path, CONFIG, weights)
    with open_peers(["cpu", "cpu"], sanitize=False) as peers:
        model = model_of(spreading, tmp_path, peers)
        logits = passed(model)
        ran = {entry.spec.op for entry in spreading.entries if entry.spec.symbol in symbols(peers)}
    assert ran >= {*OPS, "embedding_centred"}
    eager = reference.eager(CONFIG, weights, TOKENS, dtype="bf16")
    compare("forward", "bf16", logits, reference.float64(CONFIG, weights, TOKENS), eager)

    def run(place: Place) -> str:
        with open_rank(place, "cpu", sanitize=False) as rank:
            return digest(passed(model_of(spreading, tmp_path, rank)))

    assert run_in_processes(2, run) == [digest(logits)] * 2


def symbols(peers: Peers) -> set[str]:
    return {loaded.symbol for executor in peers.executors for loaded in executor.ran}


def digest(logits: np.ndarray) -> str:
    return hashlib.sha256(logits.tobytes()).hexdigest()


def test_rows_that_do_not_divide(spreading: Bundle, tmp_path: Path) -> None:
    save(tmp_path, CONFIG, random_weights(CONFIG, 5))
    with open_peers(["cpu", "cpu"], sanitize=False) as peers:
        model = model_of(spreading, tmp_path, peers)
        for sizes in ((1, 128), (3, 128), (2, 127)):
            with pytest.raises(UsageError, match=f"{sizes[0] * sizes[1]} rows cannot be shared out"):
                ParallelForward(model, *sizes, spread=True)
