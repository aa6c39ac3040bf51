"""Try a stack against another LLVM, before the stack is moved to it: `nox -s llvm_canary -- --llvm 23.1.4`.

Three things are tried with each LLVM: whether an out-of-tree tool builds with it (the recipe's test_package), whether
that tool lowers each module of third_party/canary to PTX, and whether the stack's cuda-tile builds with it. Given a
list of versions or commits, old ones first, the first that breaks is found by bisection. What was seen is written into
toolchain/pinned/canary.toml, which `tilestack stack check` reads.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .. import command
from ..errors import ToolchainError, ToolFailed, UsageError
from ..files import write_whole
from ..knobs import ROOT, cache_dir
from ..pinned.manifest import REPAIR
from ..pinned.stacks import stacks
from .build import BuildPlan, DoesNotBuildError, build
from .engine import Engine
from .images import images
from .ptx import PTX_FEATURES
from .tools import NativeToolchain

MODULES = ROOT / "third_party/canary"
SEEN = ROOT / "toolchain/pinned/canary.toml"
CHIP = "sm_90a"  # what the modules are for
TOOL, CUDA_TILE = "out-of-tree tool", "cuda-tile"


@dataclass(frozen=True)
class Outcome:
    """The result of one thing tried with one LLVM: True if it works, False if it breaks, None if it could not be tried,
    and the output of the tools."""

    works: bool | None
    said: str = ""


Outcomes = Mapping[str, Outcome]


def provider(version: str) -> str:
    """The provider of an LLVM version: a Debian package that an image pins, or source."""
    for image in images().values():
        for source, pinned in image.pinned.items():
            if source.startswith("llvm-toolchain-") and re.sub(r"^\d+:|-.*$", "", pinned) == version:
                return "system"
    if version in stacks().llvm or re.fullmatch(r"[0-9a-f]{40}", version):
        return "source"
    raise UsageError(
        f"LLVM {version}: no image has it, and its source is not pinned",
        hint=f"a commit's 40 hex digits, or one of {', '.join(sorted(stacks().llvm))}",
    )


def try_llvm(stack: str, version: str, *, engine: Engine, sources: Path | None) -> Outcomes:
    """Build and lower with that LLVM. Raises ToolchainError only for what is not the LLVM's doing."""
    packages = cache_dir() / "packages"
    plan = BuildPlan(stack, provider(version), only_llvm=True, llvm_version=version)
    found: dict[str, Outcome] = {}
    try:
        prefix = build(plan, engine=engine, sources=sources, packages=packages, on_line=lambda _: None)
    except DoesNotBuildError as error:
        if _unavailable(error):
            raise
        return {TOOL: Outcome(False, _last_words(error))}
    found[TOOL] = Outcome(True)
    with NativeToolchain.load(prefix).open() as tools:
        for module in sorted(MODULES.glob("*.mlir")):
            try:
                tools.run(
                    "mlir-to-ptx", [module.name, CHIP, PTX_FEATURES[CHIP]], files={module.name: module.read_text()}
                )
                found[module.name] = Outcome(True)
            except ToolFailed as error:
                found[module.name] = Outcome(False, _last_words(error))
    whole = BuildPlan(stack, plan.llvm, llvm_version=version)
    try:
        build(whole, engine=engine, sources=sources, packages=packages, on_line=lambda _: None)
        found[CUDA_TILE] = Outcome(True)
    except DoesNotBuildError as error:
        found[CUDA_TILE] = Outcome(None if _unavailable(error) else False, _last_words(error))
    return found


def _unavailable(error: ToolchainError) -> bool:
    return "could not be had" in str(error)


