"""`python -m benchmarks.launch [--bundle DIR] [--output FILE]`: the host's microseconds for a launch from Python.

On a GPU, with PyTorch: a bundle's GELU through `k(x, out)`, repeated on the same tensors, on those of other addresses,
and on shapes that were not launched before; beside them PyTorch's own GELU into a given tensor. The arrays are small:
the GPU is done with a launch before the host makes the next, so the host's time alone is measured. Without a GPU there
is nothing to measure.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from toolchain import command
from toolchain.errors import UsageError
from toolchain.runtime import gpus

from .harness.measurement import Measurement

ENTRY, SHAPE = "mlir/gelu_any_f32", (4, 256)
LAUNCHES, ROUNDS = 300, 21  # few in a round, so that the driver's queue never fills
SET_UP = "on a machine with one see docs/benchmarks.md"


def main() -> None:
    """Prints a row for each way, and writes JSON. Raises UsageError on a machine without a GPU."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.launch", description=__doc__)
    parser.add_argument("--bundle", type=Path, default=Path("build/bundle"))
    parser.add_argument("--output", type=Path)
    asked = parser.parse_args()
    if not gpus():
        raise UsageError("there is no GPU here, and nothing else launches", hint=SET_UP)
    torch: Any = importlib.import_module("torch")  # which the toolchain does not have
    # By its name: what a user imports stands above this package.
    kernel: Any = importlib.import_module("tilestack").load(asked.bundle, entry=ENTRY)
    rows = measure(ways(torch, kernel), torch.cuda.synchronize)
    for row in rows:
        print(row)
    if asked.output:
        asked.output.write_text(json.dumps([row.to_json() for row in rows], indent=1) + "\n")


def ways(torch: Any, kernel: Any) -> dict[str, Callable[[], object]]:
    """What is measured, by its name: each is one launch."""
    pairs = [(torch.randn(SHAPE, device="cuda"), torch.empty(SHAPE, device="cuda")) for _ in range(16)]
    (x, out), turns = pairs[0], itertools.cycle(pairs)
    sizes = itertools.count(1)
    rows = [torch.zeros(LAUNCHES * ROUNDS, 8, device="cuda") for _ in range(2)]
    gelu = torch.ops.aten.gelu.out

    def first() -> None:
        size = next(sizes)
        kernel(rows[0][:size], rows[1][:size])

    return {
        "k(x, out)": lambda: kernel(x, out),
        "k(x, out), tensors in turn": lambda: kernel(*next(turns)),
        "k(x[:n], out[:n]), another n each time": first,
        "PyTorch's gelu into a tensor": lambda: gelu(x, approximate="tanh", out=out),
    }


def measure(ways: dict[str, Callable[[], object]], wait: Callable[[], object]) -> list[Measurement]:
    """The microseconds of each way, which take turns. `wait`: until the GPU has done what was launched."""
    found: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, launch in ways.items():
            wait()
            start = time.perf_counter()
            for _ in range(LAUNCHES):
                launch()
            found[name].append((time.perf_counter() - start) / LAUNCHES * 1e6)
    wait()
    return [Measurement.of(name, "us", samples[1:]) for name, samples in found.items()]  # the first round warms up


if __name__ == "__main__":
    raise SystemExit(command.run(main, set_up=SET_UP))
