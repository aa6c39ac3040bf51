"""Build a stack's packages with Conan and put its tools into a prefix. Runs where the compilers are: in a container.

`python3 -m toolchain.native.recipes --stack 13.1 --llvm system --work DIR --prefix DIR`. Needs Python alone, and what
the recipes need. Lines that begin with `== ` say what comes next; the rest is what the tools print.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from .. import command
from ..errors import ToolchainError, ToolFailed
from ..files import write_whole
from ..knobs import ROOT
from ..pinned.pins import file_sha256
from ..pinned.stacks import stacks
from . import binary_cache
from .conan import Conan, Package, graph, install

RECIPES = ROOT / "third_party"
LOCKFILE = ROOT / "conan.lock"
# Of a system's LLVM tools, those that we use. One that was built has its tools in the prefix.
LLVM_TOOLS = ("FileCheck", "llc", "mlir-opt", "mlir-translate", "opt")
DOES_NOT_BUILD = "!! "  # what a line begins with that names a package that did not build or failed its test
OWN = "libexec"  # the prefix's folder of tools that were built; what a user runs is in `bin`, see run_tool.py
TEST_TOOL = "mlir-to-ptx"  # made by the llvm recipe's test_package


def parser() -> argparse.ArgumentParser:
    """The options; build.py gives them."""
    made = argparse.ArgumentParser(prog="toolchain.native.recipes")
    made.add_argument("--stack", choices=list(stacks().stacks), required=True)
    made.add_argument("--llvm", choices=("source", "system"), required=True)
    made.add_argument("--llvm-version", help="another than the stack's")
    made.add_argument("--only-llvm", action="store_true", help="without cuda-tile")
    made.add_argument("--without-nvptx", action="store_true", help="LLVM from source without its NVPTX back end")
    made.add_argument("--work", type=Path, required=True, help="for Conan, its home, and ccache")
    made.add_argument("--prefix", type=Path, required=True, help="where the tools go")
    made.add_argument("--packages", type=Path, help="a folder of built packages, to take from and to add to")
    made.add_argument("--source-mirror", type=Path)
    made.add_argument("--debian-mirror")
    made.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    return made


def main() -> int:
    args = parser().parse_args()
    return command.run(lambda: build(args), set_up="use Python 3.11 or newer")


def build(args: argparse.Namespace) -> None:
    conan = install(args.work)
    check_lock(export(conan, args.llvm_version))
    options = [*_root(args), *_common(args)]
    packages = graph(conan, [str(ROOT), *options])
    for package in packages:
        _provide(conan, args, package)
    print("== installing", flush=True)
    conan.run("install", str(ROOT), *options, "-of", str(args.prefix))
    _describe(args, packages)


def export(conan: Conan, other_llvm: str | None = None) -> list[str]:
    """Give Conan our recipes, in every version that is pinned, as the lock names all of them, and `other_llvm`.

    Returns their references: `name/version#revision`.
    """
    print("== recipes", flush=True)
    exported = [conan.ask("export", str(RECIPES / "sources"))]
    known = stacks()
    system = {version for row in known.stacks.values() for version in row.llvm.values()}
    for version in sorted(known.llvm.keys() | system | ({other_llvm} if other_llvm else set())):
        exported.append(conan.ask("export", str(RECIPES / "llvm"), "--version", version))
    for version in sorted(known.cuda_tile):
        exported.append(conan.ask("export", str(RECIPES / "cuda_tile"), "--version", version))
    return [str(row["reference"]).partition("%")[0] for row in exported]


def check_lock(exported: Sequence[str]) -> None:
    """That conan.lock is of these recipes. Raises ToolchainError."""
    table = json.loads(LOCKFILE.read_text())
    for reference in (*table["requires"], *table["python_requires"]):
        if reference not in exported:
            raise ToolchainError(
                f"conan.lock has {reference}: from a recipe that differs from the one here", hint="nox -s update_pins"
            )


def lock(work: Path) -> None:
    """Write conan.lock: the recipes of every stack, at their revisions, with no times in it. Compiles nothing."""
    conan = install(work)
    export(conan)
    made = work / "conan.lock"
    made.unlink(missing_ok=True)
    for name, stack in stacks().stacks.items():
        for provider in stack.llvm:
            choice = ["-o", f"&:stack={name}", "-o", f"&:provider={provider}", *_profile(stack.suite)]
            merge = ["--lockfile", str(made)] if made.exists() else ["--lockfile", ""]
            rest = ["--lockfile-partial", "--no-remote", "--lockfile-out", str(made)]
            conan.quietly("lock", "create", str(ROOT), *choice, *merge, *rest)
    table = json.loads(made.read_text())
    # A reference is name/version#revision%timestamp; the time is when this machine exported the recipe.
    for kind, references in table.items():
        if isinstance(references, list):
            table[kind] = sorted({str(reference).partition("%")[0] for reference in references}, reverse=True)
    write_whole(LOCKFILE, json.dumps(table, indent=1) + "\n")


def _profile(suite: str) -> list[str]:
    return ["-pr:a", str(ROOT / "toolchain/profiles" / suite)]


def _root(args: argparse.Namespace) -> list[str]:
    """What the root conanfile.py is asked for."""
    options = [
        "-o",
        f"&:stack={args.stack}",
        "-o",
        f"&:provider={args.llvm}",
        "-o",
        f"&:cuda_tile={not args.only_llvm}",
    ]
    return [*options, "-o", f"&:llvm={args.llvm_version}"] if args.llvm_version else options


def _common(args: argparse.Namespace) -> list[str]:
    """What every Conan command is given, so that each sees the same packages."""
    llvm = args.llvm_version or stacks().stack(args.stack).llvm[args.llvm]
    options = ["-o", f"llvm/*:provider={args.llvm}", "-o", f"cuda_tile/*:llvm={llvm}"]
    if args.llvm == "source":
        options += ["-o", f"llvm/*:nvptx={not args.without_nvptx}"]
    # Conan takes the lock beside conanfile.py unless it is told otherwise; another LLVM is not in it.
    options += ["--lockfile", "" if args.llvm_version else str(LOCKFILE)]
    settings = {
        "tools.build:jobs": args.jobs,
        "tools.cmake.cmake_layout:test_folder": args.work / "test",  # the checkout is not written to
        "user.tilestack:source_mirror": args.source_mirror,
        "user.tilestack:debian_mirror": args.debian_mirror,
        "user.tilestack:keep_test_tool": args.prefix / OWN / TEST_TOOL,
    }
    for name, value in settings.items():
        if value is not None:
            options += ["-c", f"{name}={value}"]
    # From source, LLVM is built with the stable Debian's compilers, whatever Debian has it as a package.
    suite = _suite(llvm) if args.llvm == "system" else "trixie"
    return [*options, *_profile(suite), "--no-remote"]


def _suite(llvm: str) -> str:
    """The Debian that has LLVM of this series."""
    series = llvm.partition(".")[0]
    for stack in stacks().stacks.values():
        if stack.series == series:
            return stack.suite
    raise ToolchainError(f"no stack has an LLVM {series} of a Debian's", hint="build it from source: --llvm source")


def _provide(conan: Conan, args: argparse.Namespace, package: Package) -> None:
    """Have a package: from Conan's home, from the folder of built ones, or by building it. Its test always runs."""
    there = package.there
    if not there and args.packages and binary_cache.restore(conan, args.packages, package):
        print(f"== {package.name} {package.version}: restored", flush=True)
        there = True
    print(f"== {package.name} {package.version}: {'testing' if there else 'building'}", flush=True)
    (args.prefix / OWN).mkdir(parents=True, exist_ok=True)
    recipe = str(RECIPES / package.name)
    try:
        conan.run("create", recipe, "--version", package.version, "--build", "missing", *_common(args))
    except ToolFailed:
        print(f"{DOES_NOT_BUILD}{package.name} {package.version}", flush=True)
        raise
    if not there and args.packages:
        binary_cache.save(conan, args.packages, package)


def _describe(args: argparse.Namespace, packages: Sequence[Package]) -> None:
    """Write tools.json: where each tool is, as seen where it was built, and what it was made from."""
    llvm = json.loads((args.prefix / "llvm.json").read_text())
    own = sorted((args.prefix / OWN).iterdir())
    tools = {path.name: {"path": f"{OWN}/{path.name}", "sha256": file_sha256(path)} for path in own}
    for name in LLVM_TOOLS if args.llvm == "system" else ():
        if found := shutil.which(name, path=f"{llvm['prefix']}/bin"):
            tools[name] = {"path": found, "sha256": file_sha256(Path(found).resolve())}
    value = {
        "stack": args.stack,
        "provider": args.llvm,
        "llvm": llvm,
        "packages": [f"{package.reference}:{package.package_id}" for package in packages],
        "tools": tools,
    }
    (args.prefix / "tools.json").write_text(json.dumps(value, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    sys.exit(main())
