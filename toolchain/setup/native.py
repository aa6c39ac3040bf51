"""The native part of the pins: `[native]` of pins.toml, and the recipes' conandata.yml, which are generated from it.

`python -m toolchain.setup.update stack NAME [--llvm-source V] [--llvm-system V] [--suite S] [--cuda-tile V]
[--source-mirror DIR]` moves a stack, or adds one: it gets what is not pinned yet, from the mirror or from upstream, and
writes down its hashes.
"""

from __future__ import annotations

import argparse
import dataclasses
import http.client
import json
import shutil
import subprocess
import tempfile
import tomllib
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import ToolchainError, UsageError
from ..files import write_whole
from ..knobs import ROOT
from ..pinned.pins import PINS, file_sha256
from ..pinned.stacks import Archive, GitSource, Provider, Stack, Stacks, parse, stacks

RECIPES = ROOT / "third_party"
LLVM_URL = "https://github.com/llvm/llvm-project/releases/download/llvmorg-{0}/llvm-project-{0}.src.tar.xz"
CUDA_TILE_URL = "https://github.com/NVIDIA/cuda-tile.git"
GENERATED = "# Written by `nox -s update_pins` from toolchain/pinned/pins.toml, never by hand.\n"


def render(known: Stacks) -> str:
    """`[native]` of pins.toml."""
    lines = [
        "# The native stacks. `default` is what --native builds; a system LLVM comes from Debian's `suite`.",
        "[native]",
        f'default = "{known.default}"',
    ]
    for stack in known.stacks.values():
        llvm = ", ".join(f'{provider} = "{version}"' for provider, version in stack.llvm.items())
        lines += ["", f'[native.stacks."{stack.name}"]', f'cuda_tile = "{stack.cuda_tile}"', f"llvm = {{ {llvm} }}"]
        lines.append(f'suite = "{stack.suite}"')
    lines += ["", "[native.llvm]"]
    for version, archives in known.llvm.items():
        lines += [f'"{version}" = [', *(f"  {{ {_inline(archive)} }}," for archive in archives), "]"]
    for version, source in known.cuda_tile.items():
        lines += ["", f'[native.cuda_tile."{version}"]']
        lines += [f"{name} = {json.dumps(value)}" for name, value in dataclasses.asdict(source).items()]
    lines.append("\n# Each cuda-tile builds with the LLVM commits from here on, until the next one's.")
    for row in known.intervals:
        lines += ["[[native.compatibility]]", f'cuda_tile = "{row.cuda_tile}"', f'commit = "{row.commit}"']
        lines += [f"date = {row.date}", ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def _inline(archive: Archive) -> str:
    place = f'url = "{archive.url}"' if archive.url else f'debian = "{archive.debian}"'
    return f'{place}, sha256 = "{archive.sha256}"'


def conandata(known: Stacks) -> dict[Path, str]:
    """The text of each recipe's conandata.yml. Patches are the files third_party/<recipe>/patches/<version>/*.patch."""
    # JSON is YAML: what a program writes need not be pretty, and no emitter is needed.
    llvm = {
        version: {"archives": [{key: value for key, value in vars(archive).items() if value} for archive in archives]}
        for version, archives in known.llvm.items()
    }
    cuda_tile = {version: dataclasses.asdict(source) for version, source in known.cuda_tile.items()}
    return {
        RECIPES / name / "conandata.yml": GENERATED
        + json.dumps({"sources": sources, "patches": _patches(RECIPES / name)}, indent=1)
        + "\n"
        for name, sources in (("llvm", llvm), ("cuda_tile", cuda_tile))
    }


def _patches(recipe: Path) -> dict[str, list[dict[str, str]]]:
    found: dict[str, list[dict[str, str]]] = {}
    for path in sorted(recipe.glob("patches/*/*.patch")):
        found.setdefault(path.parent.name, []).append({"patch_file": str(path.relative_to(recipe))})
    return found


def write_conandata(known: Stacks) -> None:
    for path, text in conandata(known).items():
        write_whole(path, text)


def move_stack(arguments: Sequence[str]) -> None:
    """Move or add the stack that the command line names, and write pins.toml and the recipes' data anew."""
    args = _parser().parse_args(arguments)
    known = stacks()
    old = known.stacks.get(args.name)
    llvm: dict[Provider, str] = dict(old.llvm) if old else {}
    if args.llvm_source:
        llvm["source"] = args.llvm_source
    if args.llvm_system:
        llvm["system"] = args.llvm_system
    cuda_tile, suite = args.cuda_tile or (old and old.cuda_tile), args.suite or (old and old.suite)
    if not cuda_tile or not suite or set(llvm) != {"source", "system"}:
        raise ToolchainError(f"stack {args.name} is new: it needs all of --llvm-*, --cuda-tile and --suite")
    new = Stack(args.name, cuda_tile, llvm, suite)
    archives, sources = dict(known.llvm), dict(known.cuda_tile)
    if llvm["source"] not in archives:
        archives[llvm["source"]] = (_pin_archive(LLVM_URL.format(llvm["source"]), args.source_mirror),)
    if new.cuda_tile not in sources:
        sources[new.cuda_tile] = _pin_git(CUDA_TILE_URL, f"v{new.cuda_tile}", args.source_mirror)
    changed = dataclasses.replace(known, stacks={**known.stacks, args.name: new}, llvm=archives, cuda_tile=sources)
    before, mark, _ = PINS.read_text().partition("# The native stacks.")
    if not mark:
        raise ToolchainError(f"{PINS}: no native stacks in it", hint="git checkout toolchain/pinned/pins.toml")
    _check_writable(changed)
    write_whole(PINS, before + render(changed))
    stacks.cache_clear()  # the lock is made next, of what is pinned now
    write_conandata(changed)


def _check_writable(changed: Stacks) -> None:
    """Raises UsageError unless what is to be written would be read again as it is: a name or a version may hold a
    quote, and a file of pins that cannot be read is of no use to anyone."""
    try:
        same = parse(tomllib.loads(render(changed))) == changed
    except tomllib.TOMLDecodeError:
        same = False
    if not same:
        raise UsageError("these names and versions cannot be written into pins.toml", hint="name plain ones, as 13.4")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="nox -s update_pins -- stack")
    parser.add_argument("name")
    parser.add_argument("--llvm-source", metavar="VERSION")
    parser.add_argument("--llvm-system", metavar="VERSION")
    parser.add_argument("--suite", help="the Debian whose LLVM is llvm-system")
    parser.add_argument("--cuda-tile", metavar="VERSION", help="a release tag of cuda-tile, without its v")
    parser.add_argument("--source-mirror", type=Path, metavar="DIR", help="archives and clones, instead of upstream")
    return parser


