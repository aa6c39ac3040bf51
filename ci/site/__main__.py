"""`python -m ci.site [--generate] [--output DIR]`: builds the site of docs/ and checks it; a broken link is an error.

It reads nothing but this checkout, and the pages load nothing from elsewhere, so they can be opened from disk.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from sphinx.cmd.build import build_main

from toolchain import command
from toolchain.errors import UsageError
from toolchain.knobs import ROOT

from . import cute_reference, pictures, reference, results, stages
from .check import problems

OUTPUT = Path("build/site")


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m ci.site", description="Build and check the site of docs/.")
    made.add_argument("--output", type=Path, default=OUTPUT, metavar="DIR", help=f"default {OUTPUT}")
    made.add_argument("--generate", action="store_true", help="first write the pages that are made from the sources")
    return made


def build(docs: Path, output: Path) -> None:
    """Raises UsageError if a page has a warning, or if a link of the site leads nowhere."""
    if (output / "objects.inv").exists():  # made by Sphinx before: a page that is gone must not stay
        shutil.rmtree(output)
    if build_main(["-b", "html", "-W", "--keep-going", "-q", "-j", "2", str(docs), str(output)]):
        raise UsageError("the site has warnings, which stand above", hint="mend the pages that they name")
    if found := list(problems(output)):
        raise UsageError("\n  ".join(["links of the site that lead nowhere, or elsewhere:", *found]))


def main() -> int:
    return command.run(_main, set_up="nox -s build_toolchain")


def _main() -> None:
    args = parser().parse_args()
    if args.generate:
        for made in (cute_reference, pictures, reference, results, stages):
            made.write()
    build(ROOT / "docs", args.output)
    print(f"wrote {args.output}/index.html")


if __name__ == "__main__":
    sys.exit(main())
