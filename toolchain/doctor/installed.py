"""The running Python, the toolchain, its tools and packages, and the native tools with their known defects."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import sys
from importlib import metadata

from ..errors import ToolchainError, UsageError
from ..knobs import tool_environment, toolchain_dir
from ..pinned.issues import REPORT, known
from ..pinned.manifest import REPAIR, Manifest, identity
from ..pinned.pins import pins
from ..pinned.stacks import check as fitting
from ..pinned.stacks import stacks
from ..pinned.tools import packaged, tool
from .check import Check

LAUNCH_PACKAGES = ("numpy", "ml-dtypes", "safetensors", "cuda-bindings")  # the packages that launching a bundle needs


def python() -> Check:
    found = f"{platform.python_version()} on {platform.machine()}, {sys.executable}"
    return Check("python", "ok", found)


def toolchain() -> Check:
    folder = toolchain_dir()
    if not folder.exists():
        return Check("toolchain", "note", f"{folder}: not built, so the running Python's packages are used", REPAIR)
    try:
        manifest = Manifest.load(folder)
    except ToolchainError as error:
        return Check("toolchain", "bad", str(error.args[0]), error.hint or "")
    if manifest.identity != identity(manifest.python):
        return Check(
            "toolchain",
            "note",
            f"{folder}: built from other locks or pins, with another Python, or in another place",
            REPAIR,
        )
    return Check("toolchain", "ok", f"{folder}, Python {manifest.python}")


def pinned(name: str) -> Check:
    """A tool of pins.toml."""
    if not toolchain_dir().exists() and not packaged(name).exists():
        return Check(name, "note", "not installed: only compiling needs it", REPAIR)
    try:
        found = tool(name)
    except ToolchainError as error:
        return Check(name, "bad", str(error.args[0]), error.hint or "")
    return Check(name, "ok", f"{found.version}, sha256 {found.sha256[:12]}… as pinned")


def package(name: str) -> Check:
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return Check(name, "bad", "not installed", REPAIR)
    wanted = pins().wheels.get(name, version)
    if version != wanted:  # launching works with any recent version, and a GPU machine may have its own
        return Check(name, "note", f"{version} (tested with {wanted})")
    return Check(name, "ok", version)


def native() -> Check:
    """The native tools, with the known defects of their cuda-tile on their LLVM."""
    from ..native.tools import NativeToolchain, NativeToolsAbsent

    try:
        found = NativeToolchain.find()
    except NativeToolsAbsent as error:
        return Check(
            "native", "note", f"{error.args[0]}; only comparing with LLVM's tools needs them", error.hint or ""
        )
    except ToolchainError as error:
        return Check("native", "bad", str(error.args[0]), error.hint or "")
    said = f"stack {found.stack}, LLVM {found.llvm}: {' '.join(sorted(found.paths))}"
    if found.issues:
        return Check("native", "note", "; ".join((said, *(issue.about for issue in found.issues))), f"see {REPORT}")
    return Check("native", "ok", said)


def stack() -> Check:
    """The stack that native tools are built from by default, and its known defects."""
    chosen = stacks().stack()
    said = f"{chosen.name}: cuda-tile {chosen.cuda_tile}, LLVM {' or '.join(sorted(set(chosen.llvm.values())))}"
    hazards = {issue for llvm in chosen.llvm.values() for issue in known(chosen.cuda_tile, llvm)}
    if hazards:
        worst = min(hazards, key=lambda issue: issue.name)
        others = " or ".join(f"nox -s build_toolchain -- --native --stack {name}" for name in _without_hazards())
        return Check(
            "stack", "note", f"{said}; {worst.about}", f"{worst.instead}: {others}" if others else worst.instead
        )
    return Check("stack", "ok", said)


def _without_hazards() -> list[str]:
    """The stacks without a known defect."""
    return [
        stack.name
        for stack in stacks().stacks.values()
        if not any(known(stack.cuda_tile, llvm) for llvm in stack.llvm.values())
    ]


def system_llvm() -> Check | None:
    """The LLVM of `llvm-config` on PATH, and the cuda-tile that builds with it; None without one. We never use it: this
    warns of a build of one's own."""
    path = shutil.which("llvm-config")
    if path is None:
        return None
    ran = subprocess.run([path, "--version"], env=tool_environment(), capture_output=True, text=True, check=False)
    version = re.match(r"\d+\.\d+(\.\d+)?", ran.stdout.strip())
    if ran.returncode or version is None:
        return Check(
            "llvm", "note", f"{path} does not say its version: it exited {ran.returncode}", f"{path} --version"
        )
    try:
        fit = fitting(version[0])
    except UsageError as error:
        return Check("llvm", "note", f"{path}: {error.args[0]}", error.hint or "")
    if fit.cuda_tile is None:
        said = f"{path} is LLVM {version[0]}; no cuda-tile that we know builds with it"
        return Check("llvm", "note", said, "nox -s build_toolchain -- --native builds one that fits")
    hazards = known(fit.cuda_tile, version[0])
    said = f"{path} is LLVM {version[0]}, with which cuda-tile {fit.cuda_tile} builds"
    return (
        Check("llvm", "note", f"{said}; {hazards[0].about}", hazards[0].instead)
        if hazards
        else Check("llvm", "ok", said)
    )
