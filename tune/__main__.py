"""`python -m tune measure DIR`, `python -m tune fastest DIR`: the measuring halves of `tilestack tune`, for a machine
without the compiler."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from toolchain.errors import TilestackError, ToolchainError

from .command import add_measuring
from .spaces import MODEL, load_spaces

OURS = frozenset({"gpt", "toolchain"})
SET_UP = "install numpy, ml_dtypes and cuda-bindings for it"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command. Returns its exit code: 0, 1 if measurements are still missing, or that of an error."""
    parser = argparse.ArgumentParser(prog="python -m tune", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    made = commands.add_parser("measure", help="measure what `tilestack tune --phase compile` wrote")
    made.add_argument("folder", type=Path, metavar="DIR", help="what --output was")
    made.add_argument("--op", default=MODEL, help="only this op or model (default: all that was compiled)")
    add_measuring(made)
    made.set_defaults(run="measure")
    other = commands.add_parser("fastest", help="measure what `tilestack tune fastest --phase compile` wrote")
    other.add_argument("folder", type=Path, metavar="DIR", help="what --output was")
    add_measuring(other)
    other.set_defaults(run="fastest")
    args = parser.parse_args(argv)
    try:
        # Imported here, so that a missing package gets the message below.
        if args.run == "fastest":
            from . import fastest, fastest_rows

            say, pick = partial(print, flush=True), partial(fastest_rows.picks_of, wanted=fastest.classes()[1])
            return int(not fastest.measure(args.folder, args.executor, args.timeout, args.stop_after, say, pick))
        from .command import measure

        spaces = load_spaces().models.get(args.op, ())
        return int(not measure(args.folder, args, args.op, spaces, partial(print, flush=True)))
    except TilestackError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in OURS:
            raise
        print(f"error: measuring needs {error.name}, which {sys.executable} lacks\n  next: {SET_UP}", file=sys.stderr)
        return ToolchainError.exit_code
    except OSError as error:  # a full disk, or a folder without write permission
        print(f"error: {error}\n  next: run it again to go on", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted: run it again to go on", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
