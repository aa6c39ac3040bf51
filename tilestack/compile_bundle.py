"""`compile`: both kernel sources to a bundle."""

from __future__ import annotations

import argparse
import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolchain import bundle, knobs
from toolchain.cache import Cache
from toolchain.entry import DTYPES, EntrySpec, ops
from toolchain.errors import ToolchainError, UsageError
from toolchain.targets import BYTECODE

from .options import SOURCES, add_json, command, print_json
from .progress import progress_bar
from .tuning import warn_of_stale

if TYPE_CHECKING:
    from toolchain.targets import Target

    from .selection import Selection

EXAMPLES = """\
  tilestack compile                                    what this machine can use or check, to build/bundle
  tilestack compile --full                             every entry for the default targets
  tilestack compile --target sm_90 --target sm_120     for these GPUs
  tilestack compile --no-targets                       bytecode only: all that the CPU interpreter needs
  tilestack compile --source mlir --op linear --dtype bf16 --output /tmp/linear
  tilestack compile --entries "py/gelu|f32$" --output /tmp/some
"""


def add(commands: Any) -> None:
    made = command(commands, "compile", compile_, "compile kernels to a bundle", EXAMPLES)
    made.add_argument("--source", choices=[*SOURCES, "all"], default="all", help="kernel source (default all)")
    targets = made.add_mutually_exclusive_group()
    targets.add_argument("--target", action="append", default=[], metavar="SM", help="GPU target such as sm_90; repeat")
    targets.add_argument("--all-targets", action="store_true", help="every target that the assembler knows")
    targets.add_argument("--full", action="store_true", help="every entry for every default target")
    targets.add_argument("--no-targets", action="store_true", help="bytecode only, for the CPU interpreter")
    made.add_argument("--op", action="append", default=[], help="only this op; repeat")
    made.add_argument("--dtype", action="append", default=[], help="only this dtype; repeat")
    made.add_argument("--entries", type=_pattern, metavar="REGEX", help="only entries whose SOURCE/SYMBOL has a match")
    made.add_argument("--output", type=Path, default=Path("build/bundle"), metavar="DIR", help="default build/bundle")
    made.add_argument("--jobs", type=int, help="how many compiles run at once (default: the CPU cores)")
    made.add_argument("--bytecode", default=BYTECODE, metavar="VERSION", help=f"bytecode version (default {BYTECODE})")
    add_json(made)


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a regular expression: {error}") from error


def chosen_entries(args: argparse.Namespace) -> list[tuple[str, EntrySpec]]:
    """The entries asked for, each with its source's package. Raises UsageError if there are none."""
    from toolchain.pipeline import load_source

    for name, known in (("op", list(ops())), ("dtype", list(DTYPES))):
        if unknown := [x for x in getattr(args, name) if x not in known]:
            raise UsageError(f"no {name} {', '.join(unknown)}", hint=f"one of {', '.join(known)}")
    modules = SOURCES.values() if args.source == "all" else [SOURCES[args.source]]
    entries = [(module, spec) for module in modules for spec in load_source(module).entries()]
    wanted = [
        (module, spec)
        for module, spec in entries
        if (not args.op or spec.op in args.op)
        and (not args.dtype or spec.dtype in args.dtype)
        and (args.entries is None or args.entries.search(f"{spec.source}/{spec.symbol}"))
    ]
    if not wanted:
        raise UsageError("no entry has this op, dtype and name", hint="tilestack matrix list shows what there is")
    return wanted


def chosen(args: argparse.Namespace) -> tuple[list[Target], Selection]:
    """The targets, those of this machine's GPUs first, and what of the entries is compiled for them."""
    from toolchain import targets
    from toolchain.runtime import gpus

    from . import selection

    entries = chosen_entries(args)
    if args.no_targets:
        return [], selection.everything(entries)
    if args.full or args.all_targets or (not args.target and (args.op or args.entries)):  # what is named is meant
        return targets.select(["all"] if args.all_targets else []), selection.everything(entries)
    if args.target:
        wanted = targets.select(args.target)
        return wanted, selection.for_targets(entries, wanted)
    own = dict.fromkeys(gpu.target for gpu in gpus() if gpu.target in targets.targets())
    wanted = targets.select([*own, *(t.name for t in targets.select([]))])
    return wanted, selection.by_default(entries, wanted, list(own))


def compile_(args: argparse.Namespace) -> int:
    from toolchain import pipeline

    from .selection import MORE

    if args.jobs is not None and args.jobs < 1:
        raise UsageError(f"--jobs {args.jobs}: at least one")
    bundle.check_replaceable(args.output)
    started = time.perf_counter()
    wanted, selection = chosen(args)
    for reason, count in selection.skipped.items():
        print(f"not compiled: {count} {reason}", file=sys.stderr)
    if selection.skipped:
        print(f"  {MORE}", file=sys.stderr, flush=True)
    with progress_bar() as progress:
        outcome = pipeline.compile_entries(
            selection.entries,
            wanted,
            Cache(knobs.cache_dir()),
            jobs=args.jobs or knobs.jobs(),
            version=args.bytecode,
            progress=progress,
            wanted=selection.wants,
        )
    if args.bytecode == BYTECODE:  # another version is other code
        warn_of_stale(outcome.compiled, wanted)
    for failure in outcome.failures:
        print(f"failed: {failure.cell}\n{failure.error}\n", file=sys.stderr)
    seconds = time.perf_counter() - started
    if outcome.failures:
        raise ToolchainError(
            f"{len(outcome.failures)} cells did not compile; {args.output} was not written",
            hint="the failures are listed above; --source, --op and --dtype choose cells",
        )
    tools = pipeline.tools_used(wanted, (made.artifact.form.kind for made in outcome.compiled))
    bundle.write(args.output, outcome.compiled, tools)
    report = {
        "bundle": str(args.output), "entries": len(outcome.compiled), "targets": [t.name for t in wanted],
        "made": outcome.made, "cached": outcome.cached, "seconds": round(seconds, 2),
        "skipped": dict(selection.skipped),
    }  # fmt: skip
    if args.json:
        print_json(report)
    else:
        listed = ", ".join(t.name for t in wanted) or "no target: bytecode only"
        print(
            f"{args.output}: {len(outcome.compiled)} entries for {listed}; "
            f"{outcome.made} made, {outcome.cached} from the cache, {seconds:.1f} s"
        )
    return 0
