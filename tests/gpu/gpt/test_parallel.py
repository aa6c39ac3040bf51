"""A model on two GPUs: logits within the bounds of the forward pass, the same bits in each run, and the text of one."""

from __future__ import annotations

import secrets
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.collectives.model import check_steps
from conformance.ops.compare import compare
from gpt.config import LLAMAS, PRESETS, GPTConfig
from gpt.families.one_launch import OP_RANKS
from gpt.generate import generate_batch
from gpt.model import GPT
from gpt.parallel import ParallelForward, ParallelGPT
from gpt.parameters.weights import SHIPPED, load, random_weights, save
from gpt.reference import forward as reference
from gpt.sampling import Sampling
from tests.gpu.gpt import rank
from toolchain import knobs
from toolchain.bundles.bundle import Bundle
from toolchain.errors import UsageError
from toolchain.runtime import Executor, Launcher
from toolchain.runtime.peers import open_peers

pytestmark = pytest.mark.needs("two-gpus")
TOKENS = np.random.default_rng(1).integers(0, 256, (3, 20)).astype(np.int32)
SOURCES = ("mlir", "py")  # those with collectives


def greedy(model: GPT | ParallelGPT) -> list[list[int | None]]:
    return list(generate_batch(model, list(TOKENS[:, :7]), max_new_tokens=20, sampling=Sampling(temperature=0)))


@pytest.mark.parametrize("source", SOURCES)
def test_two_gpus_compute_what_one_does(source: str, bundle: Bundle, cuda: Executor) -> None:
    """In f32, where the shipped model's likeliest tokens are far enough ahead. It has five heads: two and three."""
    config, weights, _ = load(SHIPPED)
    alone = greedy(GPT(config, weights, Launcher(bundle, source, cuda), "f32"))
    with open_peers(["cuda:0", "cuda:1"]) as peers:
        model = ParallelGPT(config, weights, [Launcher(bundle, source, e) for e in peers.executors], peers, "f32")
        logits, again = (model.forward(TOKENS).numpy() for _ in range(2))
        texts = [greedy(model) for _ in range(2)]
        peers.synchronize()
    eager = reference.eager(config, weights, TOKENS, dtype="f32")
    compare("forward", "f32", logits, reference.float64(config, weights, TOKENS), eager)
    assert logits.tobytes() == again.tobytes()
    assert texts == [alone, alone]


@pytest.mark.parametrize("source", SOURCES)
def test_halves_beside_each_other_on_two_gpus(source: str, bundle: Bundle) -> None:
    """Many passes, one behind the other: each half goes through a lot of collectives while the other does too."""
    config, weights, _ = load(SHIPPED)
    with open_peers(["cuda:0", "cuda:1"]) as peers:
        model = ParallelGPT(config, weights, [Launcher(bundle, source, e) for e in peers.executors], peers, "f32")
        halves, whole = (ParallelForward(model, *TOKENS.shape, halves=both) for both in (True, False))
        found: list[bytes] = []
        for passes, count in ((halves, 100), (whole, 1), (halves, 1)):
            passes.set_tokens(TOKENS)
            for _ in range(count):
                passes.run()
            found.append(passes.logits.numpy().tobytes())
        logits = halves.logits.numpy()
        peers.synchronize()
    eager = reference.eager(config, weights, TOKENS, dtype="f32")
    compare("forward", "f32", logits, reference.float64(config, weights, TOKENS), eager)
    assert found[0] == found[2]


def test_rows_shared_out_on_two_gpus(bundle: Bundle) -> None:
    """Many passes, one behind the other: each stores what the next one reads, or adds to."""
    config = GPTConfig(n_layer=3, n_head=5, n_embd=320, n_ctx=512, vocab_size=257)
    weights = random_weights(config, 3).astype("bf16")
    tokens = np.random.default_rng(2).integers(0, 257, (5, 512)).astype(np.int32)
    with open_peers(["cuda:0", "cuda:1"]) as peers:
        launchers = [Launcher(bundle, "cute", e, borrows_from="mlir") for e in peers.executors]
        model = ParallelGPT(config, weights, launchers, peers, "bf16")
        if launchers[0].target != "sm_90":  # which alone has such products
            with pytest.raises(UsageError, match="cannot be shared out"):
                ParallelForward(model, *tokens.shape, spread=True)
            return
        passes = ParallelForward(model, *tokens.shape, spread=True)
        passes.set_tokens(tokens)
        found: list[bytes] = []
        for _ in range(50):
            passes.run()
            found.append(passes.logits.numpy().tobytes())
        logits = passes.logits.numpy()
        peers.synchronize()
    eager = reference.eager(config, weights, tokens, dtype="bf16")
    compare("forward", "bf16", logits, reference.float64(config, weights, tokens), eager)
    assert len(set(found)) == 1


