"""The compile half: entries in every bytecode version, for every target, with one version of tileiras.

The tool is installed from its lock file into a folder of its own, and runs as the pinned one does. Nothing comes from
the compile cache: the table shows what the tool did.
"""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from toolchain.bundles import bundle
from toolchain.compiling.pipeline import export
from toolchain.compiling.stages import OPTIONS
from toolchain.contract import artifact
from toolchain.contract.artifact import Artifact
from toolchain.contract.entry import EntrySpec
from toolchain.contract.sources import load_source, packages
from toolchain.contract.targets import targets
from toolchain.errors import TilestackError, ToolchainError, ToolFailed, UsageError
from toolchain.files import write_whole
from toolchain.pinned.compatibility import why_refused
from toolchain.pinned.pins import file_sha256, pins
from toolchain.pinned.tools import Tool

from .short import short
from .table import HERE, KERNELS, CompileRow, Settings, Table

GPU_TARGET = "sm_90"  # what the GPUs that run the bundles have


@dataclass(frozen=True)
class ExportedEntry:
    """An entry's artifact, or why it cannot be exported."""

    spec: EntrySpec
    artifact: Artifact | None
    why: str = ""


def install(version: str, folder: Path, uv: str) -> Tool:
    """tileiras of a version with its own ptxas and libnvvm, in `folder`. Raises UsageError, ToolchainError."""
    lock = HERE / f"tools/{version}.lock"
    if not lock.is_file():
        raise UsageError(f"no wheels are locked for tileiras {version}: {lock}", hint="docs/support.md says how")
    options = ["--quiet", "--no-deps", "--require-hashes", "-r", str(lock), "--target", str(folder)]
    command = [uv, "pip", "install", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ToolchainError(f"tileiras {version} was not installed\n{done.stderr.strip()}", hint="look at the network")
    path = folder / pins().tools["tileiras"].path
    sha256 = file_sha256(path)
    return Tool("tileiras", path, version, sha256, sha256)


def entries(settings: Settings) -> dict[str, list[tuple[str, EntrySpec]]]:
    """By source: the entries of the table, each with its package. Raises UsageError for a symbol that no source has."""
    found: dict[str, list[tuple[str, EntrySpec]]] = {}
    for name in settings.sources:
        if not (package := packages().get(name)):
            raise UsageError(f"no source is called {name}", hint="ci/support/support.toml")
        specs = {spec.symbol: spec for spec in load_source(package).entries() if not spec.targets}
        if missing := [symbol for symbol in settings.entries if symbol not in specs]:
            raise UsageError(f"{name} has no portable entry {', '.join(missing)}", hint="ci/support/support.toml")
        found[name] = [(package, specs[symbol]) for symbol in settings.entries]
    return found


def exported(chosen: Sequence[tuple[str, EntrySpec]], bytecode: str) -> list[ExportedEntry]:
    made: list[ExportedEntry] = []
    for package, spec in chosen:
        try:
            made.append(ExportedEntry(spec, artifact.load(export(package, spec, bytecode))))
        except TilestackError as error:
            made.append(ExportedEntry(spec, None, short(error)))
    return made


def assemble(tool: Tool, code: bytes, target: str) -> bytes | str:
    """The cubin, or the short error."""
    with tempfile.TemporaryDirectory(prefix="tilestack-") as folder:
        source, result = Path(folder, "kernel.tilebc"), Path(folder, "kernel.cubin")
        source.write_bytes(code)
        try:
            tool.run([f"--gpu-name={target}", *OPTIONS, f"--output-file={result}", str(source)])
        except ToolFailed as error:
            return short(_explained(error, tool.version, code, target))
        return result.read_bytes()


def _explained(error: ToolFailed, version: str, code: bytes, target: str) -> ToolFailed:
    """The failure with the pair that does not fit, if toolchain/pinned/compatibility.toml has it. The tools are of one
    release, or nearly (`install`)."""
    versions = {"tileiras": version, "ptxas": version, "libnvvm": version}
    misfit = why_refused("tileiras", versions, code, target, error.stderr)
    return error.because(misfit.pair, misfit.next) if misfit else error


def kernels_hash(chosen: Mapping[str, Sequence[tuple[str, EntrySpec]]]) -> str:
    """A hash over the fingerprints of all entries of the table."""
    texts = [load_source(package).fingerprint(spec) for rows in chosen.values() for package, spec in rows]
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def told(error: str, symbols: Sequence[str], every: Sequence[str]) -> str:
    """An error with the entries that it met, unless it met every one; with the others if these are fewer."""
    others = [symbol for symbol in every if symbol not in symbols]
    if not others:
        return error
    named = f"all but {', '.join(others)}" if len(others) < len(symbols) else f"only {', '.join(symbols)}"
    return f"{error} ({named})"


def rows_of(
    version: str,
    bytecode: str,
    source: str,
    made: Sequence[ExportedEntry],
    results: Mapping[tuple[str, str], bytes | str],
) -> list[CompileRow]:
    """A row for each group of targets with the same outcome. `results`: by symbol and target."""
    groups: dict[tuple[int, str], list[str]] = {}
    every = [entry.spec.symbol for entry in made]
    for target in targets():
        failed: dict[str, list[str]] = {}
        for entry in made:
            result = results[entry.spec.symbol, target] if entry.artifact else entry.why
            if isinstance(result, str):
                failed.setdefault(result, []).append(entry.spec.symbol)
        why = "; ".join(told(error, symbols, every) for error, symbols in failed.items())
        count = len(made) - sum(map(len, failed.values()))
        groups.setdefault((count, why), []).append(target)
    good = sum(entry.artifact is not None for entry in made)
    return [
        CompileRow(version, bytecode, source, len(made), good, count, why, tuple(names))
        for (count, why), names in groups.items()
    ]


def compile_with(version: str, settings: Settings, output: Path, *, uv: str, jobs: int) -> Table:
    """The rows of one tileiras. Writes `output`/bundles/<version>-<bytecode> with what compiled for sm_90, for
    the run half."""
    chosen = entries(settings)
    rows: list[CompileRow] = []
    with tempfile.TemporaryDirectory(prefix="tilestack-support-") as folder, ThreadPoolExecutor(jobs) as pool:
        tool = install(version, Path(folder), uv)
        used = {name: Path(folder) / pins().tools[name].path for name in ("tileiras", "ptxas", "libnvvm")}
        hashes = {name: file_sha256(path) for name, path in used.items()}
        for bytecode in settings.bytecode:
            compiled: list[bundle.Compiled] = []
            for source, specs in chosen.items():
                made = exported(specs, bytecode)
                keys = [(one, target) for one in made if one.artifact for target in targets()]
                work = [
                    pool.submit(assemble, tool, one.artifact.payload, target) for one, target in keys if one.artifact
                ]
                results = {(one.spec.symbol, target): w.result() for (one, target), w in zip(keys, work, strict=True)}
                rows += rows_of(version, bytecode, source, made, results)
                for one in made:
                    cubin = results.get((one.spec.symbol, GPU_TARGET))
                    if one.artifact and isinstance(cubin, bytes):
                        compiled.append(bundle.Compiled(one.spec, one.artifact, {GPU_TARGET: cubin}))
            if compiled:
                tools = {name: {"version": version, "sha256": sha256} for name, sha256 in hashes.items()}
                bundle.write(output / "bundles" / f"{version}-{bytecode}", compiled, tools)
    kernels = kernels_hash(chosen)
    write_whole(output / "bundles" / KERNELS, kernels + "\n", parents=True)
    today = datetime.now(UTC).strftime("%Y-%m-%d")
    return Table(kernels, {f"tileiras {version}": today}, {version: hashes}, rows)
