"""Compiles this commit's bundle, and that of the commit that it is compared with: `nox -s bundles`.

The other commit is compiled by its own code and with its own toolchain, in a worktree of its own. Each bundle gets a
note of its commit, for machines without git.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from toolchain import command
from toolchain.caching.cache import Cache
from toolchain.caching.counts import Counts, markdown
from toolchain.errors import ToolchainError, UsageError
from toolchain.knobs import ROOT, cache_dir
from toolchain.pinned.manifest import REPAIR

BUNDLE, BEFORE = Path("build/bundle"), Path("build/before")
PYTHON = ".toolchain/venv/bin/python"


def run(words: Sequence[str | Path], folder: Path) -> None:
    """Run a command with its output on ours. Raises ToolchainError if it fails."""
    if code := subprocess.run([str(word) for word in words], cwd=folder, check=False).returncode:
        line = " ".join(map(str, words))
        raise ToolchainError(f"exit code {code} from: {line}\n  in {folder}", hint="what it said stands above")


def compile_bundle(tree: Path, output: Path, options: Sequence[str]) -> None:
    """Compile a tree's kernels with the tree's own toolchain."""
    python = tree / PYTHON
    run([python, "-m", "tilestack", "compile", *options, "--output", output], tree)
    run([python, "-m", "benchmarks", "stamp", "--bundle", output], tree)


def commit_of(name: str) -> str:
    """The commit to compare with: `name`, or the one before this if that does not exist here, as after a force-push.
    Raises UsageError if there is neither."""
    for each in (name, "HEAD^"):
        words = ["git", "-C", str(ROOT), "rev-parse", "--verify", "--quiet", f"{each}^{{commit}}"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if not done.returncode:
            if each != name:
                print(f"there is no commit {name}: comparing with {each}", flush=True)
            return done.stdout.strip()
    raise UsageError(f"there is neither a commit {name} nor one before this", hint="git fetch --unshallow")


def compile_before(sha: str, nox: Path, output: Path, options: Sequence[str]) -> None:
    """Compile another commit's kernels in a worktree, which is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="tilestack-before-") as folder:
        tree = Path(folder) / "tree"
        run(["git", "worktree", "add", "--quiet", "--detach", tree, sha], ROOT)
        try:
            run([nox, "-s", "build_toolchain"], tree)
            compile_bundle(tree, output, options)
        finally:
            run(["git", "worktree", "remove", "--force", tree], ROOT)


def cache_used(since: int) -> Counts:
    """What the compile cache did in the compiles after the first `since` ones."""
    return Counts.summed(Cache(cache_dir()).runs()[since:])


def _main(args: argparse.Namespace, options: Sequence[str]) -> None:
    before = commit_of(args.base) if args.base else ""
    compiles = {"this commit": lambda: compile_bundle(ROOT, (ROOT / BUNDLE).absolute(), options)}
    if before:
        compiles[before[:10]] = lambda: compile_before(before, args.nox, (ROOT / BEFORE).absolute(), options)
    used: dict[str, Counts] = {}
    for name, run_it in compiles.items():
        since = len(Cache(cache_dir()).runs())
        run_it()
        used[name] = cache_used(since)
    if args.summary:
        with args.summary.open("a") as summary:
            summary.write(markdown(used))


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="nox -s bundles --", description="Other options are those of `tilestack compile`: --target sm_90."
    )
    parser.add_argument("--base", default="", metavar="COMMIT", help=f"compile this commit too, to {BEFORE}")
    parser.add_argument("--nox", type=Path, default=Path("nox"), help=argparse.SUPPRESS)
    parser.add_argument("--summary", type=Path, metavar="FILE", help="append what the compile cache did, as Markdown")
    args, options = parser.parse_known_args(argv)
    return command.run(lambda: _main(args, options), set_up=REPAIR)


if __name__ == "__main__":
    sys.exit(main())
