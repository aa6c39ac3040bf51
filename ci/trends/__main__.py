"""`nox -s trends -- FOLDER`: see docs/trends.md."""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from toolchain import command
from toolchain.errors import UsageError
from toolchain.files import write_whole
from toolchain.knobs import ROOT
from toolchain.pinned.manifest import REPAIR

from ..report import load
from .nights import DATE, Night, with_history
from .page import all_steps, commands, headline, render

OUTPUT = Path("build/trends/index.html")
EXAMPLES = """\
examples:
  nox -s trends -- build/nights                                    every file of results below a folder
  nox -s trends -- build/results --keep build/nights               keep a night's files, then show all that were kept
  nox -s trends -- --history benchmarks/results/nvidia-h200.json   every version of a committed file
"""


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="nox -s trends --", description="A page of how times changed over commits and machines.", epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    top.add_argument("paths", type=Path, nargs="*", metavar="PATH", help="files of results, or folders with such files")
    top.add_argument("--history", type=Path, action="append", default=[], metavar="FILE", help="all versions; repeat")
    top.add_argument("--keep", type=Path, metavar="DIR", help="copy the files to DIR, and show all that is there")
    top.add_argument("--last", type=int, default=60, metavar="N", help="nights that are shown (default 60; 0 for all)")
    top.add_argument("--url", default="", help="of the repository on the web, for links to ranges of commits")
    top.add_argument("--output", type=Path, default=OUTPUT, metavar="FILE", help=f"default {OUTPUT}")
    top.add_argument("--summary", type=Path, metavar="FILE", help="append the steps as Markdown to this file")
    return top


def keep(paths: Sequence[Path], folder: Path) -> list[Path]:
    """Copies files of results to `folder`, by day; one that is there already stays. Returns the copies. Raises
    UsageError for a file that is none of ours, or that does not say its date."""
    files = [file for path in paths for file in (sorted(path.rglob("*.json")) if path.is_dir() else [path])]
    made: list[Path] = []
    for run in load([file for file in files if file.name != "verdicts.json"]):
        date = DATE.search(run.date)
        if date is None:
            raise UsageError(f"{run.name} does not say its date, so it is no night's")
        content = Path(run.name).read_bytes()
        machine = re.sub(r"[^a-z0-9]+", "-", " ".join(run.machines).lower()).strip("-") or "none"
        kind = "benchmarks" if run.bench else "matrix"
        made.append(folder / date[1] / f"{machine}-{kind}-{hashlib.sha256(content).hexdigest()[:12]}.json")
        write_whole(made[-1], content, parents=True)
    return made


def markdown(nights: Sequence[Night]) -> Iterator[str]:
    """The steps of the last night, and those that it confirms."""
    found = all_steps(nights)
    yield f"### Trends: {headline(nights, found)}\n"
    new = [step for step in found if step.night >= len(nights) - 2]
    if not new:
        yield "No step in the last two nights.\n"
        return
    yield "| night | cell | GPU | change | besides | find the commit |\n|---|---|---|--:|---|---|"
    for step in new:
        night, sure = nights[step.night], "" if step.confirmed else ", not confirmed yet"
        change = f"{100 * step.change:+.1f} %{sure}"
        find = "<br>".join(f"`{line}`" for line in commands(nights, step))
        cell = f"{step.cell.name} {step.cell.source}".replace("|", "\\|")
        yield f"| {night.day} | {cell} | {step.on[0]} | {change} | {', '.join(step.causes)} | {find} |"


def _us(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def _main(args: argparse.Namespace) -> None:
    if not args.paths and not args.history:
        raise UsageError("no night is named", hint="name files of results or a folder of them, or --history FILE")
    if args.last < 0:
        raise UsageError(f"--last {args.last} is no number of nights", hint="from 1 on; 0 for all")
    paths = list(args.paths)
    if args.keep:
        made = keep(paths, args.keep)
        print(f"kept {len(made)} files in {args.keep}", flush=True)
        paths = [args.keep]
    nights = with_history(paths, args.history, args.last)
    write_whole(args.output, render(nights, ROOT, args.url), parents=True)
    found = all_steps(nights)
    for step in found:
        sure = "" if step.confirmed else " (not confirmed yet)"
        print(f"{nights[step.night].day} {step.cell.name} {step.cell.source} on {step.on[0]}: {_us(step.old_us)} to "
              f"{_us(step.new_us)} us, {100 * step.change:+.1f} %{sure}; {', '.join(step.causes)}")  # fmt: skip
        print(*(f"  {line}" for line in commands(nights, step)), sep="\n")
    print(f"{headline(nights, found)}\nwrote {args.output}", flush=True)
    if args.summary:
        with args.summary.open("a") as summary:
            summary.write("\n".join(markdown(nights)) + "\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Makes the page; returns the exit code."""
    command.settle_streams()
    args = parser().parse_args(argv)
    return command.run(lambda: _main(args), set_up=REPAIR)


if __name__ == "__main__":
    sys.exit(main())
