"""The models whose forward pass is checked, with the sizes that each is run at."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from conformance.coverage import Suite
from conformance.jobs.jobs import Job, JobContext
from conformance.results.result import CellResult
from gpt.config import LLAMAS, GPTConfig, preset
from gpt.parameters import quantize, weights
from gpt.parameters.weights import Weights
from gpt.tokens.tokenizer import load_tokenizer

from .forward import ALL, ForwardCase, run_forward

WIDE = GPTConfig(n_layer=3, n_head=3, n_embd=192, n_ctx=512, vocab_size=257)


@functools.cache
def _random(config: GPTConfig) -> Weights:
    return weights.random_weights(config, seed=7)


def forward_cases() -> Sequence[ForwardCase]:
    """The models to check.

    nano: every kind of layer, odd lengths, the whole context.
    shipped: real weights, and text to continue.
    wide: the narrowest model whose norms are folded, with enough rows for the folded kernels.
    gpt2: GPT-2 124M at its own sizes, with random weights, because the trained ones need a download.
    shipped and nano-llama in 8 bits: rows of few and of many, which are rounded or not.
    gpt2-wide over weights in 8 bits: as many rows as each of the kernels for few rows takes.
    """
    config, shipped, _ = weights.load(weights.SHIPPED)
    return (
        ForwardCase(
            "nano", preset("nano"), lambda: _random(preset("nano")),
            sizes=((1, 1), (2, 100), (3, 128)), cpu_sizes=((1, 1), (2, 100), (3, 128)), cpu_dtypes=ALL,
        ),
        ForwardCase(
            "shipped", config, lambda: shipped,
            sizes=((1, 1), (2, 100), (1, 256)), cpu_sizes=((1, 1), (2, 100)), cpu_dtypes=ALL, prompt=b"Once",
        ),
        ForwardCase(
            "wide", WIDE, lambda: _random(WIDE),
            sizes=((1, 100), (2, 301), (5, 400)), cpu_sizes=((1, 100), (2, 301)), cpu_dtypes=("f16", "bf16"),
        ),
        ForwardCase(
            "gpt2", preset("gpt2"), lambda: _random(preset("gpt2")),
            sizes=((1, 1), (1, 64), (2, 100), (1, 1024)), cpu_sizes=((1, 64),), cpu_dtypes=("bf16",),
        ),
        *(_in_8_bits("shipped", config, shipped, kind) for kind in quantize.CHOICES),
        *(_in_8_bits("shipped", config, shipped, kind, logits=True) for kind in quantize.KINDS),
        *(_of_few_rows(kind) for kind in ("f8", "i8")),
        *(
            _in_8_bits("nano-llama", LLAMAS["nano"], _random(LLAMAS["nano"]), kind)
            for kind in quantize.CHOICES
            if kind.endswith(quantize.ONLY)
        ),
    )  # fmt: skip


def _of_few_rows(kind: str) -> ForwardCase:
    """Two layers of GPT-2's width: for few rows of it, norms are within products and the long product is in parts."""
    given = GPTConfig(n_layer=2, n_head=12, n_embd=768, n_ctx=128, vocab_size=257)
    config = replace(given, weights_only=True)
    return ForwardCase(
        f"gpt2-wide {kind}-weights", config,
        functools.cache(lambda: weights.quantized(given, _random(given), f"{kind}-weights")[1]),
        sizes=((1, 1), (2, 5), (1, 41), (2, 100)), cpu_sizes=((1, 1),), cpu_dtypes=("bf16",), dtypes=("bf16",),
    )  # fmt: skip


def _in_8_bits(
    model: str, config: GPTConfig, whole: Weights, kind: str, *, logits: bool = False
) -> ForwardCase:  # fmt: skip
    """The interpreter, which is slow at widening floats, runs more rows and a text where weights are integers."""
    slow = kind == f"{quantize.F8.name}{quantize.ONLY}"

    def stored() -> Weights:
        return weights.quantized(config, whole, kind, logits=logits)[1]

    own = replace(config, weights_only=kind.endswith(quantize.ONLY))
    return ForwardCase(
        f"{model} {kind}{' logits' * logits}", own, functools.cache(stored),
        sizes=((1, 1), (2, 40), (2, 100)), cpu_sizes=((1, 1), (2, 40))[: 1 if slow else 2],
        cpu_dtypes=("bf16",), prompt=b"Once" if (model, kind) == ("shipped", "i8-weights") else b"", dtypes=("bf16",),
    )  # fmt: skip


