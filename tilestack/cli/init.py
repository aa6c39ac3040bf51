"""`init`: write a small repository with a kernel of your own, and CI for it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from toolchain.errors import UsageError
from toolchain.knobs import ROOT
from toolchain.pinned.manifest import CHECKOUT

from .common.options import command
from .common.version import version

INIT = """\
  tilestack init kernels                                      it installs this very tilestack
  tilestack init kernels --from someone/tilestack@v1.2.3      installs it from GitHub, and calls its workflow
"""
UNKNOWN = "OWNER/tilestack"


def add(commands: Any) -> None:
    made = command(commands, "init", init, "write a repository with a kernel of your own and CI for it", INIT)
    made.add_argument("folder", type=Path, metavar="DIR", help="empty, or not there yet")
    made.add_argument("--from", dest="origin", default="", metavar="OWNER/NAME@REF", help="of the tilestack to install")


def init(args: argparse.Namespace) -> None:
    from ..own.new import WORKFLOW, write

    repository, _, ref = args.origin.partition("@")
    if args.origin and (repository.count("/") != 1 or not ref):
        raise UsageError(f"{args.origin}: it is no OWNER/NAME@REF", hint="someone/tilestack@v1.2.3")
    here = f" @ file://{ROOT}" if CHECKOUT else f"=={version().split()[0]}"
    place = f" @ git+https://github.com/{repository}@{ref}" if args.origin else here
    written = write(args.folder, place, repository or UNKNOWN, ref or "main")
    print(f"wrote {len(written)} files to {args.folder}: {', '.join(written)}")
    if not args.origin:
        print(f"put tilestack's place at GitHub into {args.folder}/.github/workflows/ci.yml: {UNKNOWN}/{WORKFLOW}")
    print(f"next: cd {args.folder}, and the two lines of README.md")
