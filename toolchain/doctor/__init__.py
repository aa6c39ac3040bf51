"""Shows what is installed and what is broken: `python -m toolchain.doctor`, or `tilestack doctor`.

It runs on a bare Python, so that it can say what a machine lacks. docs/doctor.md lists the checks.
"""

from __future__ import annotations

import json
import sys

from .. import command
from ..contract.targets import targets
from ..pinned.manifest import REPAIR
from ..pinned.pins import pins
from . import containers, fit, gpu, installed, machine, peers
from .check import Check, exit_code, misfit, render, to_json

__all__ = ["Check", "checks", "exit_code", "main", "misfit", "render", "report", "to_json"]


def checks() -> list[Check]:
    """Checks everything. A problem becomes a line of the table, never an exception."""
    versions, module, library = fit.versions(), gpu.kernel_module(), gpu.library()
    lines = [
        installed.python(),
        installed.toolchain(),
        *map(installed.pinned, pins().tools),
        *fit.compilers(versions),
        installed.native(),
        installed.stack(),
        installed.system_llvm(),
        *map(installed.package, installed.LAUNCH_PACKAGES),
        *gpu.driver(module, library),
        *fit.loading(library.cuda if library else None, versions),
        *gpu.gpus(),
        *peers.peers(),
        *peers.runs(),
        containers.container_engine(),
        containers.cdi(module),
        _targets(),
        machine.tmpdir(),
        machine.cache(),
        machine.shared_cache(),
        machine.toolchain(),
        machine.parallel(),
    ]
    return [line for line in lines if line is not None]


def _targets() -> Check:
    defaults = " ".join(t.name for t in targets().values() if t.default)
    return Check("targets", "ok", f"{defaults}; {len(targets())} in all")


def main() -> int:
    return command.run(lambda: report(as_json="--json" in sys.argv[1:]), set_up=REPAIR)


def report(*, as_json: bool = False) -> int:
    """Prints the table, or with `as_json` what docs/doctor.md describes. Returns `exit_code`: 0, 4 or 7."""
    lines = checks()
    print(json.dumps(to_json(lines), indent=1) if as_json else render(lines))
    return exit_code(lines)