@pytest.mark.parametrize("copied", [False, True])
def test_rows_shared_out_in_two_processes(
    bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, copied: bool
) -> None:
    """The same bits as in one process, from a checkpoint that each reads one tensor at a time; rows are sent by the
    products that read them, or `copied` by copy engines, in a branch of each graph."""
    config = GPTConfig(n_layer=3, n_head=5, n_embd=320, n_ctx=512, vocab_size=257)
    weights = random_weights(config, 3).astype("bf16")
    save(tmp_path, config, weights)
    least = rank.TOKENS.size if copied else rank.TOKENS.size + 1
    monkeypatch.setattr("gpt.parameters.spread.COPIED_ROWS", least)
    with open_peers(["cuda:0", "cuda:1"]) as peers:
        if peers.executors[0].target != "sm_90":  # which alone has such products
            return
        wanted = rank.digests(peers, bundle, tmp_path)
    words = [sys.executable, "-m", "tests.gpu.gpt.rank", str(Path(bundle.root).absolute()), str(tmp_path), str(least)]
    meeting = secrets.token_hex(8)
    started = [
        subprocess.Popen(words, env=knobs.in_process_group(each, 2, meeting), stdout=subprocess.PIPE, text=True)
        for each in range(2)
    ]
    try:
        found = [process.communicate(timeout=120)[0].split() for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()
    assert len(set(wanted)) == 1 and found == [wanted, wanted]


def test_a_step_of_two_gpus_is_one_launch_on_each(bundle: Bundle) -> None:
    """Of GPT-2, beside the same step as many launches, and behind a prompt; on other GPUs it is many launches."""
    config = PRESETS["gpt2"]
    with open_peers(["cuda:0", "cuda:1"]) as peers:
        launchers = [Launcher(bundle, "fastest", executor) for executor in peers.executors]
        model = ParallelGPT(config, random_weights(config, 0).astype("bf16"), launchers, peers, "bf16")
        first = peers.executors[0]
        has = bool(bundle.entries_of("cute", OP_RANKS, "bf16")) and first.target == "sm_90" and first.sms >= 132
        assert model.takes_step(config.n_ctx) is has
        if has:
            check_steps(model)
        texts = [
            list(generate_batch(model, [TOKENS[0]], max_new_tokens=20, sampling=Sampling(temperature=0)))
            for _ in range(2)
        ]
        peers.synchronize()
    assert texts[0] == texts[1]
    assert all((OP_RANKS in launcher.borrowed_ops) is has for launcher in launchers)


def test_two_ranks_of_one_gpu_run_whole_batches(bundle: Bundle) -> None:
    config, weights, _ = load(SHIPPED)
    with open_peers(["cuda:0", "cuda:0"]) as peers:
        model = ParallelGPT(config, weights, [Launcher(bundle, "mlir", e) for e in peers.executors], peers, "f32")
        with pytest.raises(UsageError, match="a GPU for each rank"):
            ParallelForward(model, *TOKENS.shape, halves=True)


@pytest.mark.parametrize("source", SOURCES)
def test_two_gpus_share_a_llama(source: str, bundle: Bundle) -> None:
    """Three heads of queries to each of two heads of keys. Random weights: their likeliest tokens are not ahead."""
    config = LLAMAS["nano"]
    weights = random_weights(config, 5)
    with open_peers(["cuda:0", "cuda:1"]) as peers:
        model = ParallelGPT(config, weights, [Launcher(bundle, source, e) for e in peers.executors], peers, "f32")
        logits, again = (model.forward(TOKENS).numpy() for _ in range(2))
        texts = [greedy(model) for _ in range(2)]
        peers.synchronize()
    eager = reference.eager(config, weights, TOKENS, dtype="f32")
    compare("forward", "f32", logits, reference.float64(config, weights, TOKENS), eager)
    assert logits.tobytes() == again.tobytes()
    assert texts[0] == texts[1]


def test_two_processes_write_what_one_does(bundle: Bundle) -> None:
    words = [sys.executable, "-m", "tilestack", "generate", "Once", "In the", "--devices", "2", "--executor", "cuda"]
    words += ["--bundle", str(Path(bundle.root).absolute()), "--temperature", "0.8", "--max-new-tokens", "30"]
    one, two = (
        subprocess.run([*words, *more], capture_output=True, text=True, check=True, timeout=120).stdout
        for more in ([], ["--processes"])
    )
    assert one == two
    assert "--- 2 of 2" in two
