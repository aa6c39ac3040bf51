"""`pack`: one file of a bundle, to give away."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

from toolchain.errors import UsageError

from .common.options import STREAM, command, emit


def add(commands: Any) -> None:
    made = command(
        commands, "pack", pack, "make one file of a bundle, the same bytes each time",
        "  tilestack pack build/bundle -o bundle.tar.xz\n",
    )  # fmt: skip
    made.add_argument("bundle", type=Path, help="a bundle's folder")
    made.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FILE", help="the archive, a .tar.xz; - is standard output"
    )


def pack(args: argparse.Namespace) -> int:
    from toolchain.bundles import archive

    if args.output == STREAM:
        with tempfile.TemporaryDirectory(prefix="tilestack-") as folder:
            whole = Path(folder, f"bundle{archive.SUFFIX}")
            print(f"{archive.pack(args.bundle, whole)}  -", file=sys.stderr)
            emit(None, whole.read_bytes())
        return 0
    if not args.output.name.endswith(archive.SUFFIX):
        raise UsageError(f"{args.output}: the archive's name ends in {archive.SUFFIX}")
    sha256 = archive.pack(args.bundle, args.output)
    print(f"{sha256}  {args.output}")
    return 0
