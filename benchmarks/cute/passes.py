"""`python -m benchmarks.cute.passes --bundle FOLDER [--model SIZE] [--size BxT] [--op OP] [--output FILE]`: whole
forwards of a GPT-2 with one op at a time from each source, on this GPU.

A product that is faster alone may make a pass slower, and the other way round: what overlaps with it, and what is left
in the caches, counts too. So the rows of `fastest` for products are decided by this. The bundle holds entries of
source `mlir` and `cute`. A pass takes all other ops from where the bundle's rows say. Passes take turns, in random
orders; a second time with the fastest source of each op together, and with all but one of these. Logits are compared
with those of the bundle's own rows before anything is timed.
"""

from __future__ import annotations

import argparse
import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gpt.config import GPTConfig, preset
from gpt.graphs import Forward
from gpt.model import GPT
from gpt.parameters.weights import Weights, random_weights
from toolchain.bundles.bundle import Bundle
from toolchain.contract.fastest import Pick
from toolchain.errors import ConformanceError
from toolchain.runtime import Executor, Launcher, open_executor

from ..rows import by_rows

SOURCE, DTYPE = "fastest", "bf16"
SOURCES = ("mlir", "cute")
OPS = ("rms_linear", "rms_linear_gelu", "linear_residual_squares", "linear_residual", "logits", "attention")
SIZES = ((1, 1024), (8, 256), (16, 256), (8, 1024))  # sequences, tokens
SAMPLES, WARM_UP = 25, 3
FAR = 0.03  # of the largest logit: products round to bf16 in another order
TODAY = "as the rows say"
Chosen = Mapping[str, str]  # a source for each op


def main() -> None:
    """Prints the passes of each size, the fastest first, and writes JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cute.passes", description=__doc__)
    parser.add_argument("--bundle", type=Path, required=True, help="with entries of mlir and cute for this GPU")
    parser.add_argument("--model", default="gpt2", help="a size of GPT-2")
    parser.add_argument("--size", action="append", type=_size, help="sequences and tokens, such as 8x256; repeat")
    parser.add_argument("--op", action="append", choices=OPS, help="only this one; repeat")
    parser.add_argument("--output", type=Path)
    asked = parser.parse_args()
    bundle, rows = Bundle.load(asked.bundle), list[dict[str, Any]]()
    with open_executor("cuda") as device:
        model = _model(bundle, preset(asked.model), device)
        for batch, length in asked.size or SIZES:
            rows += timed(model, bundle, batch, length, asked.op or OPS)
            if asked.output:
                asked.output.write_text(by_rows({"gpu": device.name, "model": asked.model, "rows": rows}))


def _size(text: str) -> tuple[int, int]:
    batch, length = text.split("x")
    return int(batch), int(length)


def _model(bundle: Bundle, config: GPTConfig, device: Executor) -> GPT:
    return GPT(config, Weights(random_weights(config, 0)), Launcher(bundle, SOURCE, device), DTYPE)


def taking(model: GPT, bundle: Bundle, chosen: Chosen) -> GPT:
    """The same model with some ops from a source each."""
    (target,) = bundle.targets
    picks = tuple(Pick(op, "tried", (DTYPE,), source, (), {}) for op, source in chosen.items())
    changed = replace(bundle, picks={target: (*picks, *bundle.picks[target])})
    return model.launched_by(Launcher(changed, SOURCE, model.executor))


def each_alone(ops: Sequence[str]) -> dict[str, Chosen]:
    """The plans that take one op from one source."""
    return {TODAY: {}, **{f"{op} of {source}": {op: source} for op in ops for source in SOURCES}}


def together(us: Mapping[str, float], plans: Mapping[str, Chosen]) -> dict[str, Chosen]:
    """The plan with each op from the source of its fastest pass, where that was faster than today's rows, and the
    plans with all of these but one."""
    best: dict[str, str] = {}
    for label in sorted((label for label in us if us[label] < us[TODAY]), key=lambda label: us[label]):
        for op, source in plans[label].items():
            best.setdefault(op, source)
    but = {f"all but {op}": {each: best[each] for each in best if each != op} for op in best} if len(best) > 1 else {}
    return {TODAY: {}, "all of the fastest": best, **but}


def timed(model: GPT, bundle: Bundle, batch: int, length: int, ops: Sequence[str]) -> list[dict[str, Any]]:
    """The rows of a size: of each plan its median and lowest time in microseconds. Raises ConformanceError."""
    rows, plans = list[dict[str, Any]](), each_alone(ops)
    for turn in ("each alone", "together"):
        runs = _captured(model, bundle, plans, batch, length)
        samples = _turns(model.executor, runs)
        us = {label: statistics.median(times) for label, times in samples.items()}
        print(f"({batch}, {length}), {turn}:")
        for label in sorted(us, key=lambda label: us[label]):
            print(f"  {label:40} {us[label]:8.0f} us {us[label] / us[TODAY]:.3f}", flush=True)
            row = {"B": batch, "T": length, "turn": turn, "plan": label, "ops": dict(plans[label])}
            rows.append({**row, "us": round(us[label], 1), "lowest_us": round(min(samples[label]), 1)})
        plans = together(us, plans)
    return rows


def _captured(
    model: GPT, bundle: Bundle, plans: Mapping[str, Chosen], batch: int, length: int
) -> dict[str, Callable[[], object]]:
    """A graph of each plan whose ops the pass launches and its source has. All write the same logits."""
    tokens = np.random.default_rng(0).integers(0, model.config.vocab_size, (batch, length)).astype(np.int32)
    out, runs, wanted = model.new_logits(batch * length), dict[str, Callable[[], object]](), np.empty(0)
    for label, chosen in plans.items():
        changed = taking(model, bundle, chosen)
        made = Forward(changed, batch, length, out=out)
        if not all(op in changed.launcher.ran.get(source, ()) for op, source in chosen.items()):
            continue  # this pass has no such op
        made.set_tokens(tokens)
        made.run()
        got = np.asarray(made.logits.numpy()[0, ::31], np.float32)
        wanted = got if label == TODAY else wanted
        off = float(np.abs(got - wanted).max() / np.abs(wanted).max())
        if not off <= FAR:
            raise ConformanceError(f"({batch}, {length}) with {label}: logits differ by {off:.3g} of the largest")
        runs[label] = made.run
    return runs


def _turns(device: Executor, runs: Mapping[str, Callable[[], object]]) -> dict[str, list[float]]:
    """Times in microseconds; each follows a pass of the same kind that is not timed, as in a row of them."""
    samples: dict[str, list[float]] = {label: [] for label in runs}
    draw = random.Random(0)
    for number in range(-WARM_UP, SAMPLES):
        for label in draw.sample(list(runs), len(runs)):
            runs[label]()
            start = device.record()
            runs[label]()
            end = device.record()
            device.synchronize()
            if number >= 0:
                samples[label].append(end.us_since(start))
    return samples


if __name__ == "__main__":
    main()
