"""A GPT-2 on several GPUs beside the same on one: forward passes and decoding steps, whole batches, halves of them, and
rows of the residual stream that are shared out where they can be, and steps that are one launch on each where the
bundle has that.

The ranks are of one process, or each is a process: then all call `measure`, and each also has the rows of its own GPU
alone.

Logits are compared with a reference in float64 before anything is timed: those of a model of few layers, which is as
wide as the one that is timed and runs passes of the same sizes. Every pass is a graph on each GPU. No rank ends before
the others have come, so of each sample the rank with the shortest time counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from conformance.ops.compare import benchmark_bound, compare
from conformance.results.stats import median
from gpt.config import GPTConfig
from gpt.graphs import Decode, Forward
from gpt.model import GPT
from gpt.parallel import ParallelDecode, ParallelForward, ParallelGPT
from gpt.parameters.weights import random_weights
from gpt.passes.kv_cache import KVCache
from gpt.reference import forward as reference
from toolchain.errors import ConformanceError
from toolchain.runtime import Executor, Launcher
from toolchain.runtime.peers import Peers

from .cases import PassRow, samples

Sizes = tuple[int, int]  # sequences, tokens of each
DTYPE = "bf16"
FORWARD: Sequence[Sizes] = ((8, 1024), (1, 1024))
DECODE = (1, 64)  # sequences
STEPS = 10  # of a sample
LEFT = 124  # positions of a full context that decoding leaves free
CHECKED_LAYERS = 2
CHECKED_STEPS = 4
ONE, WHOLE, HALVES, ROWS, LAUNCH = "one GPU", "whole batch", "halves", "rows shared out", "one launch"


def measure(
    config: GPTConfig, launchers: Sequence[Launcher], peers: Peers, *, forward: Sequence[Sizes] = FORWARD,
    decode: Sequence[int] = DECODE, say: Callable[[PassRow], object] = print,
) -> list[PassRow]:  # fmt: skip
    """Rows of one GPU, and of all in each way that the sizes allow. `launchers`: one for each
    of the peers. Raises ConformanceError for wrong logits, before anything is timed."""
    check(replace(config, n_layer=CHECKED_LAYERS), launchers, peers, forward)
    weights = random_weights(config, 1).astype(DTYPE)
    rows: list[PassRow] = []

    def keep(case: str, ranks: int, variant: str, found: Sequence[float]) -> None:
        value, low, high = median([1e-3 * us for us in found])
        rows.append(PassRow(case, ranks, variant, value, low, high))
        say(rows[-1])

    alone = GPT(config, weights, launchers[0], DTYPE)
    for case, found in _of_one(alone, forward, decode):
        keep(case, 1, ONE, found)
    del alone
    shared = ParallelGPT(config, weights, launchers, peers, DTYPE)
    for case, variant, found in _of_all(shared, forward, decode):
        keep(case, peers.ranks, variant, found)
    return rows


def check(config: GPTConfig, launchers: Sequence[Launcher], peers: Peers, sizes: Sequence[Sizes]) -> None:
    """Compares the logits of one GPU and of all, of the first sequence of each half. Raises ConformanceError if they
    are out of the bounds of a forward pass, or a second run gives other bits."""
    weights = random_weights(config, 2).astype(DTYPE)
    alone, shared = GPT(config, weights, launchers[0], DTYPE), ParallelGPT(config, weights, launchers, peers, DTYPE)
    for batch, length in sizes:
        tokens = _tokens(config, batch, length)
        first = [0] if batch == 1 else [0, (batch + 1) // 2]
        wanted = reference.float64(config, weights, tokens[first])
        eager = reference.eager(config, weights, tokens[first], dtype=DTYPE)
        variants = _variants(shared, batch, length)
        passes = [Forward(alone, batch, length)]
        passes += [_pass(shared, batch, length, variant) for variant in variants]
        for each, variant in zip(passes, (ONE, *variants), strict=True):
            each.set_tokens(tokens)
            runs: list[NDArray[np.generic]] = []
            for _ in range(2):
                each.run()
                runs.append(each.logits.numpy())
            peers.synchronize()
            compare("forward", DTYPE, runs[0][first], wanted, eager)
            if runs[0].tobytes() != runs[1].tobytes():
                raise ConformanceError(f"forward ({batch}, {length}), {variant}: a second run gives other bits")


def _variants(model: ParallelGPT, batch: int, length: int) -> list[str]:
    """How a pass of these sizes may be run."""
    possible = {ROWS: model.spreads(batch * length, length), HALVES: batch > 1, WHOLE: True}
    return [variant for variant, may in possible.items() if may]


def _pass(model: ParallelGPT, batch: int, length: int, variant: str) -> ParallelForward:
    return ParallelForward(model, batch, length, halves=variant == HALVES, spread=variant == ROWS)


def _tokens(config: GPTConfig, batch: int, length: int) -> NDArray[np.int32]:
    return np.random.default_rng(batch).integers(0, config.vocab_size, (batch, length)).astype(np.int32)


def _of_one(model: GPT, forward: Sequence[Sizes], decode: Sequence[int]) -> Iterator[tuple[str, list[float]]]:
    executors = [model.executor]
    for batch, length in forward:
        passes = Forward(model, batch, length)
        passes.set_tokens(_tokens(model.config, batch, length))
        yield _named(batch, length), _timed(executors, passes.run)
    for batch in decode:
        steps = Decode(model, KVCache(model, batch, model.config.n_ctx))
        yield f"decode {batch}", _stepped(executors, steps, batch, model.config.n_ctx)


def _of_all(
    model: ParallelGPT, forward: Sequence[Sizes], decode: Sequence[int]
) -> Iterator[tuple[str, str, list[float]]]:
    peers = model.peers

    def shortest(us: float) -> float:
        return min(float(each[0]) for each in peers.gather("a sample", [np.array([us])]))

    for batch, length in forward:
        for variant in _variants(model, batch, length):
            passes = _pass(model, batch, length, variant)
            passes.set_tokens(_tokens(model.config, batch, length))
            yield _named(batch, length), variant, _timed(peers.executors, passes.run, shortest=shortest)
            peers.synchronize()
    for batch in decode:
        one_launch = batch == 1 and model.takes_step(model.config.n_ctx)
        if one_launch:
            check_steps(model)
        for variant in [LAUNCH] * one_launch + [WHOLE]:
            steps = _steps(model, batch, variant)
            yield f"decode {batch}", variant, _stepped(peers.executors, steps, batch, model.config.n_ctx, shortest)
            peers.synchronize()


def _steps(model: ParallelGPT, batch: int, variant: str) -> ParallelDecode:
    with model.stepping(on=variant == LAUNCH):
        return ParallelDecode(model, [KVCache(rank, batch, model.config.n_ctx) for rank in model.ranks])


def check_steps(model: ParallelGPT) -> None:
    """Compares the logits of steps that are one launch on each rank with those of many. Raises ConformanceError."""
    logits = list[NDArray[np.float64]]()
    tokens = _tokens(model.config, 1, CHECKED_STEPS)[0]
    for variant in (LAUNCH, WHOLE):
        steps = _steps(model, 1, variant)
        steps.reset(tokens[:1], np.zeros(1, np.int64))
        for token in tokens:
            steps.feed(np.array([token]))
            steps.run()
        steps.likeliest()
        logits.append(steps.logits.numpy().astype(np.float64))
        model.peers.synchronize()
    off, most = np.abs(logits[0] - logits[1]).max(), np.abs(logits[1]).max()
    if not off <= benchmark_bound("one_launch", DTYPE) * most:
        raise ConformanceError(f"a step in one launch is off by {off:.2g}, where the largest logit is {most:.2g}")


def _named(batch: int, length: int) -> str:
    return f"forward ({batch}, {length})"


def _stepped(
    executors: Sequence[Executor], steps: Decode | ParallelDecode, batch: int, positions: int,
    shortest: Callable[[float], float] = float,
) -> list[float]:  # fmt: skip
    """Samples of a step behind a cache of so many `positions` that has LEFT free ones."""
    lengths = np.full(batch, positions - LEFT)

    def run() -> None:
        for _ in range(STEPS):
            steps.run()

    return _timed(executors, run, STEPS, lambda: steps.reset(np.zeros(batch, np.int32), lengths), shortest)


def _timed(
    executors: Sequence[Executor], run: Callable[[], object], count: int = 1,
    prepare: Callable[[], object] = lambda: None, shortest: Callable[[float], float] = float,
) -> list[float]:  # fmt: skip
    """Samples of one of the `count` passes that `run` starts, in µs. `prepare` is not timed. `shortest`: of a time of
    this process those of all."""

    def once() -> float:
        prepare()
        for executor in executors:
            executor.synchronize()
        starts = [executor.record() for executor in executors]
        run()
        ends = [executor.record() for executor in executors]
        for executor in executors:
            executor.synchronize()
        return shortest(min(end.us_since(start) for start, end in zip(starts, ends, strict=True)) / count)

    return samples(once)


def table(rows: Sequence[PassRow]) -> str:
    """Milliseconds with the half width of their 95 % interval, by case and variant, as Markdown."""
    cells = {(row.case, row.variant): f"{row.ms:.4g} ± {(row.high - row.low) / 2:.1g}" for row in rows}
    shown = (ONE, ROWS, HALVES, WHOLE, LAUNCH)
    lines = [f"| ms | {' | '.join(shown)} |", "|---|" + "--:|" * len(shown)]
    for case in dict.fromkeys(row.case for row in rows):
        lines.append(f"| {case} | {' | '.join(cells.get((case, variant), '-') for variant in shown)} |")
    return "\n".join(lines) + "\n"
