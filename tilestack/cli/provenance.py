"""`provenance`: how a bundle was made, as a statement, and whether a statement is true."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolchain.errors import BundleError

from .common.options import SOURCES, command, emit, read

if TYPE_CHECKING:
    from toolchain.bundles.bundle import Bundle

PROVENANCE = """\
  tilestack provenance build/bundle -o build/bundle.intoto.json
  tilestack provenance --check build/bundle.intoto.json build/bundle
"""


def add(commands: Any) -> None:
    provenance = command(
        commands, "provenance", provenance_, "state how a bundle was made, or check such a statement", PROVENANCE
    )
    provenance.add_argument("bundle", type=Path, metavar="BUNDLE", help="folder of the bundle")
    provenance.add_argument("--check", type=Path, metavar="FILE", help="hold the bundle against this statement")
    provenance.add_argument("-o", "--output", type=Path, metavar="FILE", help="default: print it")


def provenance_(args: argparse.Namespace) -> int:
    from toolchain.bundles.bundle import Bundle
    from toolchain.provenance import statement

    if args.check is None:
        bundle = Bundle.load(args.bundle)
        made = statement.statement(bundle, statement.checkout(), _fingerprints(bundle))
        emit(args.output, statement.render(made))
        return 0
    rows = statement.check(statement.parse(read(args.check), str(args.check)), args.bundle)
    counts = Counter(row.status for row in rows)
    summary = ", ".join(f"{count} {status}" for status, count in counts.items())
    lines = [
        f"{row.status}: {row.name}"
        + (f": sha256 {row.found}, stated {row.expected}" if row.status == "mismatch" else "")
        for row in rows
        if row.status != "match"
    ]
    if lines:
        raise BundleError(
            "\n  ".join([f"{args.bundle} is not what {args.check} states: {summary}", *lines]),
            hint="get the bundle again from where the statement came from, or compile it again",
        )
    print(f"{args.bundle} is what {args.check} states: {summary}")
    return 0


def _fingerprints(bundle: Bundle) -> dict[tuple[str, str], str]:
    from toolchain.contract.sources import load_source

    sources = [load_source(module) for name, module in SOURCES.items() if name in bundle.sources]
    return {(source.name, spec.symbol): source.fingerprint(spec) for source in sources for spec in source.entries()}
