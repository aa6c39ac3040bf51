"""The command `cpu`, for a machine without a GPU: measures the interpreter, compiling and assembling."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from toolchain.bundles import checkout
from toolchain.files import write_whole

from .harness import environment
from .harness.measurement import Measurement
from .rows import by_rows

PARTS = ("start", "operations", "forward", "turns", "compile", "assemble")
FILE = "cpu.json"


@dataclass(frozen=True)
class Options:
    """`only`: the names in PARTS to run. `targets`: those to compile for, none means the default ones; single kernels
    are assembled for the first."""

    output: Path
    only: Sequence[str] = PARTS
    targets: Sequence[str] = ()
    repeats: int = 3
    config: str = "gpt2"
    tokens: int = 64


def run(options: Options) -> int:
    """Print each measurement, and write cpu.json after each. Raises OSError."""
    found = {**environment.host(), "processor": _processor(), **checkout.commit(Path())}
    made: list[Measurement] = []
    path = options.output / FILE
    for one in measurements(options):
        if not one.detail:
            print(one, flush=True)
        made.append(one)
        document = {"format": 1, "environment": found, "measurements": [m.to_json() for m in made]}
        write_whole(path, by_rows(document), parents=True)
    if made:
        print(f"wrote {path}")
    return 0


def measurements(options: Options) -> Iterator[Measurement]:
    if "start" in options.only:
        from .harness import interpreter

        yield from interpreter.starting(options.repeats)
    if "operations" in options.only:
        from .harness import interpreter

        yield from interpreter.operations(max(options.repeats, 6))  # short: an interval of their median costs little
    if "forward" in options.only:
        from .harness import interpreter

        yield from interpreter.forward("kernels_mlir", options.config, "bf16", options.tokens, options.repeats)
    if "turns" in options.only:
        from .studies import turns

        repeats = max(options.repeats, 12)
        yield from turns.turns("kernels_mlir", options.config, "bf16", options.tokens, repeats)
    if "compile" in options.only or "assemble" in options.only:
        from toolchain.contract import targets

        from .harness import compile_time

        times, compiled = compile_time.compile_times(
            options.targets, options.repeats if "compile" in options.only else 1
        )
        if "compile" in options.only:
            yield from times
        if "assemble" in options.only:
            first = targets.select(options.targets)[0].name
            yield from compile_time.assemble_times(compiled, first, options.repeats)


def _processor() -> str:
    """The CPU's name as Linux gives it, and how many cores of it we may use."""
    lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else 'unknown'}, {len(os.sched_getaffinity(0))} cores"
