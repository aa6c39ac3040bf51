"""`nox -s workflows -- [WORKFLOW] [--event EVENT]`: see docs/ci.md."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from toolchain import command
from toolchain.errors import UsageError
from toolchain.knobs import ROOT
from toolchain.pinned.manifest import REPAIR

from . import actions, runner, show
from .repository import EVENTS, MAIN, Event, prepare

FOLDER = Path(".github/workflows")
OUTPUT = Path("build/workflows")
EXAMPLES = """\
examples:
  nox -s workflows                                                      the workflows and their events
  nox -s workflows -- ci --event pull_request --job docs --base main    one job of a pull request to main
  nox -s workflows -- gpu --event push --ref refs/heads/pull-request/7 --var GPU_PYTHON=python3
exit codes: 0 every job passed or was skipped   1 a job failed
"""


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="nox -s workflows --", epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Run a workflow of .github/workflows on this machine, with act. It runs the last commit with "
        "what is changed in files that git knows. Jobs run as you, with no container around them.",
    )  # fmt: skip
    top.add_argument("workflow", nargs="?", help="such as ci; none: list them")
    top.add_argument("--event", choices=EVENTS, help="default: the workflow's first")
    top.add_argument("--base", default="HEAD^", metavar="COMMIT", help="the commit before, and main of a pull request")
    top.add_argument("--ref", default="", metavar="REF", help=f"what is pushed, default {MAIN}, or refs/tags/…")
    top.add_argument("--input", action="append", default=[], metavar="NAME=VALUE", help="of workflow_dispatch; repeat")
    top.add_argument("--var", action="append", default=[], metavar="NAME=VALUE", help="a variable, `vars`; repeat")
    top.add_argument("--env", action="append", default=[], metavar="NAME=VALUE", help="of every step; repeat")
    top.add_argument("--job", default="", help="only this one and what it needs")
    top.add_argument("--matrix", action="append", default=[], metavar="KEY:VALUE", help="only jobs with this; repeat")
    top.add_argument("--actions", type=Path, metavar="DIR", help="git repositories of actions, DIR/OWNER/NAME")
    top.add_argument(
        "--local", action="append", default=[], metavar="OWNER/NAME@REF=DIR", help="whose workflows are called; repeat"
    )
    top.add_argument("--path", type=Path, action="append", default=[], metavar="DIR", help="before PATH; repeat")
    top.add_argument("--repository", type=Path, default=ROOT, metavar="DIR", help="default: this checkout")
    top.add_argument("--output", type=Path, default=OUTPUT, metavar="DIR", help=f"logs and artifacts, default {OUTPUT}")
    return top


def main(argv: Sequence[str] | None = None) -> int:
    args = parser().parse_args(argv)
    return command.run(lambda: _run(args) if args.workflow else _list(args.repository), set_up=REPAIR)


def _list(repository: Path) -> int:
    for path in sorted((repository / FOLDER).glob("*.y*ml")):
        print(f"{path.stem:10} {', '.join(events_of(path)) or 'called by others'}")
    return 0


def events_of(path: Path) -> list[str]:
    """The events that start a workflow and that can be run here."""
    return [name for name in _triggers(path) if name in EVENTS]


def _triggers(path: Path) -> Mapping[str, Any]:
    read: Any = yaml.safe_load(path.read_text())
    found: Any = read.get(True, read.get("on")) if isinstance(read, dict) else None  # YAML takes the word `on` for True
    if not found:
        raise UsageError(f"{path.name} says nothing of what starts it", hint="nox -s lint checks the workflows")
    if isinstance(found, str):
        found = [found]
    return found if isinstance(found, dict) else dict.fromkeys(found)


def _run(args: argparse.Namespace) -> int:
    repository = args.repository.absolute()
    path = next((p for p in sorted((repository / FOLDER).glob("*.y*ml")) if p.stem == args.workflow), None)
    if path is None:
        names = ", ".join(p.stem for p in sorted((repository / FOLDER).glob("*.y*ml")))
        raise UsageError(f"no workflow {args.workflow} in {repository / FOLDER}", hint=f"one of {names}")
    if not events_of(path) or (args.event and args.event not in events_of(path)):
        told = f"{path.name} is started by {', '.join(_triggers(path))}"
        raise UsageError(f"{told}, not by {args.event or 'an event'}", hint="--event takes one of these")
    name = args.event or events_of(path)[0]
    event = Event(name, args.base, args.ref or _ref(path, name), pairs(args.input))
    output = args.output.absolute() / path.stem
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    return execute(repository, path, event, args, output)


def _ref(path: Path, event: str) -> str:
    """Of a push that the workflow listens to: a tag if it does so to tags alone."""
    trigger = _triggers(path)[event] or {}
    return "refs/tags/v0.0.0" if event == "push" and "tags" in trigger and "branches" not in trigger else MAIN


def pairs(texts: Sequence[str]) -> dict[str, str]:
    """NAME=VALUE texts. Raises UsageError."""
    if wrong := [text for text in texts if "=" not in text]:
        raise UsageError(f"{wrong[0]}: it is no NAME=VALUE")
    return {text.partition("=")[0]: text.partition("=")[2] for text in texts}


def execute(repository: Path, path: Path, event: Event, args: argparse.Namespace, output: Path) -> int:
    clone = prepare(repository, output / "repository", event)
    local = {name: Path(folder).absolute() for name, folder in pairs(args.local).items()}
    found = actions.find(actions.used(path, local), args.actions, output / "actions")
    print(f"{path.name} on {event.name}, {clone.commit[:12]}", *found, sep="\n  ", flush=True)
    options = runner.Options(
        output, event.ref, args.job, args.matrix, pairs(args.var), args.path, pairs(args.env), local
    )
    words = runner.command(str(FOLDER / path.name), event.name, clone, found, options)
    run = runner.run(words, lambda job, step: print(show.line(job, step), flush=True), output / "act.jsonl")
    show.write(run, output)
    print(*show.table(run, output), sep="\n", flush=True)
    if pushed := clone.keep_pushed(output / "pushed.git"):
        print(f"pushed to {', '.join(pushed)}: {output / 'pushed.git'}", flush=True)
    for folder in ("act", "actions", "repository", "server"):
        shutil.rmtree(output / folder, ignore_errors=True)
    return int(bool(run.code))


if __name__ == "__main__":
    sys.exit(main())