PROMPT = "The capital of France is"


@functools.cache
def checkpoint_case(name: str) -> ForwardCase:
    """A checkpoint, as `weights.load` takes it, with its own weights: few tokens, because the interpreter is slow.
    Raises as `load` does."""
    config, found, place = weights.load(name)
    return ForwardCase(
        name, config, lambda: found,
        sizes=((1, 1), (1, 64), (2, 100), (1, 512)), cpu_sizes=((1, 1), (1, 12)), cpu_dtypes=("f32", "bf16"),
        prompt=PROMPT.encode(), tokens=load_tokenizer(place, config).encode(PROMPT),
    )  # fmt: skip


@dataclass(frozen=True)
class ForwardRows:
    """A job: one model, of `forward_cases` or a checkpoint, in one dtype; its longest size alone, or the rest."""

    model: str
    dtype: str
    part: Literal["all", "longest", "rest"] = "all"

    def __call__(self, site: JobContext) -> Iterator[CellResult]:
        case = next((case for case in forward_cases() if case.model == self.model), None) or checkpoint_case(self.model)
        if self.part == "longest":
            case = longest(case)
        elif self.part == "rest":
            case = replace(case, sizes=case.sizes[:-1])
        return run_forward(site, case, self.dtype)


def longest(case: ForwardCase) -> ForwardCase:
    """The case with its longest size, which is its last, alone."""
    return replace(case, sizes=case.sizes[-1:], prompt=b"")


CONTINUED = 1e9  # what the greedy continuation of a prompt costs, in the same unit as `cost`


def cost(case: ForwardCase, dtype: str, kind: str) -> float:
    """Estimates how long a model takes in one dtype on a kind of executor: the products of its passes, in the unit of
    an op's cost. The sizes that the interpreter is too slow for cost nothing there."""
    if kind == "cpu" and dtype not in case.cpu_dtypes:
        return 1.0
    config = case.config
    tokens = sum(batch * length for batch, length in (case.cpu_sizes if kind == "cpu" else case.sizes))
    products = (12 * config.n_layer * config.n_embd + config.vocab_size) * config.n_embd  # a token's, but for attention
    return tokens * products + CONTINUED * bool(case.prompt)


def forward_jobs(dtypes: Sequence[str], kind: str, checkpoints: Sequence[str] = ()) -> Sequence[Job]:
    """The `forward` cells of the conformance matrix, on a kind of executor: "cpu" or "cuda". There a model's longest
    size is a job of its own, for its references take as long as a tenth of all others."""
    jobs: list[Job] = []
    for case in (*forward_cases(), *map(checkpoint_case, checkpoints)):
        for dtype in (each for each in dtypes if each in case.dtypes):
            whole = cost(case, dtype, kind)
            if kind == "cpu" or len(case.sizes) == 1:  # a single size has no rest, which would bring the text
                jobs.append(Job(whole, ForwardRows(case.model, dtype), "forward", case.model, (dtype,)))
                continue
            part, shape = cost(longest(case), dtype, kind), case.shape(case.sizes[-1])
            jobs += [
                Job(whole - part, ForwardRows(case.model, dtype, "rest"), "forward", case.model, (dtype,)),
                Job(part, ForwardRows(case.model, dtype, "longest"), "forward", shape, (dtype,)),
            ]
    return jobs


def suites(checkpoints: Sequence[str] = ()) -> Mapping[str, Suite]:
    """What a matrix runs beside the ops; with these checkpoints beside the models that it always runs."""
    jobs = functools.partial(forward_jobs, checkpoints=checkpoints)
    return {"forward": Suite(jobs, needs=("attention", "logits"))}


SUITES = suites()
