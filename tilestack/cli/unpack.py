"""`unpack`: a bundle of a file that `pack` made, each file checked."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from .common.options import as_file, command


def add(commands: Any) -> None:
    made = command(
        commands, "unpack", unpack, "make a bundle of a file that `pack` made, each file checked",
        "  tilestack unpack bundle.tar.xz -o build/bundle\n",
    )  # fmt: skip
    made.add_argument("archive", type=Path, help="what `tilestack pack` made; - is standard input")
    made.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="the bundle's folder")


def unpack(args: argparse.Namespace) -> int:
    from toolchain.bundles import archive

    with as_file(args.archive) as whole:
        bundle = archive.unpack(whole, args.output)
    print(f"{args.output}: {len(bundle.entries)} entries for {', '.join(bundle.targets) or 'no target'}")
    return 0
