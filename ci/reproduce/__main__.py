"""`python -m ci.reproduce`: see docs/reproducible.md."""

from __future__ import annotations

import argparse
import datetime
import shutil
import sys
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rich.console import Console

from toolchain import command
from toolchain.errors import TilestackError, UsageError
from toolchain.knobs import ROOT, toolchain_dir
from toolchain.pinned.manifest import REPAIR

from . import artefacts, building, report
from .artefacts import Artefact
from .building import ArtefactRun, Commit
from .comparing import NO_DIFFOSCOPE, Clue, Times, compare, files_of
from .report import Report, Result
from .variation import Side, Varied, memory_folder, plan

MARK = "made-by-reproduce"  # a file in the folder that we may empty
PLACES = ("path of the checkout", "home folder", "temporary folder", "hostname", "USER", "path of the toolchain")


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit code: 0 if everything that was built is identical, 1 if something differs or failed."""
    args = _parser().parse_args(argv)
    return command.run(lambda: _run(args), set_up=REPAIR)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="nox -s reproduce --", description="Build everything twice and compare.")
    parser.add_argument("--only", action="append", default=[], metavar="ARTEFACT", help="of ci/reproduce.toml; repeat")
    parser.add_argument("--entries", metavar="REGEX", help="only entries whose SOURCE/SYMBOL has a match")
    parser.add_argument("--target", action="append", default=[], metavar="SM", help="only this target; repeat")
    parser.add_argument("--commit", default="HEAD", help="what to build (default HEAD)")
    parser.add_argument("--output", type=Path, default=Path("build/reproduce"), metavar="DIR", help="of the report")
    parser.add_argument("--keep", action="store_true", help="keep the copies and what they built")
    parser.add_argument("--table", type=Path, default=artefacts.TABLE, metavar="FILE", help="default ci/reproduce.toml")
    parser.add_argument("--uv", type=Path, default=ROOT / ".venv" / "bin" / "uv", help="default: .venv's")
    return parser


def _run(args: argparse.Namespace) -> int:
    chosen = artefacts.choose(artefacts.load(args.table), args.only)
    selection = [*(["--entries", args.entries] if args.entries else [])]
    selection += [word for target in args.target for word in ("--target", target)]
    output: Path = args.output.absolute()
    made = reproduce(
        chosen, selection, building.commit(args.commit), output / "work",
        python=Path(sys.executable), uv=args.uv.absolute(),
    )  # fmt: skip
    report.write(made, output)
    console = Console(highlight=False, soft_wrap=True)
    report.show(made, console)
    if made.good and not args.keep:
        shutil.rmtree(output / "work")
    else:
        console.print(f"what was built is in {output / 'work'}", markup=False)
    console.print(f"report: {output / 'report.md'}, {output / 'report.json'}", markup=False)
    return 0 if made.good else 1


def reproduce(
    chosen: Sequence[Artefact], selection: Sequence[str], commit: Commit, work: Path, *, python: Path, uv: Path
) -> Report:
    """Build `chosen` twice and compare. `work` is the folder to build in; it is emptied first."""
    with ExitStack() as stack:
        one, two, rows = stack.enter_context(prepared(commit, work, python))
        absent = {artefact.name: why for artefact in chosen if (why := artefacts.missing(artefact, uv))}
        rows.append(building.order_of_files((one, two), stack.enter_context(building.shuffled(two))))
        if python.is_relative_to(toolchain_dir()):
            for side in (one, two):
                building.check_sources(side, side.toolchain / python.relative_to(toolchain_dir()))
        made = [build(side, chosen, absent, selection, python, uv) for side in (one, two)]
    rows = _with_times(rows, made)
    results = [judge(artefact, absent, made[0], made[1], rows) for artefact in chosen]
    notes = [] if shutil.which("diffoscope") else [NO_DIFFOSCOPE]
    notes.append("the tools of the toolchain get a fixed environment: of its variables only TMPDIR varies for them")
    if commit.dirty:
        notes.append("the checkout has uncommitted changes: they were not built")
    return Report(commit, selection, rows, results, notes)


@contextmanager
def prepared(commit: Commit, work: Path, python: Path) -> Generator[tuple[Side, Side, list[Varied]]]:
    """The two copies of the commit's files, ready to build in."""
    if (work.exists() and not (work / MARK).is_file() and any(work.iterdir())) or work.is_symlink():
        raise UsageError(f"{work} was not made by this command, so it is not removed", hint="choose another --output")
    if work.exists():
        shutil.rmtree(work)
    work.mkdir(parents=True)
    (work / MARK).touch()
    with memory_folder() as memory:
        one, two, rows = plan(work, epoch=commit.epoch, python=python, memory=memory)
        for side in (one, two):
            building.prepare(side, commit.sha)
        yield one, two, rows


