"""`compile`: the kernel sources to a bundle."""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolchain import knobs
from toolchain.bundles import bundle
from toolchain.caching.cache import Cache
from toolchain.compiling.progress import progress_bar
from toolchain.contract.entry import EntrySpec
from toolchain.contract.op import DTYPES, ops
from toolchain.contract.targets import BYTECODE
from toolchain.errors import BundleError, SourceError, TilestackError, ToolchainError, UsageError

from .common.options import SOURCES, add_json, command, print_json
from .tune import warn_of_stale

if TYPE_CHECKING:
    from toolchain.compiling.pipeline import Failure
    from toolchain.contract.targets import Target

    from ..api.bundles.selection import Selection

LISTED = 3  # ops that a message names

EXAMPLES = """\
  tilestack compile                                    what this machine can use or check, to build/bundle
  tilestack compile --full                             every entry for the default targets
  tilestack compile --target sm_90 --target sm_120     for these GPUs
  tilestack compile --target sm_90 --toolkit 13.4.92   with another release of the compiler
  tilestack compile --no-targets                       bytecode only: all that the CPU interpreter needs
  tilestack compile --source mlir --op linear --dtype bf16 --output /tmp/linear
  tilestack compile --entries "py/gelu|f32$" --output /tmp/some
"""


def add(commands: Any) -> None:
    made = command(commands, "compile", compile_, "compile kernels to a bundle", EXAMPLES)
    made.add_argument(
        "--source", action="append", choices=[*SOURCES, "all"], default=[], help="kernel source (default all); repeat"
    )
    targets = made.add_mutually_exclusive_group()
    targets.add_argument("--target", action="append", default=[], metavar="SM", help="GPU target such as sm_90; repeat")
    targets.add_argument("--all-targets", action="store_true", help="every target that the assembler knows")
    targets.add_argument("--full", action="store_true", help="every entry for every default target")
    targets.add_argument("--no-targets", action="store_true", help="bytecode only, for the CPU interpreter")
    made.add_argument(
        "--op", action="append", default=[], help="only this op, or forward: all that a model launches; repeat"
    )
    made.add_argument("--dtype", action="append", default=[], help="only this dtype, and ops of fixed dtypes; repeat")
    made.add_argument("--entries", type=_pattern, metavar="REGEX", help="only entries whose SOURCE/SYMBOL has a match")
    made.add_argument("--output", type=Path, default=Path("build/bundle"), metavar="DIR", help="default build/bundle")
    made.add_argument("--force", action="store_true", help="replace a bundle that holds more than this selection")
    made.add_argument("--jobs", type=int, help="how many compiles run at once (default: the CPU cores)")
    made.add_argument("--bytecode", default=BYTECODE, metavar="VERSION", help=f"bytecode version (default {BYTECODE})")
    made.add_argument("--toolkit", metavar="VERSION", help="compile with another tileiras (see docs/diff.md)")
    add_json(made)


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a regular expression: {error}") from error


def _some_sources(args: argparse.Namespace) -> bool:
    """Whether sources are named."""
    return bool(args.source) and "all" not in args.source


def chosen_entries(args: argparse.Namespace) -> list[tuple[str, EntrySpec]]:
    """The entries asked for, each with its source's package. Raises UsageError if there are none."""
    from gpt.conformance.models import SUITES
    from toolchain.contract.sources import load_source

    from ..api.bundles import selection

    for name, known in (("op", [*ops(), *SUITES]), ("dtype", list(DTYPES))):
        if unknown := [x for x in getattr(args, name) if x not in known]:
            raise UsageError(f"no {name} {', '.join(unknown)}", hint=f"one of {', '.join(known)}")
    sources = [name for name in SOURCES if name in args.source] if _some_sources(args) else list(SOURCES)
    of_models = selection.of_models(sources, args.dtype)

    def asked(spec: EntrySpec) -> bool:
        if of_models(spec) and any(suite in args.op for suite in SUITES):
            return True
        of_dtype = not args.dtype or spec.dtype in args.dtype or not ops()[spec.op].typed
        return spec.source in sources and of_dtype and (not args.op or spec.op in args.op)

    wanted = [
        (module, spec)
        for module in SOURCES.values()
        for spec in load_source(module).entries()
        if asked(spec) and (args.entries is None or args.entries.search(f"{spec.source}/{spec.symbol}"))
    ]
    if not wanted:
        raise UsageError("no entry has this op, dtype and name", hint="tilestack matrix list shows what there is")
    return wanted


def chosen(args: argparse.Namespace) -> tuple[list[Target], Selection]:
    """The targets, those of this machine's GPUs first, and what of the entries is compiled for them."""
    from toolchain.contract import targets
    from toolchain.runtime import gpus

    from ..api.bundles import selection

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