def _pin_archive(url: str, mirror: Path | None) -> Archive:
    with tempfile.TemporaryDirectory() as folder:
        path = (mirror or Path(folder)) / url.rsplit("/", 1)[-1]
        if not mirror:
            try:
                _download(url, path)
            except (OSError, http.client.HTTPException) as error:
                raise ToolchainError(f"{url}: {error}", hint="download it yourself: --source-mirror") from error
        if not path.is_file():
            raise ToolchainError(f"{path}: no such file", hint=f"it is {url}")
        return Archive(file_sha256(path), url=url)


def _download(url: str, path: Path) -> None:
    """Raises OSError or HTTPException, and OSError too for one that ended early: Python takes that for the end."""
    with urllib.request.urlopen(url, timeout=60) as response, path.open("wb") as file:
        shutil.copyfileobj(response, file)
        expected = response.headers["Content-Length"]
    if expected is not None and path.stat().st_size != int(expected):
        raise OSError(f"the download ended after {path.stat().st_size} of {expected} bytes")


def _pin_git(url: str, tag: str, mirror: Path | None) -> GitSource:
    place = str(mirror / url.rsplit("/", 1)[-1].removesuffix(".git")) if mirror else url
    with tempfile.TemporaryDirectory() as folder:

        def git(*args: str) -> str:
            command: list[Any] = ["git", "-C", folder, *args]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise ToolchainError(
                    f"git {' '.join(args)}: {done.stderr.strip()}", hint="give a clone's parent folder: --source-mirror"
                )
            return done.stdout.strip()

        git("init", "-q")
        git("fetch", "-q", "--depth", "1", place, f"refs/tags/{tag}")
        return GitSource(url, (), git("rev-parse", "FETCH_HEAD^{commit}"), git("rev-parse", "FETCH_HEAD^{tree}"))
