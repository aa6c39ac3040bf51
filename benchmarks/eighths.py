"""`python -m benchmarks.eighths [--bundle DIR] [--model NAME] [--output FILE]`: a model's passes in 8 bits beside bf16.

Random weights. Each way of 8 bits takes its turn in every round: rows and weights, weights alone, and these with a
cache in 8 bits. A pass is timed only after its logits were found near those in bf16. With `--pytorch` forward passes of
PyTorch take turns with ours, in bf16 and with products of 8-bit floats. Without a GPU `--executor cpu` tries the whole
on the interpreter; its times say nothing of a GPU.
"""

from __future__ import annotations

import argparse
import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from conformance.ops.compare import benchmark_bound
from gpt.config import LLAMAS, PRESETS, GPTConfig
from gpt.graphs import Decode, Forward
from gpt.model import GPT
from gpt.parameters.quantize import F8, KINDS
from gpt.parameters.weights import Weights, quantized, random_weights
from gpt.passes.kv_cache import KVCache
from toolchain import command
from toolchain.bundles.bundle import Bundle
from toolchain.errors import ConformanceError, UsageError
from toolchain.runtime import Executor, Launcher, open_executor

from .harness import stats
from .harness.measurement import Measurement
from .harness.our_side import OurSide, poison
from .harness.passes import Pass
from .rows import by_rows

if TYPE_CHECKING:
    from .eighths_pytorch import TorchWays

MODELS: Mapping[str, GPTConfig] = {**PRESETS, **{f"llama-{name}": config for name, config in LLAMAS.items()}}
FORWARDS, BATCHES, POSITIONS = ((1, 1024), (8, 256), (8, 1024), (32, 1024)), (1, 8, 64), 1024
PRODUCTS = {"gpt2": 4, "llama": 5}  # of a layer, one after another
PEERS = ("graph", "compile")  # graphs alone, or in 8 bits also what torch.compile makes of them
BF16, KEPT = "bf16", 0.01  # KEPT: every number in the cache before a step
SET_UP = "tilestack compile --target sm_90 --source mlir --dtype bf16 --output build/bundle; see docs/benchmarks.md"


@dataclass(frozen=True)
class Way:
    """`quantize`: one of quantize.CHOICES, or none. `cache`: one of kv_cache.KINDS. `logits`: these in 8 bits too."""

    quantize: str = ""
    cache: str = ""
    logits: bool = False

    @property
    def name(self) -> str:
        said = [self.quantize] * bool(self.quantize) + [f"cache {self.cache}"] * bool(self.cache)
        said += ["logits"] * self.logits
        return ", ".join(said) or BF16

    def bound(self, config: GPTConfig) -> float:
        """How far logits may be from those in bf16, relative to them. Roundings do not know of each other: the squares
        of their errors add up along the layers."""
        products = PRODUCTS[config.family] * (2 if self.quantize in KINDS else 1) if self.quantize else 0
        roundings = config.n_layer * (products + (2 if self.cache else 0))  # those of a cache: keys and values
        roundings += 2 if self.logits else 0
        return benchmark_bound("eighths", BF16) * np.sqrt(max(1, roundings))


def ways(config: GPTConfig) -> list[Way]:
    """Those that a model has; bf16 first."""
    rows = ["f8", "i8"] if config.family == "gpt2" else []
    alone = ["f8-weights", "i8-weights"]
    all_rows = [Way(kind, logits=logits) for kind in rows for logits in (False, True)]
    whole = [Way("f8", "f8", logits=True)] * bool(rows)  # all that a step of one text in one launch takes in 8 bits
    return [Way(), *all_rows, *map(Way, alone), Way("", "f8"), *(Way(kind, "f8") for kind in alone), *whole]


