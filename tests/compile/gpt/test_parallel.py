"""A model on two ranks, each with memory of its own: the same logits as on one device, within the bounds of the forward
pass, and the same bits on each rank and in each run."""

from __future__ import annotations

import hashlib
import os
import re
import signal
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from conformance.ops.compare import compare
from gpt import parallel
from gpt.config import GPTConfig, llama
from gpt.generate import generate, generate_batch
from gpt.model import GPT
from gpt.parallel import ParallelForward, ParallelGPT
from gpt.parameters.weights import random_weights
from gpt.reference import forward as reference
from gpt.sampling import Sampling
from tests.compile.gpt.processes import run_in_processes
from toolchain.bundles.bundle import Bundle
from toolchain.errors import UsageError
from toolchain.runtime import Launcher
from toolchain.runtime.cpu import SMS
from toolchain.runtime.peers import Peers, Place, open_peers, open_rank

THREE = GPTConfig(n_layer=1, n_head=3, n_embd=96, n_ctx=16, vocab_size=67)
CONFIG = GPTConfig(n_layer=2, n_head=2, n_embd=64, n_ctx=16, vocab_size=67)
# Three heads of queries to each of three of keys, as SmolLM2 has; and what a Qwen3 has besides.
SMOL = llama(2, 9, 64, 16, 67, kv_heads=3, head_size=32, ffn=192)
QWEN = llama(2, 4, 64, 16, 67, kv_heads=2, head_size=32, ffn=160, qk_norm=True, tied=False)
TOKENS = np.random.default_rng(1).integers(0, CONFIG.vocab_size, (2, 5)).astype(np.int32)


@pytest.mark.parametrize(("source", "dtype"), [("mlir", "f32"), ("py", "bf16")])
def test_two_ranks_compute_what_one_does(source: str, dtype: str, bundle: Bundle) -> None:
    weights = random_weights(CONFIG, seed=5).astype(dtype)
    with open_peers(["cpu", "cpu"], sanitize=False) as peers:
        model = ParallelGPT(CONFIG, weights, [Launcher(bundle, source, e) for e in peers.executors], peers, dtype)
        logits = model.forward(TOKENS)
        found = logits.numpy()
        again = model.forward(TOKENS).numpy()
        peers.synchronize()
    eager = reference.eager(CONFIG, weights, TOKENS, dtype=dtype)
    compare("forward", dtype, found, reference.float64(CONFIG, weights, TOKENS), eager)
    assert found.tobytes() == again.tobytes()
    assert logits.shape == found.shape
    assert [part.shape for part in logits.parts] == [(2, 5, 40), (2, 5, 27)]
    heads = {name: model.ranks[0].weights[name].shape for name in ("h.0.attn.c_attn.weight", "h.0.mlp.c_proj.weight")}
    assert heads == {"h.0.attn.c_attn.weight": (64, 96), "h.0.mlp.c_proj.weight": (128, 64)}


@pytest.mark.parametrize(
    ("config", "ranks", "source", "dtype"),
    [
        (SMOL, 2, "mlir", "f32"),
        (SMOL, 2, "py", "bf16"),
        (SMOL, 3, "mlir", "bf16"),
        (QWEN, 2, "mlir", "bf16"),
        (QWEN, 2, "py", "f32"),
    ],
)
def test_ranks_share_a_llama(config: GPTConfig, ranks: int, source: str, dtype: str, bundle: Bundle) -> None:
    weights = random_weights(config, seed=5).astype(dtype)
    with open_peers(["cpu"] * ranks, sanitize=False) as peers:
        model = ParallelGPT(config, weights, [Launcher(bundle, source, e) for e in peers.executors], peers, dtype)
        found, again = (model.forward(TOKENS).numpy() for _ in range(2))
        works = [rank.new_workspace(*TOKENS.shape) for rank in model.ranks]
        for rank, work in zip(model.ranks, works, strict=True):
            rank.place(work, TOKENS, np.zeros(len(TOKENS), np.int32))
            rank.passes.forward(work, *TOKENS.shape, rank.new_logits(TOKENS.size))
        peers.synchronize()
        streams = {(work.x.numpy().tobytes(), work.normed.numpy().tobytes()) for work in works}
    eager = reference.eager(config, weights, TOKENS, dtype=dtype)
    compare("forward", dtype, found, reference.float64(config, weights, TOKENS), eager)
    assert found.tobytes() == again.tobytes()
    assert len(streams) == 1, "the ranks differ in bits"
    parts = {(SMOL, 2): [1, 2], (SMOL, 3): [1, 1, 1], (QWEN, 2): [1, 1]}[config, ranks]
    assert [rank.config.kv_heads for rank in model.ranks] == parts
    columns = [rank.weights["layers.0.self_attn.qkv"].shape[1] for rank in model.ranks]
    assert columns == [32 * keys * (config.group + 2) for keys in parts]


