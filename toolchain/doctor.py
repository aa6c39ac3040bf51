"""Shows what is installed and what is broken: `python -m toolchain.doctor`, or `tilestack doctor`.

It runs on a bare Python, so that it can say what a machine lacks.
"""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal

from . import command
from .errors import DeviceError, ToolchainError, UsageError
from .issues import REPORT
from .knobs import CACHE_DIR, JOBS, TOOLCHAIN, cache_dir, jobs, toolchain_dir
from .manifest import REPAIR, Manifest, identity
from .pins import pins
from .targets import targets
from .tools import packaged, tool

CPU = "the CPU interpreter runs everything, slowly"
DRIVER = Path("/proc/driver/nvidia/version")
LAUNCH_PACKAGES = ("numpy", "ml-dtypes", "safetensors", "cuda-bindings")  # the packages that launching a bundle needs


@dataclass(frozen=True)
class Check:
    """One line of the table. The status `note` marks something worth knowing that is not broken. `advice`: what to do;
    empty if nothing is wrong."""

    subject: str
    status: Literal["ok", "note", "bad"]
    found: str
    advice: str = ""


def checks() -> list[Check]:
    """Checks everything. A problem becomes a line of the table, never an exception."""
    tools = map(_tool, pins().tools)
    packages = map(_package, LAUNCH_PACKAGES)
    return [_python(), _toolchain(), *tools, _native(), *packages, _driver(), *_gpus(), *_settings()]


def _python() -> Check:
    found = f"{platform.python_version()} on {platform.machine()}, {sys.executable}"
    return Check("python", "ok", found)


def _toolchain() -> Check:
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


def _tool(name: str) -> Check:
    if not toolchain_dir().exists() and not packaged(name).exists():
        return Check(name, "note", "not installed: only compiling needs it", REPAIR)
    try:
        found = tool(name)
    except ToolchainError as error:
        return Check(name, "bad", str(error.args[0]), error.hint or "")
    return Check(name, "ok", f"{found.version}, sha256 {found.sha256[:12]}… as pinned")


def _native() -> Check:
    from .native.tools import NativeToolchain, NativeToolsAbsent

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


def _package(name: str) -> Check:
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return Check(name, "bad", "not installed", REPAIR)
    pinned = pins().wheels.get(name, version)
    if version != pinned:  # launching works with any recent version, and a GPU machine may have its own
        return Check(name, "note", f"{version} (tested with {pinned})")
    return Check(name, "ok", version)


def _driver() -> Check:
    try:
        first, *_ = DRIVER.read_text().splitlines()
    except FileNotFoundError:
        return Check("driver", "note", f"no NVIDIA driver ({DRIVER} is missing)", CPU)
    version = re.search(r"\b\d{3,}\.\d+(\.\d+)?\b", first)
    return Check("driver", "ok", version[0] if version else first)


def _gpus() -> list[Check]:
    try:
        from .runtime import gpus
    except ImportError as error:  # numpy or ml_dtypes: the lines above say what to do
        return [Check("gpu", "bad", f"cannot be checked: {error}")]
    try:
        found = gpus()
    except DeviceError as error:
        return [Check("gpu", "bad", str(error.args[0]), error.hint or "")]
    if not found:
        return [Check("gpu", "note", "none", CPU)]
    lines: list[Check] = []
    for gpu in found:
        served = [target.name for target in targets().values() if target.runs_on(gpu.compute_capability)]
        said = f"{gpu.name}, {gpu.target}, {gpu.sms} multiprocessors, {gpu.memory / 2**30:.0f} GiB"
        if served:
            lines.append(Check(f"cuda:{gpu.index}", "ok", f"{said}; runs cubins for {' '.join(served)}"))
        else:
            lines.append(Check(f"cuda:{gpu.index}", "note", f"{said}; none of our targets fits it", CPU))
    return lines


def _settings() -> list[Check]:
    defaults = " ".join(t.name for t in targets().values() if t.default)
    try:
        parallel = Check(JOBS.name, "ok", f"{jobs()} ({JOBS.doc})")
    except UsageError as error:
        parallel = Check(JOBS.name, "bad", str(error.args[0]), error.hint or "")
    return [
        Check("targets", "ok", f"{defaults}; {len(targets())} in all"),
        Check(CACHE_DIR.name, "ok", f"{cache_dir()} ({CACHE_DIR.doc})"),
        Check(TOOLCHAIN.name, "ok", f"{toolchain_dir()} ({TOOLCHAIN.doc})"),
        parallel,
    ]


def render(lines: Sequence[Check]) -> str:
    """The table as text, with a summary as its last line."""
    width = max(len(line.subject) for line in lines)
    out: list[str] = []
    for line in lines:
        out.append(f"{line.status:4}  {line.subject:{width}}  {line.found}")
        if line.advice:
            out.append(f"{'':4}  {'':{width}}  next: {line.advice}")
    bad = [line.subject for line in lines if line.status == "bad"]
    failed = f"{len(bad)} of {len(lines)} checks failed: {', '.join(bad)}"
    out.append(failed if bad else f"all {len(lines)} checks passed")
    return "\n".join(out)


def main() -> int:
    return command.run(report, set_up=REPAIR)


def report() -> int:
    """Prints the table. Returns 4, the exit code of a toolchain error, if something is broken."""
    lines = checks()
    print(render(lines))
    return ToolchainError.exit_code if any(line.status == "bad" for line in lines) else 0


if __name__ == "__main__":
    sys.exit(main())