def build(
    side: Side, chosen: Sequence[Artefact], absent: dict[str, str], selection: Sequence[str], python: Path, uv: Path
) -> dict[str, ArtefactRun]:
    """One of the two builds, of every artefact that this machine can build."""
    made: dict[str, ArtefactRun] = {}
    for artefact in chosen:
        if artefact.name in absent or any(name not in made or made[name].failure for name in artefact.after):
            continue
        print(f"{side.name} build: {artefact.name}", end="", flush=True)
        made[artefact.name] = done = building.make(side, artefact, selection, python, uv)
        print(f": {'failed after ' if done.failure else ''}{done.seconds:.1f} s", flush=True)
    return made


def _with_times(rows: Sequence[Varied], made: Sequence[dict[str, ArtefactRun]]) -> list[Varied]:
    """The rows; that of the time shows when each build ran, if the clock could not be set."""
    starts = [min((done.started for done in side.values()), default=None) for side in made]
    if None in starts:
        return list(rows)
    shown = [
        datetime.datetime.fromtimestamp(s, datetime.UTC).isoformat(" ", "milliseconds") for s in starts if s is not None
    ]
    return [
        Varied(row.what, shown[0], shown[1] if row.reason else f"{shown[1]} and {row.second}",
               "")
        if row.what == "time" else row
        for row in rows
    ]  # fmt: skip


def judge(
    artefact: Artefact,
    absent: dict[str, str],
    first: dict[str, ArtefactRun],
    second: dict[str, ArtefactRun],
    rows: Sequence[Varied],
) -> Result:
    """The result of comparing one artefact's two builds."""
    kept = tuple(f"{what}: {reason}" for what, reason in artefact.keep.items())
    name = artefact.name
    if name in absent:
        return Result(name, "not run", absent[name])
    made = [side[name] for side in (first, second) if name in side]
    seconds = tuple(round(done.seconds, 2) for done in made)
    failures = [done.failure for done in made if done.failure]
    if len(made) < 2 or failures:
        reason = "\n".join(failures)
        if not reason:
            return Result(name, "not run", f"{', '.join(artefact.after)}: not built", seconds=seconds, kept=kept)
        return Result(name, "failed", reason, tuple(made[0].command), seconds, kept=kept)
    clues = [Clue(row.what, row.first, row.second) for row in rows if row.what in PLACES and not row.reason]
    one, two = made
    times = Times((one.started, one.started + one.seconds), (two.started, two.started + two.seconds))
    try:
        files = compare(files_of(one.output, artefact.form), files_of(two.output, artefact.form), clues, times)
    except TilestackError as error:  # the command wrote something that is not a bundle
        return Result(name, "failed", str(error), tuple(one.command), seconds, kept=kept)
    if not files:
        return Result(name, "failed", f"{one.output} is empty", tuple(one.command), seconds, kept=kept)
    same = all(file.identical for file in files)
    return Result(name, "identical" if same else "differs", "", tuple(one.command), seconds, tuple(files), kept)


if __name__ == "__main__":
    sys.exit(main())
