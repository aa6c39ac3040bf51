"""From an artifact to a cubin: the stage for each kind of code, and the tool that it runs."""

from __future__ import annotations

import functools
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..caching.cache import key
from ..contract.artifact import SUFFIXES, Kind
from ..contract.targets import Target
from ..errors import BytecodeError, ToolchainError, ToolFailed
from ..pinned import compatibility
from ..pinned.pins import pins
from ..pinned.tools import Tool, pinned_fingerprint, tool

Find = Callable[[str], Tool]


def _pinned(name: str) -> Tool:
    return tool(name)


def _is_pinned(find: Find) -> bool:
    return find in (_pinned, tool)


# The options beside the target. No -g and no --lineinfo: they would write paths into the cubin.
OPTIONS = ("--opt-level=3",)
COMPILERS: Mapping[Kind, str] = {"tile-ir": "tileiras", "ptx": "ptxas"}
NO_REASON = 5  # the exit code of tileiras if libnvvm or ptxas failed: it drops what they say
_CHIP = re.compile(rb"^\s*\.target\s+(sm_\d+[af]?)\b", re.MULTILINE)


@dataclass(frozen=True)
class Stage:
    """The step that turns one kind of code into a cubin. `uses`: the tools that a manifest names; we run the first.
    `run`: takes the code and a target's name and returns a cubin; raises ToolFailed with the command and the tool's
    output. `find`: gives a tool by its name: that of the toolchain, or of another toolkit."""

    uses: tuple[str, ...]
    run: Callable[[bytes, str], bytes]
    find: Find = _pinned

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the tool and of the files that it loads. The pinned tool's stands in pins.toml: a machine
        without a compiler computes the same cache keys, and so finds in a cache what another one compiled."""
        name = self.uses[0]
        return pinned_fingerprint(name) if _is_pinned(self.find) else self.find(name).fingerprint


def assemble(bytecode: bytes, target: str, find: Find = _pinned) -> bytes:
    """Tile IR bytecode to a cubin. Raises ToolFailed."""
    return _run("tile-ir", bytecode, target, find)


def cubin_key(kind: Kind, code: bytes, fingerprint: str, target: str) -> str:
    """The key of a cubin in the compile cache. `fingerprint`: of the tool that makes it, see Stage."""
    return key("assemble" if kind == "tile-ir" else kind, code, fingerprint, target, *OPTIONS)


def compile_ptx(text: bytes, target: str, find: Find = _pinned, options: Sequence[str] = OPTIONS) -> bytes:
    """PTX to a cubin for a target. PTX for the features of one GPU, such as `.target sm_90a`, is compiled for that
    target if the numbers agree. Raises ToolFailed, and ToolchainError for PTX that names no target."""
    return _run("ptx", text, target, find, options)


def command(
    kind: Kind, code: bytes, target: str, source: Path, result: Path, options: Sequence[str] = OPTIONS
) -> tuple[str, list[str]]:
    """The tool, and its arguments, that make a cubin of the file `source`, which holds `code`. Raises ToolchainError
    for PTX that names no target."""
    gpu = target if kind == "tile-ir" else _gpu_of(code, target)
    return COMPILERS[kind], [f"--gpu-name={gpu}", *options, f"--output-file={result}", str(source)]


def _gpu_of(text: bytes, target: str) -> str:
    chip = _CHIP.search(text)
    if chip is None:
        raise ToolchainError(f"this PTX names no .target, so ptxas cannot compile it for {target}")
    written = chip[1].decode()
    return written if written.rstrip("af") == target else target


def _run(kind: Kind, code: bytes, target: str, find: Find, options: Sequence[str] = OPTIONS) -> bytes:
    with tempfile.TemporaryDirectory(prefix="tilestack-") as folder:
        source, result = Path(folder, f"kernel.{SUFFIXES[kind]}"), Path(folder, "kernel.cubin")
        source.write_bytes(code)
        compile_file(kind, code, target, source, result, find, options)
        return result.read_bytes()


def compile_file(
    kind: Kind, code: bytes, target: str, source: Path, result: Path, find: Find = _pinned,
    options: Sequence[str] = OPTIONS,
) -> None:  # fmt: skip
    """Makes the cubin `result` of the file `source`, which holds `code`. Raises ToolFailed."""
    name, arguments = command(kind, code, target, source, result, options)
    try:
        find(name).run(arguments)
    except ToolFailed as error:
        raise explained(error, name, code, arguments[0].partition("=")[2], find) from None


def explained(error: ToolFailed, name: str, code: bytes, gpu: str, find: Find = _pinned) -> ToolFailed:
    """A failure of tileiras or ptxas with the parts that do not fit, from compatibility.toml. tileiras gives no reason
    where it exits with 5: if its parts fit, the error says so."""
    versions = {part: find(part).version for part in (name, *pins().tools[name].uses)}
    if (misfit := compatibility.why_refused(name, versions, code, gpu, error.stderr)) is not None:
        return error.because(misfit.pair, misfit.next)
    if name == "tileiras" and error.returncode == NO_REASON:
        if (wrong := _refused(code)) is not None:
            return error.because(wrong, "tilestack verify says the same of the kernel's text, with the line")
        parts = ", ".join(f"{part} {version}" for part, version in versions.items())
        return error.because(
            f"tileiras cannot compile this for {gpu}, and gives no reason; {parts} and the bytecode fit each other",
            "tilestack doctor; if all is well there, it is a defect of this kernel, or of tileiras",
        )
    return error


def _refused(code: bytes) -> str | None:
    """What the verifier says of bytecode, if anything."""
    from ..tileir import bytecode  # imported here because it needs xDSL
    from ..tileir.dialect.verify import errors_of

    try:
        errors = errors_of(bytecode.read(code), filename="bytecode")
    except BytecodeError:  # for damaged bytecode tileiras has a reason of its own
        return None
    return str(errors[0].args[0]) if errors else None


def stages(find: Find = _pinned) -> Mapping[Kind, Stage]:
    """The stage of each kind of code, with the tools that `find` gives."""
    return {
        "tile-ir": Stage(("tileiras", "ptxas", "libnvvm"), functools.partial(assemble, find=find), find),
        "ptx": Stage(("ptxas",), functools.partial(compile_ptx, find=find), find),
    }


STAGES = stages()


def tools_used(
    targets: Iterable[Target], kinds: Iterable[Kind] = ("tile-ir",), find: Find = _pinned
) -> dict[str, dict[str, str]]:
    """The tools that a compile of these kinds runs, in a manifest's form: version and sha256 by name."""
    if not list(targets):
        return {}
    names = dict.fromkeys(name for kind in sorted(set(kinds), reverse=True) for name in STAGES[kind].uses)
    found: dict[str, dict[str, str]] = {}
    for name in names:
        if _is_pinned(find):
            pin = pins().tools[name]
            version, sha256 = pins().wheels[pin.wheel], pin.expected()
        else:
            version, sha256 = find(name).version, find(name).sha256
        found[name] = {"version": version, "sha256": sha256}
    return found
