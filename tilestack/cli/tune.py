"""`tune`: search the constants and compiler hints of kernels, and keep the fastest in entries/<target>.toml."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolchain import knobs
from toolchain.compiling import tuned
from toolchain.contract.entries import Tables, TunedRow, committed
from toolchain.contract.entry import EntrySpec
from toolchain.contract.op import DTYPES
from toolchain.contract.sources import registered
from toolchain.errors import UsageError
from tune.command import add_measuring

from .common.options import SOURCES, command

if TYPE_CHECKING:
    from toolchain.bundles.bundle import Compiled
    from toolchain.contract.targets import Target
    from tune.catalogue import Catalogue
    from tune.spaces import Space, Spaces

EXAMPLES = """\
  tilestack tune linear --target sm_90 --dtype bf16    compile, and on a GPU of that target measure and keep the fastest
  tilestack tune model --target sm_90 --phase compile --output build/tune       where the compiler is
  python3 -m tune measure build/tune                                      where the GPU is: no compiler needed
  tilestack tune model --target sm_90 --phase apply --output build/tune         writes entries/sm_90.toml
  tilestack tune linear --target sm_90 --shapes "M=8192 K=768 N=2304" --classes "^large$"
  tilestack tune llama --target sm_90                  the spaces that tune/spaces.toml lists for a model
  tilestack tune fastest --target sm_90                which source's entry is the fastest, for the source `fastest`
  tilestack tune predict --target sm_80                without such a GPU: entries by its published rates, marked so
  tilestack tune --check                               which kept entries were measured with other tools or kernels
