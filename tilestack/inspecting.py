"""`inspect`: what a compiled kernel uses of the GPU."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

from toolchain.errors import UsageError

from .options import add_json, command, print_json, read

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
    from toolchain.cubin import inspect

    rows: list[dict[str, Any]] = []
    for source, cubin in _cubins(args):
        rows += [{"source": source, **asdict(usage)} for usage in inspect(cubin)]
    if args.json:
        print_json(rows)
        return 0
    print(f"{'entry':40} {'regs':>4} {'shared':>7} {'spills':>6} {'instr':>6}  tensor cores, copy engine")
    for row in rows:
        units = {**row["tensor_core"], **row["copy_engine"]}
        listed = " ".join(f"{name}:{count}" for name, count in units.items()) or "none"
        listed += " (serialised)" if row["serialised"] else ""
        name = f"{row['source']} {row['symbol']}".strip()
        print(f"{name:40} {row['registers']:4} {row['shared']:7} {row['spills']:6} {row['instructions']:6}  {listed}")
    return 0


def _cubins(args: argparse.Namespace) -> list[tuple[str, bytes]]:
    from toolchain.bundle import Bundle
    from toolchain.cubin import is_cubin

    if not args.path.is_dir():
        data = read(args.path)
        if not is_cubin(data):
            raise UsageError(f"{args.path} is no cubin", hint="tilestack assemble --target SM makes one")
        if given := [f"--{name}" for name in ("target", "op", "source") if getattr(args, name) is not None]:
            raise UsageError(f"{args.path} is one cubin: {', '.join(given)} would choose of a bundle")
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
