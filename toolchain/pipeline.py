"""From kernel source to cubin: bytecode per entry, then a cubin per entry and target, through the cache.

The stages in order: `export` (a source's own: parse and specialize, or trace) and `assemble` (tileiras). Each is a
function of its key, and any number of each run at once: exports in processes of their own, for they are Python;
assembling in threads, for tileiras is a process already.
"""

from __future__ import annotations

import functools
import importlib
import multiprocessing
import signal
import tempfile
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar, cast

from .bundle import Compiled
from .cache import Cache, key
from .entry import EntrySpec
from .errors import TilestackError, ToolchainError, UsageError
from .targets import BYTECODE, Target
from .tileir.bytecode.writer import parse_version
from .tools import tool

OPTIONS = ("--opt-level=3",)  # all that reaches tileiras beside the target; no -g, no --lineinfo: they carry paths
Name = TypeVar("Name", bound=Hashable)


class Source(Protocol):
    """A kernel source: a package with one of these as `SOURCE`."""

    name: str

    def entries(self) -> list[EntrySpec]: ...

    def bytecode(self, spec: EntrySpec, version: str = BYTECODE) -> bytes: ...

    def fingerprint(self, spec: EntrySpec) -> str: ...

    def written(self, spec: EntrySpec) -> Mapping[str, str]: ...


@dataclass(frozen=True)
class Failure:
    """A cell that did not compile: `linear-py-bf16-sm_80 (linear_128x128x64_bf16)`, and why."""

    cell: str
    error: TilestackError


@dataclass(frozen=True)
class Outcome:
    """What a compile gave. An entry with a failure is not among `compiled`."""

    compiled: Sequence[Compiled]
    failures: Sequence[Failure]
    made: int
    cached: int


class Progress(Protocol):
    """Called when the number of steps is known, and after each."""

    def __call__(self, done: int, total: int, what: str) -> None: ...


def silent(done: int, total: int, what: str) -> None:
    del done, total, what


@functools.cache
def load_source(module: str) -> Source:
    """The kernel source in a package, by the package's name. Raises UsageError if it is none."""
    try:
        return cast("Source", importlib.import_module(module).SOURCE)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise UsageError(f"no kernel source {module!r}: there is no such package") from error
    except AttributeError as error:
        raise UsageError(f"{module} is no kernel source: it has no SOURCE") from error


def export(module: str, spec: EntrySpec, version: str) -> bytes:
    """The first stage: an entry's bytecode."""
    return load_source(module).bytecode(spec, version)


def assemble(bytecode: bytes, target: str) -> bytes:
    """The second stage: bytecode to a cubin. Raises ToolFailed with the command and what tileiras said."""
    with tempfile.TemporaryDirectory(prefix="tilestack-") as folder:
        source, result = Path(folder, "kernel.tilebc"), Path(folder, "kernel.cubin")
        source.write_bytes(bytecode)
        tool("tileiras").run([f"--gpu-name={target}", *OPTIONS, f"--output-file={result}", str(source)])
        return result.read_bytes()


def tools_used(targets: Iterable[Target]) -> dict[str, dict[str, str]]:
    """What a compile for these targets runs, as a bundle's manifest has it: name to version and sha256."""
    used = [tool(name) for name in (("tileiras", "ptxas", "libnvvm") if list(targets) else ())]
    return {row.name: {"version": row.version, "sha256": row.sha256} for row in used}


def check_targets(targets: Iterable[Target], version: str) -> None:
    """Raises UsageError for what is no bytecode version, and for a target that needs a later one."""
    wanted = parse_version(version)
    for target in targets:
        if parse_version(target.min_bytecode) > wanted:
            raise UsageError(
                f"{target.name} needs bytecode {target.min_bytecode} or later, not {version}",
                hint=f"compile with --bytecode {target.min_bytecode}",
            )


