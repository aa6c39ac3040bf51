"""`python -m benchmarks.load [MODEL]`: the milliseconds from a checkpoint's file to weights for a GPU.

MODEL is a preset of gpt/config.py, `gpt2` if none is named, with random weights in bf16. The file is in the page cache:
it was just written. Needs no GPU.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from itertools import pairwise
from pathlib import Path

from gpt.config import PRESETS
from gpt.parameters import weights
from gpt.parameters.fold import fold

from .harness.measurement import Measurement

ROUNDS = 7


def main() -> None:
    """Prints a row for each step."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load", description=__doc__)
    parser.add_argument("model", nargs="?", choices=PRESETS, default="gpt2")
    config = PRESETS[parser.parse_args().model]
    with tempfile.TemporaryDirectory() as folder:
        weights.save(Path(folder), config, weights.random_weights(config, seed=0).astype("bf16"))
        for row in measure(Path(folder), ROUNDS):
            print(row)


def measure(folder: Path, rounds: int) -> list[Measurement]:
    """The steps in the order in which a model takes them, and their sum."""
    names = ("read and check", "fold norms", "convert to bf16")
    found: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(rounds):
        marks = [time.perf_counter()]
        _, stored, _ = weights.load(folder)
        marks.append(time.perf_counter())
        folded = fold(stored)
        marks.append(time.perf_counter())
        folded.astype("bf16")
        marks.append(time.perf_counter())
        for name, (start, end) in zip(names, pairwise(marks), strict=True):
            found[name].append((end - start) * 1e3)
    found["together"] = [sum(steps) for steps in zip(*found.values(), strict=True)]
    return [Measurement.of(name, "ms", samples) for name, samples in found.items()]


if __name__ == "__main__":
    main()
