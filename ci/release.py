"""What a release consists of: `nox -s release_files`.

The wheel, each bundle packed, with its SBOM and provenance, and SHA256SUMS of all. The files are the same bytes each
time that they are made of the same commit and bundles.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from toolchain import command
from toolchain.bundles.bundle import MANIFEST
from toolchain.bundles.checkout import COMMIT
from toolchain.errors import ToolchainError, UsageError
from toolchain.files import write_whole
from toolchain.knobs import ROOT
from toolchain.pinned.manifest import REPAIR

OUTPUT = Path("build/release")
SUMS = "SHA256SUMS"


def files_of(bundle: Path, output: Path) -> None:
    """Pack one bundle, and write its SBOM and provenance beside it. Raises ToolchainError.

    The note of the commit stays out: the provenance names it.
    """
    name = output / bundle.name
    with tempfile.TemporaryDirectory(prefix="tilestack-release-") as folder:
        plain = Path(folder) / bundle.name
        shutil.copytree(bundle, plain, ignore=shutil.ignore_patterns(COMMIT))
        for words in (
            ["pack", plain, "-o", f"{name}.tar.xz"],
            ["sbom", "bundle", plain, "-o", f"{name}.cdx.json"],
            ["provenance", plain, "-o", f"{name}.intoto.json"],
        ):
            run([sys.executable, "-m", "tilestack", *words])


def run(words: Sequence[str | Path]) -> None:
    """Run a command in the checkout. Raises ToolchainError if it fails."""
    if code := subprocess.run([str(word) for word in words], cwd=ROOT, check=False).returncode:
        raise ToolchainError(f"exit code {code} from: {' '.join(map(str, words))}", hint="what it said stands above")


def sums(folder: Path) -> str:
    """The lines of SHA256SUMS, as `sha256sum --check` reads them."""
    paths = sorted(path for path in folder.iterdir() if path.name != SUMS)
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in paths)


def make(bundles: Sequence[Path], output: Path, uv: Path) -> None:
    """Make all files in `output`, which must not exist yet. Raises UsageError before anything is written."""
    if missing := [str(path) for path in bundles if not (path / MANIFEST).is_file()]:
        raise UsageError(f"no bundle in {', '.join(missing)}", hint="nox -s bundles -- --target sm_90 compiles one")
    if output.exists():
        raise UsageError(f"{output} exists: a release begins with an empty folder", hint=f"remove {output}")
    output.mkdir(parents=True)
    try:
        run([uv, "build", "--quiet", "--wheel", "--no-build-isolation", "--out-dir", output, ROOT])
        (output / ".gitignore").unlink(missing_ok=True)  # uv's
        for bundle in bundles:
            files_of(bundle.absolute(), output)
        write_whole(output / SUMS, sums(output))
    except BaseException:
        shutil.rmtree(output)
        raise
    print(sums(output), end="")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="nox -s release_files --")
    parser.add_argument("bundles", nargs="+", type=Path, metavar="BUNDLE", help="a bundle's folder; names its files")
    parser.add_argument("--output", type=Path, default=OUTPUT, metavar="DIR", help=f"default {OUTPUT}")
    parser.add_argument("--uv", type=Path, default=Path("uv"), help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    return command.run(lambda: make(args.bundles, args.output.absolute(), args.uv), set_up=REPAIR)


if __name__ == "__main__":
    sys.exit(main())