def check_lost(args: argparse.Namespace, entries: Iterable[tuple[str, EntrySpec]]) -> None:
    """Raises UsageError where a part of the entries would take the place of a bundle that has others of today's entries
    too. A compile of everything replaces any bundle: that is how one is kept up to date."""
    from toolchain.contract.sources import load_source

    narrowed = _some_sources(args) or args.op or args.dtype or args.entries
    if not narrowed or not args.output.is_dir() or not any(args.output.iterdir()):
        return
    try:
        there = bundle.Bundle.load(args.output).entries
    except BundleError:  # damaged, or of another version: of no use as it is
        return
    known = {(s.source, s.symbol) for module in SOURCES.values() for s in load_source(module).entries()}
    kept = {(spec.source, spec.symbol) for _, spec in entries}
    lost = [e.spec for e in there if (e.spec.source, e.spec.symbol) in known - kept]
    if not lost:
        return
    named = list(dict.fromkeys(f"{spec.source}/{spec.op}" for spec in lost))
    listed = ", ".join(named[:LISTED]) + (f" and {len(named) - LISTED} more ops" if len(named) > LISTED else "")
    raise UsageError(
        f"{args.output} holds {len(lost)} entries that this selection leaves out ({listed}): they would be lost",
        hint="write to another folder with --output, or replace this bundle with --force",
    )


def by_error(failures: Iterable[Failure]) -> dict[str, list[str]]:
    """Cells by what is wrong with them: one mistake in a kernel fails all its entries."""
    found: dict[str, list[str]] = {}
    for failure in failures:
        found.setdefault(str(failure.error), []).append(failure.cell)
    return found


def failed(failures: Iterable[Failure]) -> type[TilestackError]:
    """The kind of error that a compile ends with: the kernels' where one of them is at fault, else the toolchain's."""
    codes = {failure.error.exit_code for failure in failures}
    return SourceError if SourceError.exit_code in codes else ToolchainError


def compile_(args: argparse.Namespace) -> int:
    from toolchain.compiling import pipeline
    from toolchain.compiling.stages import stages
    from toolchain.pinned.toolkits import toolkit
    from toolchain.pinned.tools import tool

    from ..api.bundles.selection import MORE

    if args.jobs is not None and args.jobs < 1:
        raise UsageError(f"--jobs {args.jobs}: at least one")
    bundle.check_replaceable(args.output)
    find = toolkit(args.toolkit).tool if args.toolkit else tool
    started = time.perf_counter()
    wanted, selection = chosen(args)
    if not args.force:
        check_lost(args, selection.entries)
    for reason, count in selection.skipped.items():
        print(f"not compiled: {count} {reason}", file=sys.stderr)
    if selection.skipped:
        print(f"  {MORE}", file=sys.stderr, flush=True)
    cache = Cache.configured()
    with progress_bar() as progress:
        outcome = pipeline.compile_entries(
            selection.entries,
            wanted,
            cache,
            jobs=args.jobs or knobs.jobs(),
            version=args.bytecode,
            progress=progress,
            wanted=selection.wants,
            by_kind=stages(find),
        )
    if args.bytecode == BYTECODE:  # another version is other code
        warn_of_stale(outcome.compiled, wanted)
    seconds = time.perf_counter() - started
    cache.record()
    if cache.counts.trouble:
        print(f"the cache: {cache.counts.trouble}", file=sys.stderr)
        if cache.counts.errors:
            print(f"  {cache.counts.errors} requests failed; what was not found was compiled", file=sys.stderr)
    if outcome.failures:
        for error, cells in by_error(outcome.failures).items():
            more = f" and {len(cells) - 1} more" if len(cells) > 1 else ""
            print(f"failed: {cells[0]}{more}\n{error}\n", file=sys.stderr)
        raise failed(outcome.failures)(
            f"{len(outcome.failures)} cells did not compile; {args.output} was not written",
            hint="the failures are listed above; --source, --op and --dtype choose cells",
        )
    tools = pipeline.tools_used(wanted, (made.artifact.form.kind for made in outcome.compiled), find)
    bundle.write(args.output, outcome.compiled, tools)
    report = {
        "bundle": str(args.output), "entries": len(outcome.compiled), "targets": [t.name for t in wanted],
        "made": outcome.made, "cached": outcome.cached, "seconds": round(seconds, 2),
        "skipped": dict(selection.skipped), "cache": cache.counts.to_json(),
    }  # fmt: skip
    if args.json:
        print_json(report)
    else:
        listed = ", ".join(t.name for t in wanted) or "no target: bytecode only"
        print(
            f"{args.output}: {len(outcome.compiled)} entries for {listed}; "
            f"{outcome.made} made, {outcome.cached} from the cache, {seconds:.1f} s"
        )
        print(cache.counts)
    return 0
