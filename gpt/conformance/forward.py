"""Conformance of the whole model: its logits are compared with the reference, and its greedy continuations too."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from conformance.cells import borrows_from, sources_of
from conformance.jobs.jobs import JobContext
from conformance.ops.both import both
from conformance.ops.compare import Verdict, bound_for, compare
from conformance.ops.run import attempt, timed
from conformance.results.cell import Cell
from conformance.results.result import CellResult
from gpt.config import GPTConfig
from gpt.generate import generate
from gpt.model import GPT
from gpt.parameters.weights import Weights
from gpt.reference import forward as reference
from toolchain.errors import ConformanceError
from toolchain.runtime import DeviceBuffer, Launcher

ALL = ("f32", "tf32", "f16", "bf16")
Tokens = NDArray[np.int32]
Expected = tuple[NDArray[np.float64], NDArray[np.generic]]


@dataclass(frozen=True)
class ForwardCase:
    """A model and the sizes (B, T) to run it at. `cpu_sizes` and `cpu_dtypes`: those that the interpreter runs.
    `prompt`: the text it continues greedily; empty for none. `tokens`: the prompt's, where they are not its bytes.
    `dtypes`: those that it has."""

    model: str
    config: GPTConfig
    weights: Callable[[], Weights]
    sizes: Sequence[tuple[int, int]]
    cpu_sizes: Sequence[tuple[int, int]]
    cpu_dtypes: Sequence[str]
    prompt: bytes = b""
    tokens: Sequence[int] = ()
    dtypes: Sequence[str] = ALL

    def shape(self, size: tuple[int, int]) -> str:
        """Of the rows of a size."""
        return f"{self.model} B={size[0]} T={size[1]}"


def run_forward(site: JobContext, case: ForwardCase, dtype: str) -> Iterator[CellResult]:
    """Every size and source of a model in one dtype: logits at every position, then greedy continuations."""
    executor = site.executor
    on_cpu = executor.kind == "cpu"
    sources = sources_of(site.bundle, "forward", dtype, site.sources)
    cells = [Cell.on("forward", source, dtype, executor) for source in sources]
    cells = [cell for cell in cells if site.filter.takes_cell(cell.name)]
    skipped = [size for size in case.sizes if on_cpu and (size not in case.cpu_sizes or dtype not in case.cpu_dtypes)]
    for cell in cells:
        for size in skipped:
            yield cell.row(case.shape(size), status="not run", detail="too slow for the interpreter")
    sizes = [size for size in (case.cpu_sizes if on_cpu else case.sizes) if size not in skipped]
    if not sizes:
        return
    weights = case.weights().astype(dtype)
    models = {
        source: GPT(
            case.config, weights, Launcher(site.bundle, source, executor, borrows_from=borrows_from(source)), dtype
        )
        for source in {cell.source for cell in cells}
    }
    for size in sizes:
        tokens = np.random.default_rng(site.seed).integers(0, case.config.vocab_size, size).astype(np.int32)
        expected = functools.cache(functools.partial(_expected, case.config, weights, tokens, dtype))
        for cell in cells:
            if not site.filter.takes(cell.name, case.shape(size)):
                continue
            row = attempt(cell, case.shape(size), check_logits, models[cell.source], tokens, expected, dtype, site)
            yield with_borrowed_ops(row, site)
    if case.prompt:
        for row in _greedy(case, weights, models, cells, dtype, site):
            yield with_borrowed_ops(row, site)


def with_borrowed_ops(row: CellResult, site: JobContext) -> CellResult:
    """A row that names the ops which another source's kernels ran since the row before."""
    borrowed = {
        site.bundle.find(ran.source, ran.symbol).spec.op for ran in site.executor.ran if ran.source != row.source
    }
    if not borrowed:
        return row
    said = f"borrowed from {borrows_from(row.source)}: {', '.join(sorted(borrowed))}"
    return replace(row, detail="; ".join(filter(None, [row.detail, said])))


def _expected(config: GPTConfig, weights: Weights, tokens: Tokens, dtype: str) -> Expected:
    """Reference and eager logits. Every source is compared with them; they are computed when first needed."""
    return both(
        lambda: reference.float64(config, weights, tokens),
        lambda: reference.eager(config, weights, tokens, dtype=dtype),
    )


def check_logits(
    model: GPT,
    tokens: Tokens,
    expected: Callable[[], Expected],
    dtype: str,
    site: JobContext,
) -> tuple[Verdict, Sequence[float]]:
    executor = site.executor
    if executor.kind == "cpu":
        with site.gate:
            logits, first_us = timed(lambda: model.forward(tokens), executor)
        times = [first_us]
    else:
        model.launched_by(_Loader(model.launcher)).forward(tokens)
        executor.synchronize()
        with site.gate:
            logits = model.forward(tokens)  # in memory that later passes do not touch
            times = executor.times_us(lambda: model.forward(tokens), repeats=10)
    return compare("forward", dtype, logits.numpy(), *expected()), times


class _Loader(Launcher):
    """Loads the kernels that are launched, for another launcher, and does not launch them: so a GPU that works
    meanwhile for others is not waited for."""

    def __init__(self, launcher: Launcher) -> None:
        super().__init__(
            launcher.bundle, launcher.source, launcher.executor, launcher.target, borrows_from=launcher.borrows_from
        )
        self._load = launcher.prepare

    def __call__(self, op: str, dtype: str, /, **args: DeviceBuffer | float) -> None:
        self._load(op, dtype, **args)


def _greedy(
    case: ForwardCase,
    weights: Weights,
    models: Mapping[str, GPT],
    cells: Sequence[Cell],
    dtype: str,
    site: JobContext,
    count: int = 24,
) -> Iterator[CellResult]:
    """Check each source's greedy continuation. Wherever the reference's best token leads the second by more than twice
    the bound on a logit's error, the model must choose it, so there the sources agree token for token."""
    prompt = np.array(case.tokens or list(case.prompt), np.int32)

    def check(model: GPT) -> tuple[Verdict, Sequence[float]]:
        with site.gate:
            continuation = list(generate(model, prompt, max_new_tokens=count, temperature=0.0))
        if len(continuation) != count:
            raise ConformanceError(f"{len(continuation)} tokens, wants {count}")
        sequence = np.array([[*prompt, *continuation[:-1]]], np.int32)  # (1, prompt + count - 1)
        logits, rounded = (of[0, len(prompt) - 1 :] for of in _expected(case.config, weights, sequence, dtype))
        bound = bound_for("forward", dtype, logits, rounded)
        # How far the chosen token's reference logit is below the best. Two logits are compared, so two errors add up.
        regret = logits.max(axis=-1) - logits[np.arange(count), continuation]
        worst = int(np.argmax(regret))
        if regret[worst] > 2 * bound:
            best = int(np.argmax(logits[worst]))
            raise ConformanceError(
                f"token {worst} is {continuation[worst]}, the reference takes {best} "
                f"by {regret[worst]:.3g} (allowed {2 * bound:.3g})"
            )
        return Verdict(float(regret[worst]), 2 * bound, f"token {worst} is {continuation[worst]}"), []

    for cell in cells:
        shape = f"{case.model} greedy {count} tokens after {case.prompt.decode()!r}"
        if not site.filter.takes(cell.name, shape):
            continue
        yield attempt(cell, shape, check, models[cell.source])
