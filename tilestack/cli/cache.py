"""`cache`: what the compile cache holds and did, and keys for a shared one."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from dataclasses import asdict
from typing import Any

from toolchain import knobs
from toolchain.caching.cache import RUNS, Cache
from toolchain.caching.counts import Counts
from toolchain.caching.shared import Problem, Shared, new_keys
from toolchain.caching.upkeep import clean, parse_age, parse_size, stored, verify
from toolchain.errors import ToolchainError, UsageError

from .common.options import add_json, command, print_json

EXAMPLES = """\
  tilestack cache info               entries, and what the last compile and all of them found
  tilestack cache clean --older-than 30d --max-size 2GB
  tilestack cache verify --shared    read every object of the shared cache and check digest and signature
  tilestack cache clear              delete the entries of this machine's folder
  tilestack cache key                a pair of keys for a shared cache (docs/cache.md)
all of them may run beside compiles
"""


def add(commands: Any) -> None:
    made = command(commands, "cache", None, "look at the compile cache, and after it", EXAMPLES)
    whats = made.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name in ("info", "stats"):  # `stats` is its older name
        add_json(_part(whats, name, info, "show what the folder holds and what compiles found in it", f"{name} --json"))
    cleaned = _part(whats, "clean", clean_, "delete entries by age or until few enough bytes are left",
                    "clean --older-than 30d --max-size 2GB --dry-run")  # fmt: skip
    cleaned.add_argument("--older-than", metavar="AGE", help="those not used for so long: 12h, 30d, 8w")
    cleaned.add_argument("--max-size", metavar="SIZE", help="those used longest ago, until so much is left: 500MB, 2GB")
    cleaned.add_argument("--dry-run", action="store_true", help="delete nothing; show how much it would be")
    add_json(cleaned)
    checked = _part(whats, "verify", verify_, "check entries; delete damaged ones of the folder", "verify --shared")
    checked.add_argument("--shared", action="store_true", help="of the shared cache, where nothing is deleted")
    add_json(checked)
    _part(whats, "clear", clear, "delete the entries of the folder", "clear")
    _part(whats, "key", key_, "make a pair of keys for a shared cache", "key")


def _part(whats: Any, name: str, run: Any, doc: str, example: str) -> argparse.ArgumentParser:
    return command(whats, name, run, doc, f"  tilestack cache {example}\n")


def info(args: argparse.Namespace) -> int:
    cache = Cache(knobs.cache_dir())
    entries = list(stored(cache))
    size, used = sum(entry.size for entry in entries), [entry.used for entry in entries]
    done = cache.runs()
    total = Counts.summed(done)
    if args.json:
        print_json({
            "folder": str(cache.root), "entries": len(entries), "bytes": size,
            "used": [round(min(used)), round(max(used))] if used else None, "runs": len(done),
            "last": done[-1] if done else None, "total": total.to_json(),
        })  # fmt: skip
        return 0
    print(f"{cache.root}: {len(entries)} entries, {size / 1e6:.1f} MB; shared: {knobs.cache_url() or 'none'}")
    if used:
        print(f"last used: {_day(min(used))} to {_day(max(used))}")
    if done:
        print(f"last compile: {Counts.summed(done[-1:])}")
        print(f"{len(done)} compiles: {total}")
    return 0


def _day(seconds: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(seconds))


def clean_(args: argparse.Namespace) -> int:
    if args.older_than is None and args.max_size is None:
        raise UsageError(
            "say what to delete: --older-than or --max-size", hint="tilestack cache clean --older-than 30d"
        )
    cache = Cache(knobs.cache_dir())
    older = None if args.older_than is None else parse_age(args.older_than)
    most = None if args.max_size is None else parse_size(args.max_size)
    done = clean(cache, older_than_s=older, most_bytes=most, dry=args.dry_run)
    if args.json:
        print_json({"folder": str(cache.root), "dry_run": args.dry_run, **asdict(done)})
        return 0
    what = "would be deleted" if args.dry_run else "deleted"
    print(
        f"{cache.root}: {done.deleted} entries {what}, {done.freed / 1e6:.1f} MB; "
        f"{done.left} left, {done.bytes_left / 1e6:.1f} MB"
    )
    return 0


def verify_(args: argparse.Namespace) -> int:
    if args.shared:
        return _verify_shared(args.json)
    cache = Cache(knobs.cache_dir())
    checked, damaged = verify(cache)
    if args.json:
        print_json({"folder": str(cache.root), "entries": checked, "damaged": damaged})
    else:
        print(f"{cache.root}: {checked} entries, {damaged} damaged and deleted")
    return 0


def _verify_shared(as_json: bool) -> int:
    shared = Shared.configured()
    if shared is None:
        raise UsageError("there is no shared cache", hint=f"set {knobs.CACHE_URL.name}")
    if shared.trouble:
        raise ToolchainError(shared.trouble)
    found: Counter[str] = Counter()
    for name in shared.names():
        try:
            shared.get(name)
            found["good"] += 1
        except Problem as problem:
            found[problem.kind] += 1
            print(problem, file=sys.stderr if as_json else sys.stdout)
    if as_json:
        print_json({"url": shared.url, **{kind: found[kind] for kind in KINDS}})
        return 1 if found.total() > found["good"] else 0
    told = ", ".join(f"{found[kind]} {what}" for kind, what in KINDS.items())
    print(f"{shared.url}: {told}")
    return 1 if found.total() > found["good"] else 0


KINDS = {"good": "good", "damaged": "damaged", "refused": "not signed by a trusted key", "errors": "could not be read"}


def clear(args: argparse.Namespace) -> int:
    del args
    cache = Cache(knobs.cache_dir())
    done = clean(cache, most_bytes=0)
    (cache.root / RUNS).unlink(missing_ok=True)
    print(f"{cache.root}: {done.deleted} entries deleted, {done.freed / 1e6:.1f} MB")
    return 0


def key_(args: argparse.Namespace) -> int:
    del args
    signing, public = new_keys()
    print(f"{knobs.CACHE_SIGNING_KEY.name}={signing}")
    print(f"{knobs.CACHE_PUBLIC_KEY.name}={public}")
    return 0
