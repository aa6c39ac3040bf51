"""`python -m benchmarks.collectives [run | model | table | plot]`: needs several GPUs; `run` PyTorch for the peers."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from toolchain import command, knobs
from toolchain.errors import ToolchainError, UsageError
from toolchain.files import write_whole
from toolchain.runtime import Executor
from toolchain.runtime.peers import Peers

from ..rows import by_rows
from .cases import COLLECTIVES, Row
from .page import load, plot, tables

SET_UP = "tilestack compile --op all_reduce ... --output build/bundle; see docs/several-gpus.md"


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="python -m benchmarks.collectives", description="Collectives of several GPUs: see docs/several-gpus.md."
    )
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    run = commands.add_parser("run", help="measure ours, NCCL's and PyTorch's")
    run.add_argument("--bundle", type=Path, default=Path("build/bundle"), metavar="DIR", help="default build/bundle")
    run.add_argument("--source", default="py", help="of our kernels (default py)")
    run.add_argument("--devices", type=int, default=2, metavar="N", help="GPUs (default 2)")
    run.add_argument("--collective", action="append", default=[], choices=COLLECTIVES, help="only this one; repeat")
    run.add_argument("--every-entry", action="store_true", help="of ours every entry that fits, not the one chosen")
    run.add_argument("--no-peers", action="store_true", help="ours alone")
    run.add_argument("--limit", type=float, default=120.0, metavar="S", help="seconds for the peers (default 120)")
    run.add_argument("-o", "--output", type=Path, required=True, metavar="FILE")
    run.set_defaults(run=_run)
    model = commands.add_parser("model", help="a GPT-2 on one GPU and on several: forward passes and decoding")
    model.add_argument("--bundle", type=Path, default=Path("build/bundle"), metavar="DIR", help="default build/bundle")
    model.add_argument("--source", default="py", help="of the kernels (default py)")
    model.add_argument("--devices", type=int, default=2, metavar="N", help="GPUs (default 2); torchrun starts as many")
    model.add_argument("--model", default="xl", help="a size of GPT-2 (default xl)")
    model.add_argument("-o", "--output", type=Path, metavar="FILE", help="JSON too")
    model.set_defaults(run=_model)
    layer = commands.add_parser("layer", help="a layer of a GPT-2 whose rows are shared out, launch by launch")
    layer.add_argument("--bundle", type=Path, action="append", default=[], metavar="DIR",
                       help="of a pass (default build/bundle); then bundles of more entries; repeat")  # fmt: skip
    layer.add_argument("--source", default="cute", help="of the kernels of a pass (default cute)")
    layer.add_argument("--devices", type=int, default=2, metavar="N", help="GPUs (default 2)")
    layer.add_argument("--model", default="xl", help="a size of GPT-2 (default xl)")
    layer.add_argument("--rows", type=int, action="append", default=[], help="of a pass (default 8192, 1024); repeat")
    layer.add_argument("-o", "--output", type=Path, metavar="FILE", help="JSON too, written after each row")
    layer.set_defaults(run=_layer)
    for name, what in (("table", "results as Markdown"), ("plot", "the all-reduce as SVG")):
        shown = commands.add_parser(name, help=what)
        shown.add_argument("results", type=Path)
        if name == "plot":
            shown.add_argument("-o", "--output", type=Path, required=True, metavar="FILE")
        shown.set_defaults(run=_table if name == "table" else _plot)
    return top


def _run(args: argparse.Namespace) -> int:
    from toolchain.bundles.bundle import Bundle
    from toolchain.runtime.peers import open_peers

    from . import ours

    names = [f"cuda:{number}" for number in range(args.devices)]
    collectives = args.collective or COLLECTIVES
    bundle = Bundle.load(args.bundle)
    with open_peers(names) as peers:
        rows = ours.measure(
            bundle, peers, args.source, collectives=collectives, every_entry=args.every_entry, say=_tell
        )
        environment = _environment(peers.executors, args.source)
    _save(args.output, environment, rows)  # what is there, should the peers not end
    if not args.no_peers:
        versions, theirs = _peers(args.devices, collectives, args.limit)
        rows += theirs
        environment |= versions
        _save(args.output, environment, rows)
    print(tables(environment, rows))
    return 0


def _model(args: argparse.Namespace) -> int:
    from conformance.cells import borrows_from
    from gpt.config import preset
    from toolchain.bundles.bundle import Bundle
    from toolchain.runtime import Launcher

    from .model import measure, table

    config, bundle, borrows = preset(args.model), Bundle.load(args.bundle), borrows_from(args.source)
    with _opened(args.devices) as peers:
        first = peers.numbers[0] == 0
        launchers = [Launcher(bundle, args.source, each, borrows_from=borrows) for each in peers.executors]
        rows = measure(config, launchers, peers, say=lambda row: first and print(row, flush=True))
        environment = _environment(peers.executors, args.source, peers.ranks) | {"model": args.model}
        if peers.world is not None:
            environment["processes"] = "a process for each GPU"
    if not first:
        return 0
    if args.output is not None:
        _save(args.output, environment, rows)
    print(f"\n{', '.join(environment.values())}\n\n{table(rows)}")
    return 0


def _layer(args: argparse.Namespace) -> int:
    from conformance.cells import borrows_from
    from gpt.config import preset
    from toolchain.bundles.bundle import Bundle
    from toolchain.runtime.peers import open_peers

    from .layer import LayerRow, measure

    bundles = [Bundle.load(path) for path in args.bundle or [Path("build/bundle")]]
    with open_peers([f"cuda:{number}" for number in range(args.devices)]) as peers:
        environment = _environment(peers.executors, args.source) | {"model": args.model}
        rows: list[LayerRow] = []

        def keep(row: LayerRow) -> None:
            rows.append(row)
            print(
                f"{row.rows:5} {row.what:20} {row.launch:24} {row.error or f'{row.us:9.2f} us'} {row.variant}",
                flush=True,
            )
            if args.output is not None:
                _save(args.output, environment, rows)

        lengths = args.rows or [8192, 1024]
        measure(preset(args.model), bundles, args.source, borrows_from(args.source), peers, lengths, keep)
    return 0


def _opened(devices: int) -> Peers:
    """So many GPUs, or the one of this process, if torchrun has started as many."""
    from toolchain.runtime.peers import Place, open_peers, open_rank

    group = knobs.process_group()
    if group is None:
        return open_peers([f"cuda:{number}" for number in range(devices)])
    if group.ranks != devices:
        raise UsageError(f"{devices} devices for {group.ranks} processes", hint=f"--devices {group.ranks}")
    return open_rank(Place(group.rank, group.ranks, group.local, group.meeting), "cuda")


def _environment(executors: Sequence[Executor], source: str, ranks: int = 0) -> dict[str, str]:
    from toolchain.runtime import smi

    gpus = f"{ranks or len(executors)} x {executors[0].name.split(' ', 1)[1]}"
    driver = smi.query(["driver_version"], smi.name_of(executors[0].device[1])) or [""]
    return {"gpus": gpus, "driver": driver[0], "source": source}


def _tell(row: Row) -> None:
    print(row.error or f"{row.us:9.2f} us", row.nbytes, row.variant, flush=True)


def _save(path: Path, environment: Mapping[str, str], rows: Sequence[Any]) -> None:
    document = {"environment": environment, "rows": [asdict(row) for row in rows]}
    write_whole(path, by_rows(document), parents=True)


def _peers(devices: int, collectives: Sequence[str], limit_s: float) -> tuple[dict[str, str], list[Row]]:
    """Measured in processes of their own. Raises ToolchainError if they fail or take too long."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "peers.json"
        words = [sys.executable, "-m", "benchmarks.peers.torch_collectives", str(output), str(devices), *collectives]
        started = subprocess.Popen(words, start_new_session=True)
        try:
            code = started.wait(limit_s)
        except subprocess.TimeoutExpired as error:
            raise ToolchainError(f"the peers took longer than {limit_s:g} s", hint="--limit gives them more") from error
        finally:
            with contextlib.suppress(ProcessLookupError):  # its processes, which may wait for each other
                os.killpg(started.pid, signal.SIGKILL)
            started.wait()
        if code:
            raise ToolchainError(
                f"the peers ended with exit code {code}", hint="--no-peers measures ours alone; PyTorch is needed"
            )
        found: Any = json.loads(output.read_text())
    return found["versions"], [Row(**row) for row in found["rows"]]


def _table(args: argparse.Namespace) -> int:
    print(tables(*load(args.results)))
    return 0


def _plot(args: argparse.Namespace) -> int:
    write_whole(args.output, plot(*load(args.results)).encode(), parents=True)
    print(f"wrote {args.output}")
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command. Returns its exit code."""
    command.settle_streams()
    args = parser().parse_args(argv)
    return command.run(lambda: args.run(args), set_up=SET_UP)


if __name__ == "__main__":
    sys.exit(main())