def _last_words(error: ToolchainError) -> str:
    """The line of a tool's output that says what is wrong."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if re.search(r"\berror: |^CMake Error|could not be had", line)]
    return re.sub(r"\s+", " ", (telling or lines)[0]).removesuffix(" Tried")[:300]


def bisect(versions: Sequence[str], works: Callable[[str], bool | None]) -> tuple[str | None, str | None]:
    """The last of `versions` that works and the first that breaks, of a list in which none works after one that breaks.

    None where all break, or none does. Asks `works` of as few as it can; a version of which it says None, that it could
    not be tried, ends the search there.
    """
    low, high = -1, len(versions)
    while high - low > 1:
        middle = (low + high) // 2
        answer = works(versions[middle])
        if answer is None:
            break
        low, high = (middle, high) if answer else (low, middle)
    return (versions[low] if low >= 0 else None, versions[high] if high < len(versions) else None)


def search(stack: str, versions: Sequence[str], attempt: Callable[[str], Outcomes]) -> list[Mapping[str, str]]:
    """The interval of each thing that was tried, as rows of canary.toml. Each version is tried once at most."""
    seen: dict[str, Outcomes] = {}

    def outcome(version: str, probe: str) -> Outcome:
        if version not in seen:
            seen[version] = attempt(version)
        # What comes after the tool was not tried where the tool itself does not build.
        return seen[version].get(probe, Outcome(False, "the out-of-tree tool does not build"))

    rows: list[Mapping[str, str]] = []
    probes = [TOOL, *(path.name for path in sorted(MODULES.glob("*.mlir"))), CUDA_TILE]
    for probe in probes:
        works_until, breaks_from = bisect(versions, lambda version, probe=probe: outcome(version, probe).works)
        row = {"stack": stack, "probe": probe}
        if works_until:
            row["works_until"] = works_until
        if breaks_from:
            row["breaks_from"] = breaks_from
            row["said"] = outcome(breaks_from, probe).said
        untried = next((o[probe] for o in seen.values() if probe in o and o[probe].works is None), None)
        if untried:
            row["not_run"] = untried.said
        rows.append(row)
    return rows


def read() -> list[Mapping[str, str]]:
    """What was seen, as rows: stack, probe, and works_until, breaks_from, said, not_run where they apply."""
    return list(tomllib.loads(SEEN.read_text()).get("seen", ())) if SEEN.exists() else []


def write(rows: Sequence[Mapping[str, str]]) -> None:
    """Put rows into canary.toml, in the place of older ones of the same stack and probe."""
    kept = {(row["stack"], row["probe"]): row for row in (*read(), *rows)}
    lines = ["# Written by `nox -s llvm_canary`: which LLVM each stack was seen to work with, and which breaks it.", ""]
    for row in (kept[key] for key in sorted(kept)):
        lines += ["[[seen]]", *(f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in row.items()), ""]
    write_whole(SEEN, "\n".join(lines))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="nox -s llvm_canary --")
    parser.add_argument("--stack", default=stacks().default, choices=list(stacks().stacks), help="default %(default)s")
    parser.add_argument(
        "--llvm",
        action="append",
        required=True,
        metavar="VERSION",
        help="or a commit; repeat, old ones first, to bisect",
    )
    parser.add_argument("--source-mirror", type=Path, metavar="DIR", help="archives and git clones of the sources")
    args = parser.parse_args(arguments)
    return command.run(lambda: _main(args), set_up=REPAIR)


def _main(args: argparse.Namespace) -> int:
    engine = Engine.find()

    def attempt(version: str) -> Outcomes:
        print(f"stack {args.stack} with LLVM {version} from {provider(version)}", flush=True)
        outcomes = try_llvm(args.stack, version, engine=engine, sources=args.source_mirror)
        for probe, outcome in outcomes.items():
            word = {True: "works", False: "breaks", None: "not run"}[outcome.works]
            print(f"  {probe}: {word}{f': {outcome.said}' if outcome.said else ''}", flush=True)
        return outcomes

    rows = search(args.stack, args.llvm, attempt)
    write(rows)
    print(f"wrote {SEEN.relative_to(ROOT)}")
    return 1 if any("breaks_from" in row for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
