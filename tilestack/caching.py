"""`cache`: what the compile cache holds and did, and keys for a shared one."""

from __future__ import annotations

import argparse
from collections import Counter
from typing import Any

from toolchain import knobs
from toolchain.cache import RUNS, Cache
from toolchain.cache_counts import Counts
from toolchain.cache_entry import unpack
from toolchain.errors import ToolchainError, UsageError
from toolchain.shared_cache import Problem, Shared, new_keys

from .options import add_json, command, print_json

EXAMPLES = """\
  tilestack cache stats              entries, and what the last compile and all of them found
  tilestack cache verify --shared    read every object of the shared cache and check digest and signature
  tilestack cache clear              delete the entries of this machine's folder
  tilestack cache key                a pair of keys for a shared cache (docs/cache.md)
"""


def add(commands: Any) -> None:
    made = command(commands, "cache", None, "look at the compile cache", EXAMPLES)
    whats = made.add_subparsers(title="commands", metavar="COMMAND", required=True)
    stats = _part(whats, "stats", stats_, "show what the folder holds and what compiles found in it", "stats --json")
    add_json(stats)
    verify = _part(whats, "verify", verify_, "check entries; delete damaged ones of the folder", "verify --shared")
    verify.add_argument("--shared", action="store_true", help="of the shared cache, where nothing is deleted")
    _part(whats, "clear", clear, "delete the entries of the folder", "clear")
    _part(whats, "key", key_, "make a pair of keys for a shared cache", "key")


def _part(whats: Any, name: str, run: Any, doc: str, example: str) -> argparse.ArgumentParser:
    return command(whats, name, run, doc, f"  tilestack cache {example}\n")


def stats_(args: argparse.Namespace) -> int:
    cache = Cache(knobs.cache_dir())
    sizes = [path.stat().st_size for _, path in cache.names()]
    done = cache.runs()
    total = Counts.summed(done)
    if args.json:
        print_json({
            "folder": str(cache.root), "entries": len(sizes), "bytes": sum(sizes), "runs": len(done),
            "last": done[-1] if done else None, "total": total.to_json(),
        })  # fmt: skip
        return 0
    print(f"{cache.root}: {len(sizes)} entries, {sum(sizes) / 1e6:.1f} MB; shared: {knobs.cache_url() or 'none'}")
    if done:
        print(f"last compile: {Counts.summed(done[-1:])}")
        print(f"{len(done)} compiles: {total}")
    return 0


def verify_(args: argparse.Namespace) -> int:
    return _verify_shared() if args.shared else _verify_folder(Cache(knobs.cache_dir()))


def _verify_folder(cache: Cache) -> int:
    checked = damaged = 0
    for name, path in cache.names():
        checked += 1
        if unpack(name, path.read_bytes()) is None:
            damaged += 1
            path.unlink()
    print(f"{cache.root}: {checked} entries, {damaged} damaged and deleted")
    return 0


def _verify_shared() -> int:
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
            print(problem)
    told = ", ".join(f"{found[kind]} {what}" for kind, what in KINDS.items())
    print(f"{shared.url}: {told}")
    return 1 if found.total() > found["good"] else 0


KINDS = {"good": "good", "damaged": "damaged", "refused": "not signed by a trusted key", "errors": "could not be read"}


def clear(args: argparse.Namespace) -> int:
    del args
    cache = Cache(knobs.cache_dir())
    freed = deleted = 0
    for _, path in cache.names():
        freed += path.stat().st_size
        deleted += 1
        path.unlink(missing_ok=True)
    (cache.root / RUNS).unlink(missing_ok=True)
    print(f"{cache.root}: {deleted} entries deleted, {freed / 1e6:.1f} MB")
    return 0


def key_(args: argparse.Namespace) -> int:
    del args
    signing, public = new_keys()
    print(f"{knobs.CACHE_SIGNING_KEY.name}={signing}")
    print(f"{knobs.CACHE_PUBLIC_KEY.name}={public}")
    return 0
