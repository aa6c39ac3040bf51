"""`python3 -m ci.runner`: set up a GPU runner, check its health, serve jobs."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from toolchain.errors import TilestackError, UsageError
from toolchain.tables import read_table

from . import health, setup
from .serve import GitHub, Settings, serve
from .steps import Result, follow
from .table import load

PROBLEMS = ("missing", "not run")
PATHS = {name: Path("/", path) for name, path in read_table(setup.TABLE)["paths"].items()}


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m ci.runner", description=__doc__)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    made = actions.add_parser("setup", help="make this machine a runner; run again, it changes only what is missing")
    made.add_argument("--repository", required=True, metavar="OWNER/NAME", help="whose jobs it takes")
    made.add_argument(
        "--runner", required=True, metavar="NAME", help="its name in ci/matrix.toml, which has its labels"
    )
    made.add_argument("--archive", default="", metavar="FILE", help="GitHub's runner, downloaded elsewhere")
    made.add_argument("--dry-run", action="store_true", help="only say what would be done")
    made.set_defaults(run=_setup)
    checked = actions.add_parser("health", help="is the GPU fit for a job? exit code 7 and the reason if not")
    checked.add_argument("--folder", type=Path, default=PATHS["state"], help="where jobs write")
    checked.add_argument("--table", type=Path, default=None, help="other thresholds than those of health.toml")
    checked.add_argument("--reason", type=Path, metavar="FILE", help="write there what is wrong, as JSON")
    checked.set_defaults(run=_health)
    served = actions.add_parser("serve", help="take jobs; the token comes on standard input")
    served.set_defaults(run=_serve)
    args = parser.parse_args(words)
    try:
        return args.run(args)
    except TilestackError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code


def _setup(args: argparse.Namespace) -> int:
    if not args.dry_run and os.getuid():
        raise UsageError(
            "set-up changes this machine: it needs root", hint="sudo, or --dry-run to see what it would do"
        )
    if args.repository.count("/") != 1:
        raise UsageError(f"--repository {args.repository!r} is not OWNER/NAME")
    wanted = setup.Wanted(args.repository, args.runner, setup.labels_of(args.runner), args.archive)
    results = follow(setup.steps(wanted), dry=args.dry_run, say=_show)
    problems = [result.name for result in results if result.state in PROBLEMS]
    print(f"not ready: {', '.join(problems)}" if problems else "ready: systemctl start tilestack-runner")
    return 4 if problems else 0


def _show(result: Result) -> None:
    print(f"{result.state:8} {result.name}", flush=True)
    for line in result.lines:
        print(f"           {line}", flush=True)


def _health(args: argparse.Namespace) -> int:
    findings = health.check(load(args.table) if args.table else load(), args.folder)
    for finding in findings:
        print(finding)
    if not (sick := health.faults(findings)):
        return 0
    if args.reason:
        health.write_reason(args.reason, findings)
    print(f"error: this GPU is not fit for a job: {len(sick)} of {len(findings)} checks failed", file=sys.stderr)
    return 7


def _serve(_: argparse.Namespace) -> int:
    if os.getuid():
        raise UsageError("serve runs as root, and jobs as another user who cannot read the token")
    settings = Settings.load(PATHS["settings"])
    if sys.stdin.isatty() or not (token := sys.stdin.readline().strip()):
        raise UsageError("no token on standard input", hint="systemctl start tilestack-runner asks for it")
    signal.signal(signal.SIGTERM, _stop)
    hook = PATHS["program"] / "ci/runner/job-started.sh"
    serve(settings, GitHub(settings.repository, token), PATHS["state"], hook, say=lambda line: print(line, flush=True))
    return 0


def _stop(*_: object) -> None:
    """What is registered is removed on the way out."""
    sys.exit(143)


if __name__ == "__main__":
    sys.exit(main())
