"""The measuring half of tuning as a command, with its options. It works on a folder that the compiling half wrote.

`tilestack tune` and `python -m tune` share it.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path


def add_measuring(parser: argparse.ArgumentParser) -> None:
    """The options of measuring."""
    parser.add_argument(
        "--classes", type=pattern, metavar="REGEX", help="only shape classes whose name has a match, such as '^m64$'"
    )
    parser.add_argument(
        "--baseline", type=Path, metavar="DIR",
        help="a bundle to check large shapes against, and nothing else (default: the source's own entries)",
    )  # fmt: skip
    parser.add_argument("--measured", type=Path, metavar="FILE", help="default: measured.json in the folder")
    parser.add_argument("--executor", default="cuda", help="cuda, cuda:N; cpu tries the search out, its times are none")
    parser.add_argument("--timeout", type=seconds, default=60.0, metavar="S", help="of one variant (default 60)")
    parser.add_argument(
        "--stop-after",
        type=seconds,
        default=float("inf"),
        metavar="S",
        help="then start nothing more; run again to go on",
    )


def pattern(text: str) -> re.Pattern[str]:
    """An argparse type."""
    try:
        return re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a regular expression: {error}") from error


def seconds(text: str) -> float:
    """An argparse type: a time above 0."""
    try:
        value = float(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds") from error
    if not value > 0:
        raise argparse.ArgumentTypeError(f"{text}: it must be above 0")
    return value


def measure(
    folder: Path, args: argparse.Namespace, what: str, spaces: Collection[str], say: Callable[[str], object]
) -> bool:
    """Measure the variants in a folder that are not measured yet: see Catalogue.only. Returns True if none is left."""
    # Imported here, because they need packages that a machine without a GPU may lack.
    from toolchain.bundles.bundle import Bundle

    from .bench import GpuBench, Setup
    from .catalogue import OWN, VARIANTS, Catalogue
    from .measure import Run
    from .measured import FILE, Launched, Measured
    from .worker import Worker

    catalogue = Catalogue.load(folder).only(what, args.classes, spaces)
    measured = Measured.load(args.measured or folder / FILE, catalogue.target)
    launched = Launched.load(folder, catalogue)
    if args.baseline:
        Bundle.load(args.baseline)  # report its errors here, before the process that launches is started
    setup = Setup(folder / VARIANTS, folder / OWN, args.executor, baseline=args.baseline)
    with Worker(partial(GpuBench, setup), args.timeout) as worker:
        return Run(catalogue, launched, measured, worker, say, args.stop_after).run()
