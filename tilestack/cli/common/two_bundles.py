"""Two bundles on the command line, which are compared."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_bundles(made: argparse.ArgumentParser) -> None:
    made.add_argument("before", type=Path, metavar="BUNDLE_A", help="a bundle's folder, or what `tilestack pack` wrote")
    made.add_argument("after", type=Path, metavar="BUNDLE_B")
    made.add_argument("--target", metavar="SM", help="only this target")
