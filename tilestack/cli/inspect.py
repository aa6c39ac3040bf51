"""`inspect`: what a compiled kernel uses of the GPU."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolchain.errors import UsageError

from .common.options import add_json, command, print_json, read

if TYPE_CHECKING:
    from toolchain.compiling.cubin import Usage

EXAMPLES = """\
  tilestack inspect gelu.cubin
  tilestack inspect build/bundle --target sm_90 --op linear
"""


def add(commands: Any) -> None:
    made = command(
        commands, "inspect", inspect_, "show registers, memory and instructions of a cubin or bundle", EXAMPLES
    )
    made.add_argument("path", type=Path, help="a .cubin, or a bundle's folder")
    made.add_argument("--target", metavar="SM", help="of a bundle: for this target (default: its first)")
    made.add_argument("--op", help="of a bundle: only this op")
    made.add_argument("--source", help="of a bundle: only this source")
    add_json(made)


def inspect_(args: argparse.Namespace) -> int:
    from toolchain import knobs
    from toolchain.caching.cache import Cache
    from toolchain.compiling.cubin import inspect_all

    sources, cubins = zip(*_cubins(args), strict=True)
    found = inspect_all(cubins, Cache(knobs.cache_dir()), knobs.jobs())
    rows = ((source, usage) for source, usages in zip(sources, found, strict=True) for usage in usages)
    if args.json:
        print_json([{"source": source, **asdict(usage)} for source, usage in rows])
        return 0
    columns = f"{'regs/thread':>11} {'shared bytes':>12} {'spill instrs':>12} {'instrs':>6}"
    heading = f"{'entry':40} {columns}  instrs of tensor cores and copy engine"
    for source, usage in rows:
        if heading:  # only with the first row, so that an error prints no empty table
            print(heading)
            heading = ""
        print(_line(source, usage), flush=True)
    return 0


def _line(source: str, usage: Usage) -> str:
    units = {**usage.tensor_core, **usage.copy_engine}
    listed = " ".join(f"{name}:{count}" for name, count in units.items()) or "none"
    listed += " (serialised)" if usage.serialised else ""
    name = f"{source} {usage.symbol}".strip()
    return f"{name:40} {usage.registers:11} {usage.shared:12} {usage.spills:12} {usage.instructions:6}  {listed}"


def _cubins(args: argparse.Namespace) -> list[tuple[str, bytes]]:
    from toolchain.bundles.bundle import Bundle
    from toolchain.compiling.cubin import is_cubin

    if not args.path.is_dir():
        data = read(args.path)
        if not is_cubin(data):
            raise UsageError(f"{args.path} is not a cubin", hint="tilestack assemble --target SM makes one")
        if given := [f"--{name}" for name in ("target", "op", "source") if getattr(args, name) is not None]:
            raise UsageError(f"{args.path} is one cubin: {', '.join(given)} select from a bundle")
        return [("", data)]
    bundle = Bundle.load(args.path)
    if not bundle.targets:
        raise UsageError(f"{args.path} holds bytecode only, no cubin", hint="compile it with a --target")
    target = args.target or bundle.targets[0]
    if target not in bundle.targets:
        raise UsageError(f"{args.path} has no cubins for {target}", hint=f"one of {', '.join(bundle.targets)}")
    entries = [entry for entry in bundle.entries if target in entry.cubins]
    chosen = [
        entry for entry in entries if args.op in (None, entry.spec.op) and args.source in (None, entry.spec.source)
    ]
    if not chosen:
        wanted = "/".join(name for name in (args.source, args.op) if name is not None)
        known = dict.fromkeys(f"{entry.spec.source}/{entry.spec.op}" for entry in entries)
        raise UsageError(f"{args.path} has no cubin of {wanted} for {target}", hint=f"it has {', '.join(known)}")
    return [(entry.spec.source, bundle.read(entry.cubins[target])) for entry in chosen]
