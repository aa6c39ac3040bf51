"""Parses the command line and runs a command."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from . import LIBRARY

sys.path.insert(0, LIBRARY)  # a command finds ours first, whatever lies in the folder that it runs in

try:
    from toolchain import command

    from .cli import (
        assemble,
        bisect,
        cache,
        check,
        compile,
        completion,
        cute_opt,
        cute_run,
        diff,
        disassemble,
        doctor,
        draw_layout,
        export_cpp,
        fmt,
        gate,
        generate,
        init,
        inspect,
        interpret,
        licences,
        matrix,
        pack,
        provenance,
        quantize,
        record,
        report,
        reproduce,
        run,
        sbom,
        stack,
        time,
        tune,
        unpack,
        verify,
        verify_bundle,
    )  # fmt: skip
    from .cli.common.version import version
except KeyboardInterrupt:  # the first half second, before command.run() catches it
    print("interrupted", file=sys.stderr)
    sys.exit(130)

EPILOG = """\
commands that a newcomer may want first:
  tilestack doctor                                     what is installed here, and what to do
  tilestack generate "Once"                            write text with the GPT that comes with this repository
  tilestack compile --target sm_90                     compile the kernel sources to build/bundle
  tilestack matrix run --bundle build/bundle           check every kernel of a bundle, on a GPU or on the CPU
  tilestack run script.py                              run a cuTile program without a GPU
  tilestack verify kernels_mlir/layernorm.mlir         check a kernel file

where a file is read or written, - is standard input or standard output

exit codes:
  0 all well   2 bad input      3 kernel source or bytecode   4 toolchain   5 bundle
  6 launch     7 GPU or driver  8 undefined behaviour caught  9 a result outside its bound
  10 licences: one that is unknown, or a file that may not be given away
  1 anything else   130 interrupted   141 cut off: nobody reads the output   143 terminated
"""


COMMANDS = (
    compile, tune, assemble, disassemble, verify, interpret, fmt, inspect, diff, bisect, cute_opt, cute_run,
    draw_layout, export_cpp, pack, unpack, verify_bundle, run, generate, quantize, matrix, doctor, report, reproduce,
    cache, sbom, provenance, licences, stack, completion, init, check, record, time, gate,
)  # fmt: skip
SET_UP = "nox -s build_toolchain, then .toolchain/venv/bin/tilestack"


class ShowVersion(argparse.Action):
    """`--version`: looks it up only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        parser.exit(command.run(lambda: print(f"{parser.prog} {version()}"), set_up=SET_UP))


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = argparse.ArgumentParser(
        prog="tilestack",
        description="Compile, check and run GPU kernels written in CUDA Tile IR.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action=ShowVersion, nargs=0, help="show the version and end")
    top.add_argument("--debug", action="store_true", help="show a traceback with an error")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for each in COMMANDS:
        each.add(commands)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit code."""
    command.settle_streams()
    try:
        args = _parse(argv)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    args.words = ["tilestack", *(sys.argv[1:] if argv is None else argv)]
    return command.run(lambda: args.run(args), set_up=SET_UP, debug=args.debug)


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    top = parser()
    try:
        args = top.parse_args(argv)
        args.parser = top
        return args
    except SystemExit:  # --help was printed, or the words do not parse
        try:
            sys.stdout.flush()
        except BrokenPipeError:
            command.forget_output()
        raise


if __name__ == "__main__":
    sys.exit(main())
