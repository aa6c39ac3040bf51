"""`verify`: is a file of Tile IR, text or bytecode, right?"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from toolchain.errors import SourceError, TilestackError, UsageError

from .common.options import STREAM, add_json, command, print_json, read, source_name


def add(commands: Any) -> None:
    verify = command(
        commands, "verify", verify_, "check Tile IR text or bytecode",
        "  tilestack verify kernels_mlir/*.mlir         every error of every file\n"
        "  tilestack verify kernels_mlir/gelu.mlir --json\n",
    )  # fmt: skip
    verify.add_argument("files", type=Path, nargs="+", metavar="file", help=".mlir or .tilebc; - for standard input")
    add_json(verify)


def verify_(args: argparse.Namespace) -> int:
    from toolchain.tileir.check import Checked, as_json, check_file

    rows: list[dict[str, Any]] = []
    errors: dict[str, TilestackError] = {}  # a wrong part of a folder's kernels is found from each of its files
    for path in args.files:
        name = source_name(path)
        try:
            checked = check_file(read(path), name, None if path == STREAM else path)
        except UsageError as error:  # it cannot be read
            checked = Checked([], [error])
        if args.debug and checked.errors:
            raise checked.errors[0]
        rows.append({"file": name, "entries": list(checked.entries), "errors": [as_json(e) for e in checked.errors]})
        for error in checked.errors:
            if str(error) not in errors and not args.json:
                print(f"error: {error}", file=sys.stderr)
            errors[str(error)] = error
        if not checked.errors and not args.json:
            listed = ", ".join(f"@{symbol}" for symbol in checked.entries) or "no entries"
            print(f"{name}: ok: {listed}")
    wrong = sum(bool(row["errors"]) for row in rows)
    if args.json:
        print_json({"files": rows, "wrong": wrong})
    elif len(rows) > 1 or len(errors) > 1:
        counted = f"{len(errors)} error{'s' * (len(errors) != 1)}" if wrong else "no error"
        print(f"{len(rows)} files, {counted}" + f" in {wrong} of them" * (wrong > 0) if len(rows) > 1 else counted,
              file=sys.stderr)  # fmt: skip
    codes = {error.exit_code for error in errors.values()}
    return SourceError.exit_code if SourceError.exit_code in codes else max(codes, default=0)
