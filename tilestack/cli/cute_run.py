"""`cute-run`: a kernel of `cute` in MLIR text, or in PTX, on the CPU, thread by thread, with its mistakes and bank
conflicts."""

from __future__ import annotations

import argparse
import sys
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import Any

from .common.options import STREAM, add_json, command, print_json, read_text, seed, source_name

EXAMPLES = """\
  tilestack cute-run transpose.mlir --grid 2,3 --threads 32 --arg f32:64x96 --arg zeros:f32:96x64 --arg 64
  tilestack cute-run kernel.mlir --arg bf16:x.npy --arg zeros:f32:64 --save 1=out.npy
  tilestack cute-run kernel.mlir --ptx sm_90a --arg f32:64 --arg zeros:f32:64
  tilestack cute-run kernel.ptx --threads 32 --arg f32:64 --arg zeros:f32:64
an --arg for each parameter of the function: FILE.npy, DTYPE:FILE.npy to convert it, DTYPE:SIZES for random values,
zeros:DTYPE:SIZES, or a number; DTYPE is f32, f16, bf16, f8E4M3FN, i32 and so on. An array is passed as its pointer
with --json what the kernel prints goes to standard error
"""


def add(commands: Any) -> None:
    made = command(commands, "cute-run", cute_run, "run a kernel of cute IR on the CPU, and check it", EXAMPLES)
    made.add_argument("file", type=Path, metavar="FILE", help="MLIR text or PTX; - for standard input")
    made.add_argument("--ptx", default="", metavar="TARGET", help="compile the text, and run its PTX, such as sm_90a")
    made.add_argument("--entry", default="", metavar="SYMBOL", help="default: the only one")
    made.add_argument("--grid", default="1", metavar="X[,Y[,Z]]", help="blocks to run (default 1)")
    made.add_argument("--threads", default="1", metavar="X[,Y[,Z]]", help="of a block, if the text does not say")
    made.add_argument(
        "--cluster", default="1", metavar="X[,Y[,Z]]", help="blocks of a cluster, if the text does not say"
    )
    made.add_argument("--shared-bytes", type=int, default=0, metavar="N", help="dynamic shared memory (default 0)")
    made.add_argument("--arg", action="append", default=[], metavar="ARG", help="see below; repeat")
    made.add_argument(
        "--save", action="append", default=[], metavar="N=FILE",
        help="argument N after the run, .npy; - is standard output",
    )  # fmt: skip
    made.add_argument("--seed", type=seed, default=0, help="of random values (default 0)")
    add_json(made)


def cute_run(args: argparse.Namespace) -> int:
    import numpy as np

    from toolchain.cute.executor import run
    from toolchain.errors import UsageError

    from .common.arguments import describe, grid_of, named, save, saving, value_of

    rng = np.random.default_rng(args.seed)
    values = [value_of(text, rng) for text in args.arg]
    arrays = named(values)
    saves = [saving(text, arrays) for text in args.save]
    streamed = any(path == STREAM for _, path in saves)
    if streamed and args.json:
        raise UsageError("--json and --save N=- both go to standard output", hint="save to a file")
    kernel = _kernel(read_text(args.file), source_name(args.file), args.entry, args.ptx)
    with redirect_stdout(sys.stderr) if args.json or streamed else nullcontext():
        report = run(
            kernel, values, grid_of(args.grid, "--grid"), threads=grid_of(args.threads, "--threads"),
            shared_bytes=args.shared_bytes, name=args.entry, cluster=grid_of(args.cluster, "--cluster"),
        )  # fmt: skip
    for array, path in saves:
        save(array, path)
    if args.json:
        rows = [vars(row) for row in report.accesses]
        print_json({"kernel": report.kernel, "blocks": report.blocks, "shared_memory": rows})
        return 0
    out = sys.stderr if streamed else sys.stdout
    print(report, file=out)
    for index, array in arrays.items():
        print(f"arg {index}: {describe(array)}", file=out)
    return 0


def _kernel(text: str, name: str, entry: str, target: str) -> Any:
    """What the executor runs: the module of a text, or for a target the PTX that it becomes. Raises SourceError."""
    from toolchain.cute.compile import to_ptx
    from toolchain.cute.executor import ptx
    from toolchain.cute.parse import parse
    from toolchain.errors import UsageError

    if ptx.is_ptx(text):
        if target:
            raise UsageError(f"{name} is PTX, which needs no --ptx {target}")
        return ptx.program_of(ptx.parse(text, name), entry)
    if target:
        return ptx.program_of(ptx.parse(to_ptx(text, target, name=name), f"{name} for {target}"), entry)
    return parse(text, name)