"""
PHASES = ("compile", "measure", "apply")

SHOWN = 3  # stale rows that a compile names

# The search spaces are of kernels that these sources have; a source that takes only rows which name it has others.
TUNABLE = [name for name, source in registered().items() if source.package and not source.named_rows]


def add(commands: Any) -> None:
    made = command(commands, "tune", tune, "find the fastest variants of kernels for a GPU, and keep them", EXAMPLES)
    made.add_argument(
        "what", nargs="?", help="an op; model: all ops of a GPT-2; another model that --list shows; fastest; or predict"
    )
    made.add_argument("--list", action="store_true", help="show what can be tuned: models, ops and their spaces")
    made.add_argument("--target", metavar="SM", help="GPU target such as sm_90")
    made.add_argument("--phase", choices=PHASES, help="only this one of the three (default: all that can be done here)")
    made.add_argument("--source", choices=[*TUNABLE, "all"], default="py", help="kernel source (default py)")
    made.add_argument("--dtype", action="append", default=[], choices=DTYPES, help="only this dtype; repeat")
    made.add_argument(
        "--shapes", action="append", default=[], metavar="SHAPE", help="measure these, not the classes' own; repeat"
    )
    made.add_argument("--output", type=Path, default=Path("build/tune"), metavar="DIR", help="default build/tune")
    made.add_argument("--spaces", type=Path, metavar="FILE", help="search spaces (default tune/spaces.toml)")
    made.add_argument(
        "--tuned",
        type=Path,
        default=knobs.ENTRIES,
        metavar="DIR",
        help="tables of entries that are kept (default entries)",
    )
    made.add_argument(
        "--also-source", action="append", default=[], choices=TUNABLE, metavar="SOURCE",
        help="keep the winners for this source too, which has the same kernels; repeat",
    )  # fmt: skip
    made.add_argument(
        "--also-dtype", action="append", default=[], choices=DTYPES, metavar="DTYPE",
        help="keep the winners for this dtype too, which is as fast; repeat",
    )  # fmt: skip
    made.add_argument("--jobs", type=int, help="how many compiles run at once (default: the CPU cores)")
    made.add_argument("--check", action="store_true", help="list the kept entries that are stale; 1 if there are any")
    add_measuring(made)


def tune(args: argparse.Namespace) -> int:
    if args.check:
        if args.what or args.target or args.phase:
            raise UsageError("--check looks at all kept entries: give it no op, target or phase")
        return check(args)
    if args.list:
        return list_(args)
    if not (args.what and args.target):
        raise UsageError("name what to tune and the GPU target", hint="tilestack tune linear --target sm_90")
    if args.jobs is not None and args.jobs < 1:
        raise UsageError(f"--jobs {args.jobs}: at least one")
    from toolchain.contract.targets import select

    chosen = select([args.target])
    if args.what == "fastest":
        return fastest(args, chosen)
    if len(chosen) > 1:
        raise UsageError(f"--target {args.target}: a search is for one GPU", hint="tilestack tune model --target sm_90")
    (target,) = chosen
    if args.what == "predict":
        return predict(args, target)
    wanted = [args.phase] if args.phase else PHASES
    if "compile" in wanted:
        compile_(args, target)
    tried_out = not args.phase and args.executor == "cpu"
    if not args.phase and not tried_out and not _has_gpu(target):
        print(
            f"no GPU of {target.name} here; where there is one: python3 -m tune measure {args.output}\n"
            f"and then here: tilestack tune {args.what} --target {target.name} --phase apply --output {args.output}"
        )
        return 0
    if "measure" in wanted and not measure(args):
        return 1
    if tried_out:
        print("tried out on the interpreter, whose times are not applied")
        return 0
    if "apply" in wanted:
        apply(args)
    return 0


def list_(args: argparse.Namespace) -> int:
    """Print what can be tuned, with the spaces of each and their classes."""
    spaces = known_spaces(args)
    for word in spaces.words:
        print(word)
        for space in spaces.of(word) if spaces.spaces else ():
            print(f"  {space.name}: {', '.join(made.name for made in space.classes)}")
    return 0


def fastest(args: argparse.Namespace, chosen: Sequence[Target]) -> int:
    """The three phases of `tune fastest`: see tune/fastest.py."""
    from toolchain.bundles import bundle
    from toolchain.caching.cache import Cache
    from toolchain.compiling import pipeline
    from toolchain.compiling.progress import progress_bar
    from tune import fastest as search
    from tune import fastest_rows

    (target,) = chosen
    wanted = [args.phase] if args.phase else PHASES
    if "compile" in wanted:
        with progress_bar() as progress:
            outcome = pipeline.compile_entries(
                search.entries(target.name), [target], Cache.configured(), jobs=args.jobs or knobs.jobs(),
                progress=progress,
            )  # fmt: skip
        for failure in outcome.failures:
            raise failure.error
        tools = pipeline.tools_used([target], (made.artifact.form.kind for made in outcome.compiled))
        bundle.write(args.output / search.BUNDLE, outcome.compiled, tools)
        print(f"{args.output}: {len(outcome.compiled)} entries to measure")
    if not args.phase and not _has_gpu(target):
        print(
            f"no GPU of {target.name} here; where there is one: python3 -m tune fastest {args.output}\n"
            f"and then here: tilestack tune fastest --target {target.name} --phase apply --output {args.output}"
        )
        return 0
    if "measure" in wanted:
        say = partial(print, flush=True)
        pick = partial(fastest_rows.picks_of, wanted=search.classes()[1])
        if not search.measure(args.output, args.executor, args.timeout, args.stop_after, say, pick):
            return 1
    if "apply" in wanted:
        found = search.Found.load(args.measured or args.output / search.FILE)
        path, lines = fastest_rows.write(found, search.classes()[1], args.tuned)
        print("\n".join([*lines, f"wrote {path}"]))
    return 0


def predict(args: argparse.Namespace, target: Target) -> int:
    """`tune predict`: see tune/predict.py. It measures nothing, so it has no phases."""
    from toolchain.caching.cache import Cache
    from toolchain.contract.sources import load_source
    from tune.candidates import usages
    from tune.predict import predict as write
    from tune.spaces import PATH, load_spaces

    if args.phase:
        raise UsageError("tune predict has no phases", hint=f"tilestack tune predict --target {target.name}")
    sources = {name: load_source(SOURCES[name]).entries() for name in reversed(TUNABLE)}
    usages_of = partial(usages, SOURCES, target, Cache.configured(), args.jobs or knobs.jobs())
    say = partial(print, flush=True)
    path = write(target.name, load_spaces(args.spaces or PATH), sources, usages_of, say, args.tuned)
    say(f"wrote {path}: predicted, not measured")
    return 0


def compile_(args: argparse.Namespace, target: Target) -> None:
    """The first phase."""
    from toolchain.caching.cache import Cache
    from toolchain.compiling.progress import progress_bar
    from tune.candidates import Compiler

    modules = {name: SOURCES[name] for name in (TUNABLE if args.source == "all" else [args.source])}
    with progress_bar() as progress:
        compiler = Compiler(modules, target, Cache(knobs.cache_dir()), args.jobs or knobs.jobs(), progress)
        catalogue = compiler.run(chosen_spaces(args), args.output)
    for why, symbols in failures(catalogue).items():
        print(f"{len(symbols)} failed, the first {symbols[0]}: {why}", file=sys.stderr)
    shapes = sum(len(contest.shapes) for contest in catalogue.contests)
    print(f"{args.output}: {catalogue.counts()}; {len(catalogue.contests)} classes with {shapes} shapes to measure")


def failures(catalogue: Catalogue) -> dict[str, list[str]]:
    """What did not compile: entries by the line that says why, in which their own names do not count."""
    found: dict[str, list[str]] = {}
    for candidate in catalogue.candidates:
        if candidate.status == "failed":
            lines = candidate.why.replace(candidate.spec.symbol, "it").splitlines()
            why = next(
                (line for line in lines if re.search(r"\berror\b", line)), lines[0]
            )  # a tool's command is before
            found.setdefault(why, []).append(f"{candidate.spec.source}/{candidate.spec.symbol}")
    return found


def known_spaces(args: argparse.Namespace) -> Spaces:
    from tune.spaces import PATH, load_spaces

    return load_spaces(args.spaces or PATH)


def chosen_spaces(args: argparse.Namespace) -> Sequence[Space]:
    """The spaces asked for. Raises UsageError if nothing is left of them."""
    from tune.spaces import only_classes, only_shapes, parse_shape

    spaces: Sequence[Space] = known_spaces(args).of(args.what)
    if args.dtype:
        kept = (replace(space, dtypes=tuple(d for d in space.dtypes if d in args.dtype)) for space in spaces)
        spaces = [space for space in kept if space.dtypes]
    if args.classes:
        spaces = only_classes(spaces, args.classes)
    if args.shapes and spaces:
        spaces = only_shapes(spaces, [parse_shape(written) for written in args.shapes])
    if not spaces:
        raise UsageError(f"no search space of {args.what} has this dtype and class", hint="see tune/spaces.toml")
    return spaces


def measure(args: argparse.Namespace) -> bool:
    """The second phase. Returns True if everything is measured."""
    from tune.command import measure as measure_folder

    if args.shapes and args.phase:
        raise UsageError("--shapes are chosen when variants are compiled", hint="give them to --phase compile")
    compiled(args)
    spaces = known_spaces(args).models.get(args.what, ())
    return measure_folder(args.output, args, args.what, spaces, partial(print, flush=True))


def apply(args: argparse.Namespace) -> None:
    """The third phase."""
    from toolchain.caching.cache import Cache
    from toolchain.contract.sources import load_source
    from toolchain.contract.targets import BYTECODE, select
    from tune.apply import apply as apply_winners
    from tune.candidates import Faults
    from tune.measured import FILE, Launched, Measured
    from tune.spaces import load_spaces

    def code_of(spec: EntrySpec) -> bytes:
        return load_source(SOURCES[spec.source]).artifact(spec, BYTECODE).payload

    catalogue = compiled(args)
    spaces = load_spaces()
    if args.spaces:
        spaces = spaces.joined(load_spaces(args.spaces))
    (target,) = select([catalogue.target])
    fault_of = Faults(SOURCES, target, Cache(knobs.cache_dir()), args.jobs or knobs.jobs())
    done = apply_winners(
        catalogue,
        catalogue.only(args.what, args.classes, spaces.models.get(args.what, ())).contests,
        Measured.load(args.measured or args.output / FILE, catalogue.target),
        spaces,
        Launched.load(args.output, catalogue),
        drop=not args.spaces,
        also_sources=args.also_source,
        also_dtypes=args.also_dtype,
        code_of=code_of,
        fault_of=fault_of,
        folder=args.tuned,
    )
    print("\n".join(done.lines))
    print(f"{'wrote' if done.changed else 'unchanged:'} {done.path}")


def compiled(args: argparse.Namespace) -> Catalogue:
    """The variants that were compiled to the folder. Raises UsageError if there are none or for another target."""
    from tune.catalogue import Catalogue

    found = Catalogue.load(args.output)
    if found.target != args.target:
        raise UsageError(f"{args.output} holds variants for {found.target}", hint=f"--target {found.target}")
    return found


def check(args: argparse.Namespace) -> int:
    """1 if a kept entry is stale. Raises UsageError if there is no such folder."""
    if not args.tuned.is_dir():
        raise UsageError(f"{args.tuned}: there is no such folder", hint="--tuned names what tilestack tune writes to")
    rows = Tables(args.tuned).tuned
    found = stale_rows(rows, args.jobs or knobs.jobs())
    for row in found:
        print(f"{row.row.name}: {row.why}")
    foretold = [row for row in rows if row.predicted]
    print(f"{len(found)} of {len(rows) - len(foretold)} tuned entries are stale")
    if foretold:
        targets = ", ".join(dict.fromkeys(row.target for row in foretold))
        print(f"{len(foretold)} more, for {targets}, are predicted: nobody measured them")
    return 1 if found else 0


def stale_rows(rows: Sequence[TunedRow], jobs: int) -> list[tuned.Stale]:
    """The stale rows among these. The measured entries are exported again, through the cache, and compared."""
    from toolchain.caching.cache import Cache
    from toolchain.compiling.pipeline import compile_entries

    measured = [row for row in rows if not row.predicted]
    specs = [(SOURCES[source], row.measured_entry(source)) for row in measured for source in row.sources]
    outcome = compile_entries(specs, [], Cache(knobs.cache_dir()), jobs=jobs)
    failed = {failure.cell: failure.error for failure in outcome.failures}

    def code_of(spec: EntrySpec) -> bytes:
        made = next((made for made in outcome.compiled if made.spec == spec), None)
        if made is None:
            raise next(error for cell, error in failed.items() if f"({spec.symbol})" in cell and spec.source in cell)
        return made.artifact.payload

    return tuned.stale(rows, code_of)


def warn_of_stale(compiled: Iterable[Compiled], targets: Iterable[Target]) -> None:
    """One line for the user if entries that were compiled for these targets are stale. They are in the bundle all the
    same: they are right, but something else may be faster by now."""
    made = {(entry.spec.source, entry.spec.symbol): entry for entry in compiled}
    names = {target.name for target in targets}
    rows = [
        row
        for row in committed().tuned
        if row.target in names
        and any((source, spec.symbol) in made for source in row.sources for spec in row.entries(source))
    ]

    def code_of(spec: EntrySpec) -> bytes | None:
        entry = made.get((spec.source, spec.symbol))
        return entry.artifact.payload if entry is not None and entry.spec == spec else None

    if found := tuned.stale(rows, code_of):
        listed = "; ".join(row.row.name for row in found[:SHOWN])
        if len(found) > SHOWN:
            listed += f" and {len(found) - SHOWN} more: see tilestack tune --check"
        print(f"warning: tuned with other tools or kernels, so perhaps not the fastest: {listed}", file=sys.stderr)


def _has_gpu(target: Target) -> bool:
    from toolchain.runtime import gpus

    return any(gpu.target == target.name for gpu in gpus())
