"""The measuring half as a command, on a folder that the compiling half wrote."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path

from toolchain.bundle import Bundle

from .bench import GpuBench, Setup
from .catalogue import OWN, VARIANTS, Catalogue
from .launched import Launched
from .measure import Run
from .measured import FILE, Measured
from .worker import Worker


def measure(folder: Path, args: argparse.Namespace, what: str, say: Callable[[str], object]) -> bool:
    """Measures what was compiled to a folder, as far as it is not measured yet; whether all of it is now."""
    catalogue = Catalogue.load(folder).only(what, args.classes)
    measured = Measured.load(args.measured or folder / FILE, catalogue.target)
    launched = Launched.load(folder, catalogue)
    if args.baseline:
        Bundle.load(args.baseline)  # what is wrong with it is better said here than by the process that launches
    setup = Setup(folder / VARIANTS, folder / OWN, args.executor, baseline=args.baseline)
    with Worker(partial(GpuBench, setup), args.timeout) as worker:
        return Run(catalogue, launched, measured, worker, say, args.stop_after).run()
