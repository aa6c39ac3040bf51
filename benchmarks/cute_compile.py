"""`python -m benchmarks.cute_compile [--repeats N] [--output FILE]`: how long CuTe takes on this CPU.

Layout compositions a second, and the seconds of each stage from the Python source of a GEMM to its cubin. Each compile
is a process of its own without any cache, as a user's first one is.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

START = time.perf_counter()

# The kernels to compile. Each row: the module, the sizes of its tiles, the architecture of the PTX, the target.
GEMMS: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "GEMM for sm_80": (
        "kernels_cute.products.linear",
        {"m": 128, "n": 256, "k": 64, "warps": (2, 4)},
        "sm_80",
        "sm_80",
    ),
    "GEMM for sm_90a": ("kernels_cute.products.linear_sm90", {"m": 128, "n": 256, "k": 64}, "sm_90a", "sm_90a"),
}
STAGES = ("imports", "trace", "lower", "LLVM IR", "LLVM", "ptxas", "source to cubin", "with imports", "processor")
COMPOSITIONS = 20_000


def main() -> None:
    """Prints a row for each stage, and writes JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cute_compile", description=__doc__)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--one", choices=GEMMS, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(compile_one(asked.one)))
        return
    from .harness.measurement import Measurement

    rows = [Measurement.of("layout compositions", "/s", [compositions() for _ in range(asked.repeats)])]
    for name in GEMMS:
        runs = [_in_a_process(name) for _ in range(asked.repeats)]
        rows += [Measurement.of(f"{name}: {stage}", "s", [run[stage] for run in runs]) for stage in STAGES]
    for row in rows:
        print(row)
    if asked.output:
        asked.output.write_text(json.dumps([row.to_json() for row in rows], indent=1) + "\n")


def compositions() -> float:
    """Compositions a second, each of layouts that were not composed before."""
    from toolchain.cute.layout import Layout, composition

    pairs = [
        (Layout((8, (4, 2 + i)), (16, (1, 4))), Layout((4, (2, 2 + i)), (8, (1, 32)))) for i in range(COMPOSITIONS)
    ]
    start = time.perf_counter()
    for outer, inner in pairs:
        composition(outer, inner)
    return COMPOSITIONS / (time.perf_counter() - start)


def _in_a_process(name: str) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.cute_compile", "--one", name]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def compile_one(name: str) -> dict[str, float]:
    """Seconds of each stage in this process, which has compiled nothing yet. `processor`: seconds that processors were
    busy from the source to the cubin, ptxas included, which others on the machine hardly change."""
    times: dict[str, float] = {}

    def timed(stage: str, run: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        made = run()
        times[stage] = time.perf_counter() - start
        return made

    package, fields, arch, target = GEMMS[name]
    kernels = importlib.import_module(package)  # by its name, as compiling does: nothing here knows a kernel
    from toolchain.compiling.stages import compile_ptx
    from toolchain.cute.nvvm import llvm_to_ptx, to_llvm_ir

    times["imports"] = time.perf_counter() - START
    start, busy = time.perf_counter(), _busy()
    kernel = timed("trace", lambda: kernels.linear("bf16", kernels.Tiles(**fields)))
    module = timed("lower", kernel.lowered)
    text = timed("LLVM IR", lambda: to_llvm_ir(module))
    ptx = timed("LLVM", lambda: llvm_to_ptx(text, arch))
    timed("ptxas", lambda: compile_ptx(ptx.encode(), target))
    times["source to cubin"] = time.perf_counter() - start
    times["with imports"] = times["imports"] + times["source to cubin"]
    times["processor"] = _busy() - busy
    return times


def _busy() -> float:
    """Processor seconds of this process and of those that it ran."""
    return sum(os.times()[:4])


if __name__ == "__main__":
    main()