@pytest.mark.parametrize("config", [CONFIG, SMOL, QWEN])
def test_texts_of_two_ranks_under_the_sanitizer(config: GPTConfig, bundle: Bundle) -> None:
    """Prompts, then captured steps, greedy on the device and drawn on the host; the caches hold a rank's heads."""
    weights = random_weights(config, seed=5)
    texts = [TOKENS[0, :3], TOKENS[1, :2]]
    with open_peers(["cpu", "cpu"]) as peers:
        model = ParallelGPT(config, weights, [Launcher(bundle, "mlir", e) for e in peers.executors], peers, "f32")
        greedy = list(generate_batch(model, texts, max_new_tokens=3, sampling=Sampling(temperature=0)))
        again = list(generate_batch(model, texts, max_new_tokens=3, sampling=Sampling(temperature=0)))
        drawn = list(generate_batch(model, texts, max_new_tokens=2, sampling=Sampling(temperature=1, top_k=1)))
        peers.synchronize()
    whole = [list(text) for text in texts]
    for step in greedy:
        for text, token in zip(whole, step, strict=True):
            wanted = reference.float64(config, weights, np.array([text], np.int32))[0, -1]
            assert token is not None and wanted[token] >= wanted.max() - 1e-5
            text.append(np.int32(token))
    assert greedy == again
    assert drawn == greedy[:2]


@pytest.mark.parametrize(
    ("config", "ranks", "source", "dtype"),
    [(CONFIG, 2, "mlir", "f32"), (CONFIG, 2, "py", "bf16"), (SMOL, 3, "py", "f32")],
)
def test_halves_compute_what_the_whole_batch_does(
    config: GPTConfig, ranks: int, source: str, dtype: str, bundle: Bundle
) -> None:
    """Three sequences, two of them in the first half, and other tokens in the second run."""
    weights = random_weights(config, seed=5).astype(dtype)
    batches = np.random.default_rng(2).integers(0, config.vocab_size, (2, 3, 5)).astype(np.int32)
    with open_peers(["cpu"] * ranks, sanitize=False) as peers:
        model = ParallelGPT(config, weights, [Launcher(bundle, source, e) for e in peers.executors], peers, dtype)
        halves = ParallelForward(model, 3, 5, halves=True)
        found: list[bytes] = []
        for tokens in (*batches, batches[0]):
            halves.set_tokens(tokens)
            halves.run()
            logits = halves.logits.numpy()
            eager = reference.eager(config, weights, tokens, dtype=dtype)
            compare("forward", dtype, logits, reference.float64(config, weights, tokens), eager)
            found.append(logits.tobytes())
        whole = ParallelForward(model, 3, 5, halves=False)
        whole.set_tokens(batches[0])
        whole.run()
        # The interpreter's products are BLAS's, which on some processors adds up in another order for other rows.
        first = np.frombuffer(found[0], logits.dtype).reshape(logits.shape)
        apart = np.abs(whole.logits.numpy().astype(np.float64) - first.astype(np.float64))
        peers.synchronize()
    assert apart.max() <= {"f32": 2**-18, "bf16": 2**-7}[dtype] * np.abs(logits.astype(np.float64)).max()
    assert found[0] == found[2] != found[1]


