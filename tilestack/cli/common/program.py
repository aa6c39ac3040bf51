"""Runs somebody's Python program in this process, as `python` would."""

from __future__ import annotations

import argparse
import runpy
import sys
from pathlib import Path
from types import TracebackType

from toolchain import emulation, knobs
from toolchain.emulation.settings import DEFAULT_TARGET, Settings
from toolchain.errors import TilestackError, UsageError

from ...names import give_way

_OURS = {str(knobs.ROOT / name) for name in ("toolchain", "tilestack")}
CHILD = Path(emulation.__file__).parent / "child"


def run(args: argparse.Namespace) -> int:
    """Runs the script or the module of a command line, with the kernels of its launches on the interpreter. Returns the
    exit code of what it raises; its own SystemExit passes. Raises UsageError."""
    if not args.script and not args.module:
        raise UsageError("no program to run", hint="tilestack run script.py, or tilestack run -m module")
    settings = Settings(args.target or DEFAULT_TARGET, not args.no_sanitize, args.padding)
    emulation.start(settings)
    knobs.interpret_children(settings.text(), CHILD)
    name, *own = args.module or [args.script, *args.arguments]
    if args.script and not Path(name).exists():
        raise UsageError(f"there is no file {name}")
    if args.script and Path(name).is_dir() and not Path(name, "__main__.py").is_file():
        raise UsageError(f"{name} is a folder without a __main__.py", hint="name the file that is to be run")
    sys.argv = [name, *own]
    folder = Path.cwd() if args.module else Path(name).resolve().parent
    give_way(folder)
    # In the place of ours, which __main__ put first, and of the command's own folder.
    sys.path[: 1 if sys.flags.safe_path else 2] = ["" if args.module else str(folder)]
    try:
        if args.module:
            runpy.run_module(name, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(name, run_name="__main__")
    except Exception as error:  # noqa: BLE001 - the program's, reported as Python does
        shown = error.with_traceback(_of_program(error.__traceback__))
        sys.excepthook(type(shown), shown, shown.__traceback__)
        return error.exit_code if isinstance(error, TilestackError) else 1
    return 0


def _of_program(trace: TracebackType | None) -> TracebackType | None:
    """A traceback without the entries of our modules and of what runs a program, at the beginning and in between."""
    if trace is None:
        return None
    rest = _of_program(trace.tb_next)
    file = trace.tb_frame.f_code.co_filename
    if file.startswith("<frozen runpy") or any(file.startswith(folder) for folder in _OURS):
        return rest
    trace.tb_next = rest
    return trace
