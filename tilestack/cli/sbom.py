"""`sbom`: what things are made of."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from .common.options import command, emit

SBOM = """\
  tilestack sbom toolchain -o build/toolchain.cdx.json
  tilestack sbom bundle build/bundle -o build/bundle.cdx.json
  tilestack sbom image base
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
    for made in (toolchain, bundle, image):
        made.add_argument("-o", "--output", type=Path, metavar="FILE", help="default: print it")


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