def test_halves_share_weights_and_nothing_that_a_launch_writes(bundle: Bundle) -> None:
    """Neither flags, of which each half has so few that the blocks of both find room, nor the parts of a sum."""
    weights = random_weights(CONFIG, seed=5)
    with open_peers(["cpu", "cpu"]) as peers:
        model = ParallelGPT(CONFIG, weights, [Launcher(bundle, "mlir", e) for e in peers.executors], peers, "f32")
        model.reserve(8)
        halves = model.halves(4)
        assert model.halves(2)[1][0] is halves[1][0], "they are made once"
        for rank, models in enumerate(zip(model.ranks, *halves, strict=True)):
            assert all(each.weights is models[0].weights for each in models)
            shares: list[Any] = [each._share for each in models]
            assert [share.rank for share in shares] == [rank] * 3
            taken = [share.part(turn, 4) for share in shares for turn in range(2)]
            taken += [share.arguments[name] for share in shares for name in ("flags", "state")]
            assert len({(id(buffer.allocation), buffer.offset) for buffer in taken}) == 3 * 4
            blocks = [share.arguments["state"].shape[0] for share in shares]
            assert blocks == [SMS, SMS // 2, SMS // 2]


def test_many_rows_are_halves(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch of one text never is, nor are ranks of one GPU."""
    monkeypatch.setattr(parallel, "BESIDE_ROWS", 10)
    weights = random_weights(CONFIG, seed=5)
    with open_peers(["cpu", "cpu"], sanitize=False) as peers:
        model = ParallelGPT(CONFIG, weights, [Launcher(bundle, "mlir", e) for e in peers.executors], peers, "f32")
        used: list[int] = []
        make = model.halves

        def halves(rows: int) -> Sequence[Sequence[GPT]]:
            used.append(rows)
            return make(rows)

        monkeypatch.setattr(model, "halves", halves)
        for batch, length in ((3, 4), (2, 5), (3, 3), (1, 12)):
            ParallelForward(model, batch, length)
        assert used == [8, 5]
        ParallelForward(model, 2, 5, graph=False)
        monkeypatch.setattr(Peers, "apart", False)
        ParallelForward(model, 2, 5)
        assert used == [8, 5]
        with pytest.raises(UsageError, match="a GPU for each rank"):
            ParallelForward(model, 2, 5, halves=True)
        monkeypatch.setattr(Peers, "apart", True)
        for batch, graph in ((1, True), (2, False)):
            with pytest.raises(UsageError, match="at least 2 sequences"):
                ParallelForward(model, batch, 5, graph=graph, halves=True)


def test_tokens_that_do_not_fit_the_graphs(bundle: Bundle) -> None:
    with open_peers(["cpu", "cpu"], sanitize=False) as peers:
        launchers = [Launcher(bundle, "mlir", e) for e in peers.executors]
        model = ParallelGPT(CONFIG, random_weights(CONFIG, seed=5), launchers, peers, "f32")
        with pytest.raises(UsageError, match=r"of 2 x 5 tokens, not \[3, 5\]"):
            ParallelForward(model, 2, 5).set_tokens(np.zeros((3, 5), np.int32))


def test_heads_that_ranks_cannot_share(bundle: Bundle) -> None:
    weights = random_weights(CONFIG, seed=5)
    with (
        open_peers(["cpu"] * 3) as peers,
        pytest.raises(UsageError, match="2 heads cannot be shared by 3 GPUs") as said,
    ):
        ParallelGPT(CONFIG, weights, [Launcher(bundle, "mlir", e) for e in peers.executors], peers, "f32")
    assert said.value.hint == "at most 2 can share this model"


def test_heads_that_do_not_divide(bundle: Bundle) -> None:
    """Three heads on two ranks, as GPT-2 XL has 25: one rank has more of them, and both the same logits."""
    config = GPTConfig(n_layer=2, n_head=3, n_embd=96, n_ctx=16, vocab_size=67)
    weights = random_weights(config, seed=6)
    with open_peers(["cpu", "cpu"], sanitize=False) as peers:
        model = ParallelGPT(config, weights, [Launcher(bundle, "mlir", e) for e in peers.executors], peers, "f32")
        logits = model.forward(TOKENS).numpy()
    assert [rank.config.n_head for rank in model.ranks] == [1, 2]
    eager = reference.eager(config, weights, TOKENS, dtype="f32")
    compare("forward", "f32", logits, reference.float64(config, weights, TOKENS), eager)


def test_launchers_of_other_executors(bundle: Bundle) -> None:
    weights = random_weights(CONFIG, seed=5)
    with open_peers(["cpu"] * 2) as peers, pytest.raises(UsageError, match="one launcher for each of its peers"):
        ParallelGPT(CONFIG, weights, [Launcher(bundle, "mlir", peers.executors[0])], peers, "f32")


def test_heads_of_keys_that_ranks_cannot_share(bundle: Bundle) -> None:
    with open_peers(["cpu"] * 3) as peers, pytest.raises(UsageError, match="2 heads of keys cannot be shared by 3"):
        ParallelGPT(QWEN, random_weights(QWEN, 5), [Launcher(bundle, "py", e) for e in peers.executors], peers, "f32")


def in_processes(
    bundle: Bundle,
    count: int,
    spoil: Callable[[int], None] = lambda _: None,
    config: GPTConfig = THREE,
    *,
    halves: bool = False,
) -> list[str]:
    """What each of so many processes, one a rank, generates or says. `spoil`: called by each between two tokens.
    `halves`: instead a hash of the logits of a pass in halves."""

    def run(place: Place) -> str:
        with open_rank(place, "cpu", sanitize=False) as peers:
            model = ParallelGPT(
                config, random_weights(config, 5), [Launcher(bundle, "mlir", peers.executors[0])], peers, "f32"
            )
            if halves:
                return passed(model, halves=True)
            tokens: list[int] = []
            for step in generate_batch(model, [TOKENS[0, :3]], max_new_tokens=3, sampling=Sampling(temperature=0)):
                tokens += [token for token in step if token is not None]
                spoil(place.rank)
            peers.synchronize()
            return f"{tokens}"

    return run_in_processes(count, run)


def passed(model: ParallelGPT, *, halves: bool) -> str:
    passes = ParallelForward(model, *TOKENS.shape, halves=halves)
    passes.set_tokens(TOKENS)
    passes.run()
    logits = passes.logits.numpy()
    model.peers.synchronize()
    return hashlib.sha256(logits.tobytes()).hexdigest()


def test_processes_run_halves(bundle: Bundle) -> None:
    with open_peers(["cpu", "cpu"], sanitize=False) as peers:
        launchers = [Launcher(bundle, "mlir", e) for e in peers.executors]
        model = ParallelGPT(THREE, random_weights(THREE, 5), launchers, peers, "f32")
        wanted = passed(model, halves=True)
    assert in_processes(bundle, 2, halves=True) == [wanted] * 2


@pytest.mark.parametrize(("config", "ranks"), [(THREE, 2), (SMOL, 2), (SMOL, 3)])
def test_processes_write_what_one_process_does(config: GPTConfig, ranks: int, bundle: Bundle) -> None:
    weights = random_weights(config, 5)
    with open_peers(["cpu"] * ranks, sanitize=False) as peers:
        model = ParallelGPT(config, weights, [Launcher(bundle, "mlir", e) for e in peers.executors], peers, "f32")
        wanted = list(generate(model, TOKENS[0, :3], max_new_tokens=3, temperature=0))
    assert in_processes(bundle, ranks, config=config) == [f"{wanted}"] * ranks


def test_a_rank_that_is_killed_is_named_by_the_others(bundle: Bundle) -> None:
    def killed(rank: int) -> None:
        if rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)

    first, second, third = in_processes(bundle, 3, killed)
    assert second == "exit code -9"
    assert first == third
    assert re.fullmatch(r"DeviceError: rank 1 \(process \d+, cpu\) has ended unexpectedly", first)


def test_a_rank_that_fails_is_named_with_its_error(bundle: Bundle) -> None:
    def fails(rank: int) -> None:
        if rank == 0:
            raise RuntimeError("no more")

    first, second = in_processes(bundle, 2, fails)
    assert first == "RuntimeError: no more"
    assert re.fullmatch(r"DeviceError: rank 0 \(process \d+, cpu\) has failed: RuntimeError: no more", second)
