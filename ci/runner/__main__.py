"""`python3 -m ci.runner`: set up a GPU runner, check its health, serve jobs; run jobs on a pool of GPUs."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from toolchain.errors import DeviceError, TilestackError, UsageError
from toolchain.tables import read_table

from . import again, gpus, health, job, pool, services, setup
from .members import Clock, Host
from .serve import GitHub, Settings, Slot, serve
from .simulate import simulate
from .steps import Result, follow
from .table import TABLE, load

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
    checked.add_argument("--gpu", default="", metavar="GPU", help="index or UUID of the only one that counts")
    checked.set_defaults(run=_health)
    served = actions.add_parser("serve", help="take jobs; the token comes on standard input")
    served.add_argument("--gpu", default="", metavar="GPU", help="for this one alone; else a service for each")
    served.set_defaults(run=_serve)
    listed = actions.add_parser("gpus", help="the GPUs of this machine, a line of JSON each")
    listed.set_defaults(run=_gpus)
    ran = actions.add_parser("job", help="run a command with one GPU: its lock, health before and after")
    _place(ran)
    ran.add_argument("--gpu", required=True, metavar="GPU", help="index or UUID")
    ran.add_argument("--name", default="a job", help="what the lock says to others")
    ran.add_argument("--seconds", type=float, default=3600, help="how long it may take, default 3600")
    ran.add_argument("words", nargs="*", metavar="-- COMMAND", help="with none only look; {gpu}: its name with CDI")
    ran.set_defaults(run=_job)
    back = actions.add_parser("back", help="take a sick GPU into the pool again, if it is well")
    _place(back)
    back.add_argument("gpu", metavar="GPU", help="index or UUID")
    back.set_defaults(run=_back)
    pooled = actions.add_parser("pool", help="run jobs on every GPU of this machine and others, one for each at a time")
    _place(pooled)
    pooled.add_argument("--plan", type=Path, metavar="FILE", help="GPU jobs of `tilestack matrix plan --json`")
    pooled.add_argument("--job", action="append", default=[], metavar="NAME=COMMAND", help="may be repeated")
    pooled.add_argument("--seconds", type=float, default=3600, help="how long each --job may take, default 3600")
    pooled.add_argument("--host", action="append", default=[], metavar="HOST:/FOLDER", help="also its GPUs, by ssh")
    pooled.add_argument("--logs", type=Path, default=Path("build/pool"), metavar="DIR", help="default build/pool")
    pooled.add_argument("--simulate", action="store_true", help="ten runners of which three fail; needs no GPU")
    pooled.set_defaults(run=_pool)
    anew = actions.add_parser("again", help="run the jobs of a workflow again whose runner was lost; needs gh")
    anew.add_argument("--repository", required=True, metavar="OWNER/NAME")
    anew.add_argument("--run", required=True, type=int, dest="number", metavar="NUMBER", help="of the workflow's run")
    anew.add_argument("--attempt", required=True, type=int, metavar="N", help="how often it has run so far")
    anew.set_defaults(run=_again)
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
    table = load(args.table) if args.table else load()
    only = gpus.find(args.gpu, table.seconds) if args.gpu else None
    findings = health.check(table, args.folder, *((only.uuid, only.address) if only else ()))
    for finding in findings:
        print(finding)
    if not (sick := health.faults(findings)):
        return 0
    if args.reason:
        health.write_reason(args.reason, findings)
    print(f"error: this GPU is not fit for a job: {len(sick)} of {len(findings)} checks failed", file=sys.stderr)
    return 7


def _serve(args: argparse.Namespace) -> int:
    if os.getuid():
        raise UsageError("serve runs as root, and jobs as another user who cannot read the token")
    settings = Settings.load(PATHS["settings"])
    if sys.stdin.isatty() or not (token := sys.stdin.readline().strip()):
        raise UsageError("no token on standard input", hint="systemctl start tilestack-runner asks for it")
    signal.signal(signal.SIGTERM, _stop)
    seconds, state = load().seconds, PATHS["state"]
    there = [gpus.find(args.gpu, seconds)] if args.gpu else gpus.gpus(seconds)
    if len(there) > 1:
        command = [sys.executable, "-m", "ci.runner", "serve", "--gpu"]
        return services.run(there, lambda gpu: [*command, gpu.uuid], token, state, _line)
    slot = Slot(state, PATHS["locks"], there[0] if args.gpu else None)
    hook = PATHS["program"] / "ci/runner/job-started.sh"
    serve(settings, GitHub(settings.repository, token), slot, hook, say=_line)
    return 0


def _line(text: str) -> None:
    print(text, flush=True)


def _place(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--locks", type=Path, default=PATHS["locks"], metavar="DIR", help="where GPUs are locked")
    parser.add_argument("--state", type=Path, default=PATHS["state"], metavar="DIR", help="where sick ones are listed")
    parser.add_argument("--table", type=Path, default=TABLE, help="other thresholds than those of health.toml")


def _gpus(_: argparse.Namespace) -> int:
    for gpu in gpus.gpus(load().seconds):
        print(json.dumps(asdict(gpu)))
    return 0


def _job(args: argparse.Namespace) -> int:
    signal.signal(signal.SIGTERM, _stop)
    place = job.Place(args.locks, args.state, load(args.table))
    gpu = gpus.find(args.gpu, place.health.seconds)
    last: dict[str, Any] = {}

    def say(message: Mapping[str, Any]) -> None:
        last.update(message)
        print(json.dumps(message), flush=True)

    job.run(place, gpu, args.name, args.words, args.seconds, say)
    if last["end"] not in ("done", "well"):
        return DeviceError.exit_code
    return int(last.get("code", 0))


def _back(args: argparse.Namespace) -> int:
    health_table = load(args.table)
    gpu = gpus.find(args.gpu, health_table.seconds)
    findings = health.check(health_table, args.state, gpu.uuid, gpu.address)
    if sick := health.faults(findings):
        raise DeviceError(f"{gpu} is not well:\n  " + "\n  ".join(map(str, sick)))
    gpu.reason(args.state).unlink(missing_ok=True)
    print(f"{gpu} takes jobs")
    return 0


def _pool(args: argparse.Namespace) -> int:
    rules = pool.Rules.load()
    if args.simulate:
        results, made, seconds = simulate(rules)
        print(f"{len(results)} jobs on {len(made.members)} simulated runners, {seconds / 60:.0f} minutes\n")
    else:
        jobs = pool.planned(args.plan) if args.plan else []
        jobs += [pool.named(text, args.seconds) for text in args.job]
        options = ["--locks", str(args.locks), "--state", str(args.state), "--table", str(args.table.absolute())]
        hosts = [*map(Host.parse, args.host)]
        if not hosts or shutil.which("nvidia-smi"):
            hosts.insert(0, Host(options=options))
        else:
            print("this machine has no nvidia-smi: only others run jobs", file=sys.stderr, flush=True)
        members = [member for host in hosts for member in host.members(args.logs)]
        made = pool.Pool(members, rules, Clock(), say=lambda line: print(line, file=sys.stderr, flush=True))
        results = made.run(jobs)
    print(*pool.text(results, made), sep="\n")
    if any(result.code is None for result in results):
        return DeviceError.exit_code
    return int(any(result.code for result in results))


def _again(args: argparse.Namespace) -> int:
    again.again(args.repository, args.number, args.attempt, _line)
    return 0


def _stop(*_: object) -> None:
    """What is registered is removed on the way out."""
    sys.exit(143)


if __name__ == "__main__":
    sys.exit(main())
