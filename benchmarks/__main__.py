"""`python -m benchmarks [gpu | cpu | list | merge | table | plot | stamp]`; the default is gpu on a machine with a GPU,
else cpu."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from toolchain import command
from toolchain.errors import ToolchainError, UsageError

from . import cpu
from .cases.cases import CASES, DEFAULT_GROUPS, GROUPS
from .cases.options import PEERS, Options

BUNDLE, OUTPUT = Path("build/bundle"), Path("build/bench")
SET_UP = "nox -s build_toolchain, then .toolchain/venv/bin/python -m benchmarks; for a GPU see docs/benchmarks.md"
EXAMPLES = """\
examples:
  python -m benchmarks gpu --only forward,decode --peers eager,graph
  python -m benchmarks gpu --only ops --case "linear_gelu .*K=768 N=3072" --peers graph,compile --limit 120
  python -m benchmarks gpu --bundle build/bundle --against before=/tmp/before --peers '' --only ops --at-least 0.98
  python -m benchmarks merge build/bench/nvidia-h200.json compiled.json --output benchmarks/results/nvidia-h200.json
  python -m benchmarks plot benchmarks/results/nvidia-h200.json --output docs/benchmarks
"""


def _list_of(known: Sequence[str], *, none: bool = False) -> Callable[[str], list[str]]:
    """`none`: whether an empty list is one."""

    def parse(text: str) -> list[str]:
        names = [name for name in text.split(",") if name]
        if unknown := [name for name in names if name not in known]:
            raise argparse.ArgumentTypeError(f"no {', '.join(unknown)}: choose from {','.join(known)}")
        if not names and not none:
            raise argparse.ArgumentTypeError(f"{text!r} names nothing: choose from {','.join(known)}")
        return names

    return parse


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a regular expression: {error}") from error


def _named(text: str) -> tuple[str, Path]:
    """NAME=DIR, or DIR, whose last part is then the name."""
    word = r"[\w.+-]+"
    found = re.fullmatch(rf"(?:({word})=)?(.+)", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a folder")
    path = Path(found[2])
    name = found[1] or path.resolve().name
    if not re.fullmatch(word, name):
        raise argparse.ArgumentTypeError(f"{text!r} needs a name of one word: NAME={path}")
    return name, path


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return int(text)


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="python -m benchmarks", epilog=EXAMPLES,
        description="Measure the speed of kernels, model and toolchain: see docs/benchmarks.md.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    commands = top.add_subparsers(title="commands", metavar="COMMAND")
    top.set_defaults(run=_auto, words=())
    gpu = commands.add_parser("gpu", help="ours beside PyTorch's, on a GPU; needs PyTorch")
    gpu.add_argument("--bundle", type=Path, default=BUNDLE, metavar="DIR", help=f"default {BUNDLE}")
    gpu.add_argument("--output", type=Path, default=OUTPUT, metavar="DIR", help=f"default {OUTPUT}")
    gpu.add_argument(
        "--only", type=_list_of(GROUPS), default=list(DEFAULT_GROUPS),
        help=f"of {','.join(GROUPS)}; default {','.join(DEFAULT_GROUPS)}",
    )  # fmt: skip
    gpu.add_argument("--case", type=_pattern, default=re.compile(""), metavar="REGEX", help="only cases with a match")
    gpu.add_argument("--samples", type=_count, default=30, help="of each contender (default 30)")
    gpu.add_argument("--sources", type=lambda text: text.split(","), default=[], help="default: all of the bundle")
    gpu.add_argument(
        "--peers", type=_list_of(PEERS, none=True), default=list(PEERS), help=f"of {','.join(PEERS)}; '' for none"
    )
    gpu.add_argument(
        "--against", type=_named, action="append", default=[], metavar="[NAME=]DIR",
        help="another bundle, whose kernels take turns with this one's; repeat",
    )  # fmt: skip
    gpu.add_argument(
        "--at-least", type=float, default=0.0, metavar="RATIO",
        help="exit with 1 if the time of --against over ours lies below it, the whole 95 %% interval",
    )  # fmt: skip
    gpu.add_argument("--limit", type=float, default=300.0, metavar="S", help="seconds for one peer (default 300)")
    gpu.add_argument("--stop-after", type=float, default=0.0, metavar="S", help="begin no case after so many seconds")
    gpu.add_argument("--tree", type=json.loads, default={}, help=argparse.SUPPRESS)  # of a run's own processes
    gpu.set_defaults(run=_gpu)
    on_cpu = commands.add_parser("cpu", help="the interpreter and the compiler, on a CPU")
    on_cpu.add_argument("--output", type=Path, default=OUTPUT, metavar="DIR", help=f"default {OUTPUT}")
    on_cpu.add_argument("--only", type=_list_of(cpu.PARTS), default=list(cpu.PARTS), help=f"of {','.join(cpu.PARTS)}")
    on_cpu.add_argument(
        "--target", action="append", default=[], metavar="SM", help="default: the default targets; repeat"
    )
    on_cpu.add_argument("--repeats", type=_count, default=3, help="default 3")
    on_cpu.set_defaults(run=_cpu)
    commands.add_parser("list", help="all cases with their least work").set_defaults(run=_list)
    merged = commands.add_parser("merge", help="one file of several runs of one GPU, driver, commit and bundle")
    merged.add_argument("results", type=Path, nargs="+")
    merged.add_argument("-o", "--output", type=Path, required=True, metavar="FILE")
    merged.set_defaults(run=_merge)
    shown = commands.add_parser("table", help="results as text")
    shown.add_argument("results", type=Path)
    shown.set_defaults(run=_table)
    plots = commands.add_parser("plot", help="results as SVG pictures")
    plots.add_argument("results", type=Path)
    plots.add_argument("--output", type=Path, default=OUTPUT, metavar="DIR", help=f"default {OUTPUT}")
    plots.set_defaults(run=_plot)
    stamped = commands.add_parser("stamp", help="note this checkout's commit in a bundle, for a machine without git")
    stamped.add_argument("--bundle", type=Path, default=BUNDLE, metavar="DIR", help=f"default {BUNDLE}")
    stamped.set_defaults(run=_stamp)
    return top


def _auto(_: argparse.Namespace) -> int:
    """With a GPU: compile the kernels that it needs, then measure. Without one: measure the CPU part."""
    from toolchain.runtime import gpus

    found = gpus()
    if not found:
        print("no GPU found: measuring the interpreter and the compiler", flush=True)
        return _cpu(parser().parse_args(["cpu"]))
    words = [sys.executable, "-m", "tilestack", "compile", "--target", found[0].target, "--output", str(BUNDLE)]
    if code := subprocess.run(words, check=False).returncode:
        return code
    return main(["gpu"])


def _gpu(args: argparse.Namespace) -> int:
    wanted = options(args)
    try:
        from . import gpu
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ToolchainError(
            f"{sys.executable} has no PyTorch, and the results are compared with PyTorch's",
            hint="run `python -m benchmarks gpu` with a Python that has PyTorch",
        ) from error
    return gpu.run(wanted)


def options(args: argparse.Namespace) -> Options:
    """The options of `gpu`. Raises UsageError for options that contradict each other."""
    names = [name for name, _ in args.against]
    if twice := [name for name in names if names.count(name) > 1]:
        raise UsageError(f"two bundles called {twice[0]}", hint="--against NAME=DIR gives one another name")
    if args.at_least and not names:
        raise UsageError(f"--at-least {args.at_least:g} compares with another bundle", hint="say which: --against DIR")
    return Options(
        bundle=args.bundle, output=args.output, only=args.only, case=args.case, samples=args.samples,
        sources=args.sources, peers=args.peers, limit_s=args.limit, stop_after_s=args.stop_after, tree=args.tree,
        against=dict(args.against), at_least=args.at_least, words=args.words,
    )  # fmt: skip


def _cpu(args: argparse.Namespace) -> int:
    return cpu.run(cpu.Options(args.output, args.only, args.target, args.repeats))


def _list(_: argparse.Namespace) -> int:
    for case in CASES:
        work = case.work()
        print(f"{case.name:55} {work.nbytes / 1e6:10.1f} MB {work.flops / 1e9:12.1f} GFLOP")
    return 0


def _merge(args: argparse.Namespace) -> int:
    from .report.result import Results, merge

    merged = merge([Results.load(path) for path in args.results], [str(path) for path in args.results])
    merged.save(args.output)
    print(f"wrote {args.output}: {len(merged.rows)} rows")
    return 0


def _table(args: argparse.Namespace) -> int:
    from .report.result import Results
    from .report.table import table

    print(table(Results.load(args.results)))
    return 0


def _plot(args: argparse.Namespace) -> int:
    from .report.plots import write_plots
    from .report.result import Results

    for path in write_plots(Results.load(args.results), args.output):
        print(f"wrote {path}")
    return 0


def _stamp(args: argparse.Namespace) -> int:
    from toolchain.bundles.checkout import stamp

    print(f"wrote {stamp(args.bundle)}")
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command. Returns its exit code."""
    command.settle_streams()
    args = parser().parse_args(argv)
    args.words = ["python", "-m", "benchmarks", *(sys.argv[1:] if argv is None else argv)]
    return command.run(lambda: args.run(args), set_up=SET_UP)


if __name__ == "__main__":
    sys.exit(main())