def main() -> None:
    """Prints a row for each way of each pass, and writes JSON. Raises ConformanceError for logits that are wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.eighths", description=__doc__)
    parser.add_argument("--bundle", type=Path, default=Path("build/bundle"))
    parser.add_argument("--source", default="mlir")
    parser.add_argument("--model", choices=MODELS, default="gpt2")
    parser.add_argument("--executor", default="cuda")
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--pytorch", choices=PEERS, help="forward passes of PyTorch beside them (GPT-2)")
    parser.add_argument(
        "--only", default="", metavar="REGEX", help="only passes whose name has a match: forward, decode 8"
    )
    parser.add_argument("--output", type=Path)
    asked = parser.parse_args()
    with open_executor(asked.executor) as executor:
        launcher = Launcher(Bundle.load(asked.bundle), asked.source, executor)
        found = measure(MODELS[asked.model], launcher, asked.rounds, pytorch=asked.pytorch, only=asked.only)
    if asked.output:
        rows = [row.to_json() for rows in found.values() for row in rows]
        asked.output.write_text(by_rows({"device": executor.name, "model": asked.model, "rows": rows}))


def measure(
    config: GPTConfig, launcher: Launcher, rounds: int, forwards: Sequence[tuple[int, int]] = FORWARDS,
    batches: Sequence[int] = BATCHES, *, pytorch: str | None = None, only: str = "",
) -> dict[str, list[Measurement]]:  # fmt: skip
    """The microseconds of each way by pass. `pytorch`: one of PEERS. `only`: see `main`. Raises UsageError for a
    model that PyTorch's side has not."""
    if pytorch and config.family != "gpt2":
        raise UsageError(f"PyTorch's passes in 8 bits are those of a GPT-2, not of a {config.family}")
    weights = random_weights(config, seed=7)
    models: dict[str, GPT] = {}
    for way in ways(config):
        own, tensors = config, weights
        if way.quantize:
            own, tensors = quantized(config, weights, way.quantize, logits=way.logits)
        models[way.name] = GPT(own, tensors.astype("bf16"), launcher, "bf16", cache=way.cache)
    side = OurSide(launcher.executor, flush_bytes=0)
    theirs = _pytorch(config, weights, launcher.executor, pytorch == "compile") if pytorch else None
    bounds = {way.name: way.bound(config) for way in ways(config)}
    found: dict[str, list[Measurement]] = {}
    for name, build, tokens in passes(config, side, forwards, batches):
        if not re.search(only, name):
            continue
        # A forward pass has no cache, and integers have no logits of few rows: ways that differ in that alone are one.
        step = name.startswith("decode")
        differ = [way for way in ways(config) if not (way.logits and way.quantize != F8.name if step else way.cache)]
        made = {way.name: build(models[way.name]) for way in differ}
        if theirs and tokens.ndim == 2:
            made |= dict(theirs.passes(tokens))
        check(name, made, {key: bounds[_way_of(key)] for key in made}, launcher.executor)
        samples: dict[str, list[float]] = {key: [] for key in made}
        for _ in range(rounds):
            for key, each in made.items():
                samples[key].append(each.time_us())
        found[name] = [Measurement.of(f"{name}: {key}", "us", times) for key, times in samples.items()]
        for row, times in zip(found[name], samples.values(), strict=True):
            print(f"{row}  {stats.ratio(samples[BF16], times).value:.2f} x {BF16}", flush=True)
    return found


def _pytorch(config: GPTConfig, weights: Weights, executor: Executor, compiles: bool) -> TorchWays:
    from .eighths_pytorch import TorchWays  # PyTorch is only where it is measured

    device = "cpu" if executor.kind == "cpu" else f"cuda:{executor.device[1]}"
    return TorchWays(config, weights.astype(BF16), device, compiles=compiles)


def _way_of(key: str) -> str:
    """Ours that rounds as a way of PyTorch does."""
    return key.removeprefix("PyTorch ").removesuffix(", compiled")


def passes(
    config: GPTConfig, side: OurSide, forwards: Sequence[tuple[int, int]], batches: Sequence[int]
) -> Iterator[tuple[str, Callable[[GPT], Pass], NDArray[np.int32]]]:
    """For each pass: its name, a function that makes it for a model, and its tokens, (B, T) of a forward pass or (B) of
    a decoding step."""
    for batch, length in forwards:
        tokens = np.random.default_rng(1).integers(0, config.vocab_size, (batch, length)).astype(np.int32)
        yield f"forward ({batch}, {length})", functools.partial(_forward, side, tokens), tokens
    for batch in batches:
        tokens = np.random.default_rng(1).integers(0, config.vocab_size, batch).astype(np.int32)
        yield f"decode {batch}", functools.partial(_decode, side, tokens), tokens


def _forward(side: OurSide, tokens: NDArray[np.int32], model: GPT) -> Pass:
    forward = Forward(model, *tokens.shape)
    forward.set_tokens(tokens)

    def logits() -> NDArray[np.float32]:
        return forward.logits.numpy()[:, -1].astype(np.float32)

    return _pass(side, forward.run, lambda: poison(forward.logits), logits)


def _decode(side: OurSide, tokens: NDArray[np.int32], model: GPT) -> Pass:
    """A step that fills a cache, in which all numbers are the same before."""
    batch, positions = len(tokens), min(POSITIONS, model.config.n_ctx)
    cache = KVCache(model, batch, positions)
    cache.memory.fill(F8.largest if model.cache else KEPT)
    if cache.scales is not None:
        cache.scales.fill(KEPT / F8.largest)
    step = Decode(model, cache)
    lengths = np.full(batch, positions - 1, np.int32)

    def logits() -> NDArray[np.float32]:
        return step.logits.numpy().astype(np.float32)

    return _pass(side, step.run, lambda: step.reset(tokens, lengths), logits)


def _pass(
    side: OurSide, run: Callable[[], object], prepare: Callable[[], object],
    logits: Callable[[], NDArray[np.float32]],
) -> Pass:  # fmt: skip
    return Pass(run, prepare, logits, functools.partial(side.time_us, run, prepare))


def check(name: str, made: Mapping[str, Pass], bounds: Mapping[str, float], executor: Executor) -> None:
    """Runs each pass once. Raises ConformanceError for logits that are further from those in bf16 than rounding takes
    them: `bounds` of them, by way."""
    found: dict[str, NDArray[np.float32]] = {}
    for key, each in made.items():
        each.prepare()
        each.run()
        executor.synchronize()
        found[key] = each.logits()
    exact = found[BF16]
    for key, logits in found.items():
        error = float(np.linalg.norm(logits - exact) / np.linalg.norm(exact))
        if not error <= bounds[key]:
            raise ConformanceError(
                f"{name}: logits of {key} differ from those in bf16 by {error:.3g} of them, above {bounds[key]:.3g}"
            )


if __name__ == "__main__":
    raise SystemExit(command.run(main, set_up=SET_UP))
