"""`verify-bundle`: whether a published bundle is what its sources make."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolchain import knobs
from toolchain.compiling.progress import progress_bar
from toolchain.errors import BundleError, UsageError

from .common.options import SOURCES, add_json, as_file, command, print_json

if TYPE_CHECKING:
    from toolchain.bundles.bundle import Bundle
    from toolchain.compiling.rebuild import Verification

VERIFY = """\
  tilestack verify-bundle build/bundle                 make every file again and compare
  tilestack verify-bundle bundle.tar.xz --target sm_90 --json
  tilestack verify-bundle build/bundle --only linear_128x128x64_bf16 mlir/gelu_1024_f32
"""


def add(commands: Any) -> None:
    made = command(commands, "verify-bundle", verify, "make a published bundle again and compare every file", VERIFY)
    made.add_argument("bundle", type=Path, help="a bundle's folder, or what `tilestack pack` made of it")
    made.add_argument("--only", nargs="+", default=[], metavar="ENTRY", help="only these, as SYMBOL or SOURCE/SYMBOL")
    made.add_argument("--target", action="append", default=[], metavar="SM", help="only this target's cubins; repeat")
    made.add_argument("--jobs", type=int, help="how many compiles run at once (default: the CPU cores)")
    made.add_argument("--files", action="store_true", help="list the files that match, too")
    add_json(made)


def verify(args: argparse.Namespace) -> int:
    from toolchain.compiling import rebuild

    if args.jobs is not None and args.jobs < 1:
        raise UsageError(f"--jobs {args.jobs}: at least one")
    started = time.perf_counter()
    with _opened(args.bundle) as bundle:
        wanted = rebuild.choose(bundle, SOURCES, args.only, args.target)
        found = rebuild.differences(bundle, wanted)
        for line in found:
            print(f"differs here: {line}", file=sys.stderr)
        if found:
            print("a mismatch is to be expected where these had a part", file=sys.stderr, flush=True)
        with progress_bar() as progress:
            result = rebuild.verify(bundle, wanted, found, jobs=args.jobs or knobs.jobs(), progress=progress)
    for failure in result.failures:
        print(f"failed: {failure.cell}\n{failure.error}\n", file=sys.stderr)
    seconds = time.perf_counter() - started
    if args.json:
        print_json({
            "bundle": str(args.bundle), "matches": result.matches, "part": result.part,
            "differences": list(result.differences), "counts": result.counts, "seconds": round(seconds, 2),
            "files": [asdict(row) for row in result.rows],
        })  # fmt: skip
    else:
        _show(args.bundle, result, seconds, every=args.files)
    sys.stdout.flush()
    if not result.matches:
        counted = ", ".join(f"{count} {status}" for status, count in result.counts.items() if count)
        raise BundleError(
            f"{args.bundle} differs from what this checkout builds: {counted}",
            hint="compare with the checkout and the toolchain that it was made with"
            if result.differences
            else "tools and sources are those of the bundle: do not trust it, or find what is not reproducible with "
            "`nox -s reproduce`",
        )
    return 0


@contextmanager
def _opened(path: Path) -> Generator[Bundle]:
    from toolchain.bundles import archive
    from toolchain.bundles.bundle import Bundle

    if path.is_dir():
        yield Bundle.load(path)
        return
    with as_file(path) as whole, tempfile.TemporaryDirectory(prefix="tilestack-") as folder:
        yield archive.unpack(whole, Path(folder) / "bundle")


def _show(path: Path, result: Verification, seconds: float, *, every: bool) -> None:
    from rich.console import Console
    from rich.table import Table

    from toolchain.compiling.rebuild import STATUSES

    for row in result.rows:
        if every or row.status != "match":
            name = f"{row.what} {row.kind}: {row.file}" if row.what else row.file
            print(f"{row.status:8} {name}" + (f": {row.detail}" if row.detail else ""))
    table = Table("files", *STATUSES)
    for kind in dict.fromkeys(row.kind for row in result.rows):
        counts = [sum((row.kind, row.status) == (kind, status) for row in result.rows) for status in STATUSES]
        table.add_row(kind, *(str(count or "") for count in counts))
    Console(highlight=False).print(table)
    scope = "the part of it that was asked for" if result.part else "all of it"
    print(f"{path}: {result.counts['match']} of {len(result.rows)} files match, {scope}, {seconds:.1f} s")
