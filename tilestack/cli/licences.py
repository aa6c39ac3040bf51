"""`licences`: what may be given away."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from .common.options import add_json, command, print_json

LICENCES = """\
  tilestack licences                                   every package of requirements.lock
  tilestack licences check dist/tilestack.whl image.tar build/bundle
"""


def add(commands: Any) -> None:
    licences = command(commands, "licences", licences_, "list the licence of every package and its use", LICENCES)
    add_json(licences)
    actions = licences.add_subparsers(title="actions", metavar="ACTION")
    check = command(actions, "check", check_, "look for files that may not be given away", LICENCES)
    check.add_argument(
        "artefacts", nargs="+", type=Path, metavar="ARTEFACT", help="wheel, sdist, tar, zip, image or folder"
    )


def licences_(args: argparse.Namespace) -> int:
    from toolchain.provenance.inventory import inventory
    from toolchain.provenance.licences import licences, load_policy

    rows = licences(inventory(), load_policy()).values()
    if args.json:
        print_json([
            {"package": row.package, "version": row.version, "licence": row.expression, "source": row.source,
             "use": sorted(row.use)} for row in rows
        ])  # fmt: skip
        return 0
    for row in rows:
        use = " and ".join(sorted(row.use, reverse=True))
        print(f"{row.package:28} {row.version:12} {use:17} {row.expression}  (from {row.source})")
    return 0


def check_(args: argparse.Namespace) -> int:
    from toolchain.provenance.artefacts import load_rules, require_clean
    from toolchain.provenance.inventory import inventory
    from toolchain.provenance.licences import load_policy

    rules = load_rules(inventory(), load_policy())
    for artefact in args.artefacts:
        require_clean(artefact, rules)
        print(f"{artefact}: nothing in it that may not be given away", flush=True)
    return 0
