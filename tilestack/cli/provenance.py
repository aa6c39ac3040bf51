"""`sbom`, `provenance` and `licences`: what things are made of, how they were made, and what may be given away."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolchain.errors import BundleError

from .common.options import SOURCES, add_json, command, emit, print_json, read

if TYPE_CHECKING:
    from toolchain.bundles.bundle import Bundle

SBOM = """\
  tilestack sbom toolchain -o build/toolchain.cdx.json
  tilestack sbom bundle build/bundle -o build/bundle.cdx.json
  tilestack sbom image base
"""
PROVENANCE = """\
  tilestack provenance build/bundle -o build/bundle.intoto.json
  tilestack provenance --check build/bundle.intoto.json build/bundle
"""
LICENCES = """\
  tilestack licences                                   every package of requirements.lock
  tilestack licences check dist/tilestack.whl image.tar build/bundle
"""


def add(commands: Any) -> None:
    sbom = command(commands, "sbom", None, "write an SBOM, CycloneDX 1.6 JSON", SBOM)
    of = sbom.add_subparsers(title="of what", metavar="WHAT", required=True)
    toolchain = command(of, "toolchain", toolchain_, "list the installed wheels and the tools", SBOM)
    toolchain.add_argument(
        "--native", type=Path, metavar="FILE", help="CycloneDX file of the native toolchain, to be merged in"
    )
    bundle = command(of, "bundle", bundle_, "list the files of a bundle and what made them", SBOM)
    bundle.add_argument("bundle", type=Path, metavar="DIR", help="folder of the bundle")
    image = command(of, "image", image_, "list the Debian packages of a container image", SBOM)
    image.add_argument("name", metavar="NAME", help="its name in containers/packages.lock")
    provenance = command(
        commands, "provenance", provenance_, "state how a bundle was made, or check such a statement", PROVENANCE
    )
    provenance.add_argument("bundle", type=Path, metavar="BUNDLE", help="folder of the bundle")
    provenance.add_argument("--check", type=Path, metavar="FILE", help="hold the bundle against this statement")
    for made in (toolchain, bundle, image, provenance):
        made.add_argument("-o", "--output", type=Path, metavar="FILE", help="default: print it")
    licences = command(commands, "licences", licences_, "list the licence of every package and its use", LICENCES)
    add_json(licences)
    actions = licences.add_subparsers(title="actions", metavar="ACTION")
    check = command(actions, "check", check_, "look for files that may not be given away", LICENCES)
    check.add_argument(
        "artefacts", nargs="+", type=Path, metavar="ARTEFACT", help="wheel, sdist, tar, zip, image or folder"
    )


def toolchain_(args: argparse.Namespace) -> int:
    from toolchain.provenance.inventory import inventory
    from toolchain.provenance.licences import licences, load_policy
    from toolchain.provenance.sbom import toolchain_sbom

    wheels = inventory()
    emit(args.output, toolchain_sbom(wheels, licences(wheels, load_policy()), args.native))
    return 0


def bundle_(args: argparse.Namespace) -> int:
    from toolchain.bundles.bundle import Bundle
    from toolchain.provenance.sbom import bundle_sbom

    emit(args.output, bundle_sbom(Bundle.load(args.bundle)))
    return 0


def image_(args: argparse.Namespace) -> int:
    from toolchain.provenance.sbom import image_packages, image_sbom

    emit(args.output, image_sbom(args.name, image_packages(args.name)))
    return 0


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
    from toolchain.compiling.pipeline import load_source

    sources = [load_source(module) for name, module in SOURCES.items() if name in bundle.sources]
    return {(source.name, spec.symbol): source.fingerprint(spec) for source in sources for spec in source.entries()}


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