def compile_entries(
    entries: Sequence[tuple[str, EntrySpec]],
    targets: Sequence[Target],
    cache: Cache,
    *,
    jobs: int,
    version: str = BYTECODE,
    progress: Progress = silent,
) -> Outcome:
    """Compile entries, each with its source's package, for all targets.

    A failure of one cell does not stop the others. Without targets only bytecode is made, which is all that the CPU
    interpreter needs and takes no tool.
    """
    check_targets(targets, version)
    fingerprints = [load_source(module).fingerprint(spec) for module, spec in entries]
    chosen = [[target for target in targets if spec.runs_on(target.name)] for _, spec in entries]
    run = _Run(cache, jobs, progress, total=len(entries) + sum(map(len, chosen)))
    exports = {
        i: Step(
            key("export", fingerprints[i], version, *spec.op_spec.early),  # which an export checks the kernel against
            _cell(spec, "bytecode"), export, (module, spec, version),
        )
        for i, (module, spec) in enumerate(entries)
    }  # fmt: skip
    with LazyPool(ProcessPoolExecutor, jobs) as pool:
        bytecode = run.stage(exports, pool)
    assembler = tool("tileiras").fingerprint if targets else ""
    cells = {
        (i, target.name): Step(
            key("assemble", code, assembler, target.name, *OPTIONS),
            _cell(entries[i][1], target.name), assemble, (code, target.name),
        )
        for i, code in bytecode.items()
        for target in chosen[i]
    }  # fmt: skip
    with LazyPool(ThreadPoolExecutor, jobs) as pool:
        cubins = run.stage(cells, pool)
    compiled = [
        Compiled(spec, bytecode[i], version, {t.name: cubins[i, t.name] for t in chosen[i]}, fingerprints[i])
        for i, (_, spec) in enumerate(entries)
        if i in bytecode and all((i, t.name) in cubins for t in chosen[i])
    ]
    return Outcome(compiled, run.failures, run.made, run.cached)


def _cell(spec: EntrySpec, form: str) -> str:
    return f"{spec.op}-{spec.source}-{spec.dtype}-{form} ({spec.symbol})"


@dataclass(frozen=True)
class Step:
    """Something to make: its cache key, its name for people, and the call that makes it."""

    key: str
    cell: str
    function: Callable[..., bytes]
    arguments: tuple[object, ...]


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


class LazyPool:
    """A pool of workers that is started by its first use: a warm compile starts none."""

    def __init__(self, kind: type[ProcessPoolExecutor] | type[ThreadPoolExecutor], jobs: int) -> None:
        self.kind, self.jobs = kind, jobs
        self.started: Executor | None = None

    def __enter__(self) -> LazyPool:
        return self

    def __exit__(self, *_: object) -> None:
        if self.started is not None:
            self.started.shutdown(cancel_futures=True)

    def submit(self, step: Step) -> Future[bytes]:
        if self.started is None:
            if self.kind is ProcessPoolExecutor:
                # Not fork: this process may have threads by now.
                context = multiprocessing.get_context("spawn")
                self.started = ProcessPoolExecutor(self.jobs, context, initializer=_leave_interrupts_to_the_parent)
            else:
                self.started = ThreadPoolExecutor(self.jobs)
        try:
            return self.started.submit(step.function, *step.arguments)
        except BrokenProcessPool as error:  # a worker is gone already: this step fails as those that it took along
            failed: Future[bytes] = Future()
            failed.set_exception(error)
            return failed


class _Run:
    """One compile: what was made, what was found, what failed."""

    def __init__(self, cache: Cache, jobs: int, progress: Progress, total: int) -> None:
        self.cache, self.jobs, self.progress, self.total = cache, jobs, progress, total
        self.failures: list[Failure] = []
        self.made = self.cached = 0

    def stage(self, steps: Mapping[Name, Step], pool: LazyPool) -> dict[Name, bytes]:
        """The result of each step that did not fail."""
        results: dict[Name, bytes] = {}
        waiting: dict[Future[bytes], Name] = {}
        for name, step in steps.items():
            found = self.cache.get(step.key)
            if found is None:
                waiting[pool.submit(step)] = name
                continue
            results[name] = found
            self.cached += 1
            self._tell(step)
        for future in as_completed(waiting):
            name = waiting[future]
            step = steps[name]
            try:
                results[name] = future.result()
            except TilestackError as error:
                self.failures.append(Failure(step.cell, error))
            except BrokenProcessPool as error:
                ended = ToolchainError(f"a compiling process died: {error}", hint="use fewer --jobs if memory is short")
                self.failures.append(Failure(step.cell, ended))
            except Exception as error:
                error.add_note(f"while compiling {step.cell}")
                raise
            else:
                self.cache.put(step.key, results[name])
                self.made += 1
            self._tell(step)
        return results

    def _tell(self, step: Step) -> None:
        self.progress(self.made + self.cached + len(self.failures), self.total, step.cell)
