"""From an artifact to a cubin: the stage that each kind of code goes through, by the tool that does it."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from .artifact import SUFFIXES, Kind
from .errors import ToolchainError
from .targets import Target
from .tools import tool

OPTIONS = ("--opt-level=3",)  # all that a tool gets beside the target; no -g, no --lineinfo: they carry paths
_CHIP = re.compile(rb"^\s*\.target\s+(sm_\d+[af]?)\b", re.MULTILINE)


@dataclass(frozen=True)
class Stage:
    """What turns one kind of code into a cubin. `uses`: the tools that a manifest names, the first is what we run.
    `run`: the code and a target's name to a cubin; raises ToolFailed with the command and what the tool said."""

    uses: tuple[str, ...]
    run: Callable[[bytes, str], bytes]

    @property
    def fingerprint(self) -> str:
        """Of the tool and what it loads."""
        return tool(self.uses[0]).fingerprint


def assemble(bytecode: bytes, target: str) -> bytes:
    """Tile IR bytecode to a cubin. Raises ToolFailed."""
    return _run("tileiras", "tile-ir", bytecode, target)


def compile_ptx(text: bytes, target: str) -> bytes:
    """PTX to a cubin for a target. Where the PTX is written for what one GPU alone has, as `.target sm_90a` is, the
    target of that number is compiled as that. Raises ToolFailed, and ToolchainError for PTX that names no target."""
    chip = _CHIP.search(text)
    if chip is None:
        raise ToolchainError(f"this PTX names no .target, so ptxas cannot compile it for {target}")
    written = chip[1].decode()
    return _run("ptxas", "ptx", text, written if written.rstrip("af") == target else target)


def _run(name: str, kind: Kind, code: bytes, gpu: str) -> bytes:
    with tempfile.TemporaryDirectory(prefix="tilestack-") as folder:
        source, result = Path(folder, f"kernel.{SUFFIXES[kind]}"), Path(folder, "kernel.cubin")
        source.write_bytes(code)
        tool(name).run([f"--gpu-name={gpu}", *OPTIONS, f"--output-file={result}", str(source)])
        return result.read_bytes()


STAGES: Mapping[Kind, Stage] = {
    "tile-ir": Stage(("tileiras", "ptxas", "libnvvm"), assemble),
    "ptx": Stage(("ptxas",), compile_ptx),
}


def tools_used(targets: Iterable[Target], kinds: Iterable[Kind] = ("tile-ir",)) -> dict[str, dict[str, str]]:
    """What a compile of these kinds for these targets runs, as a manifest has it: name to version and sha256."""
    names = dict.fromkeys(name for kind in sorted(set(kinds), reverse=True) for name in STAGES[kind].uses)
    used = [tool(name) for name in (names if list(targets) else ())]
    return {row.name: {"version": row.version, "sha256": row.sha256} for row in used}
