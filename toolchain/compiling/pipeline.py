"""From kernel source to cubin: an artifact per entry, then a cubin per entry and target, through the cache.

There are two steps: `export`, which is the source's own (parse and specialize, or trace), and the stage of the
artifact's kind (tileiras or ptxas). The result of a step depends only on its key. As many steps run at once as there
are jobs. Exports run in processes that are kept, since they are Python and import a compiler; tools are started from
threads, since they are processes themselves. An entry's cubins begin as soon as it is exported, in the given order of
targets.
"""

from __future__ import annotations

import functools
import heapq
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from ..bundles.bundle import Compiled
from ..caching.cache import Cache, key
from ..contract import artifact
from ..contract.entry import EntrySpec
from ..contract.sources import Source, load_source
from ..contract.targets import BYTECODE, Target
from ..errors import SourceError, TilestackError, ToolchainError, UsageError
from ..pinned.tools import stop_all
from ..tileir.bytecode.writer import parse_version
from . import stages
from .spawned import Spawn
from .stages import assemble, tools_used

__all__ = [
    "Failure", "Outcome", "Progress", "Source", "assemble", "check_targets", "compile_entries", "export",
    "exported", "silent", "tools_used",
]  # fmt: skip

REQUESTS = 16  # to the shared cache, at once
T = TypeVar("T")
Wanted = Callable[[EntrySpec, Target], bool]


@dataclass(frozen=True)
class Failure:
    """A cell that did not compile: `linear-py-bf16-sm_80 (linear_128x128x64_bf16)`, and why."""

    cell: str
    error: TilestackError


@dataclass(frozen=True)
class Outcome:
    """The result of a compile. An entry with a failure is not in `compiled`."""

    compiled: Sequence[Compiled]
    failures: Sequence[Failure]
    made: int
    cached: int


class Progress(Protocol):
    """Called when the number of steps is known, and after each."""

    def __call__(self, done: int, total: int, what: str) -> None: ...


def silent(done: int, total: int, what: str) -> None:
    del done, total, what


def export(package: str, spec: EntrySpec, version: str) -> bytes:
    """The first step: an entry's artifact in the form that the cache stores. Raises SourceError, and UsageError
    for tensor maps that do not fit the entry."""
    made = load_source(package).artifact(spec, version)
    made.form.check_maps(spec)
    if made.form.kind == "tile-ir":
        from ..tileir import block_zero  # imported here because it needs xDSL, and only this step does

        block_zero.check(made.payload, spec)
    return artifact.dump(made)


def export_unchanged(package: str, spec: EntrySpec, version: str, fingerprint: str) -> bytes:
    """`export` in a process that has just read the source, for a key made with this fingerprint. Raises SourceError
    where files were changed in between: another version's code would be kept under that key."""
    made = export(package, spec, version)
    if load_source(package).fingerprint(spec) != fingerprint:
        raise SourceError(f"{package}: {spec.symbol}: files changed during the compile", hint="compile again")
    return made


def exported(package: str, spec: EntrySpec, cache: Cache, version: str = BYTECODE) -> artifact.Artifact:
    """One entry's artifact, from the cache if a compile has left it there. Raises as `export_unchanged`."""
    found = load_source(package).fingerprint(spec)
    make = functools.partial(export_unchanged, package, spec, version, found)
    return artifact.load(cache.get_or_make(_export_key(found, spec, version), make))


def _export_key(fingerprint: str, spec: EntrySpec, version: str) -> str:
    """The export checks which arrays the kernel reads before its PDL wait, so the op's list is part of the key."""
    return key("artifact", fingerprint, version, *spec.op_spec.pdl_reads)


def check_targets(targets: Iterable[Target], version: str) -> None:
    """Raises UsageError if this is not a bytecode version, or if a target needs a later one."""
    wanted = parse_version(version)
    for target in targets:
        if parse_version(target.min_bytecode) > wanted:
            raise UsageError(
                f"{target.name} needs bytecode {target.min_bytecode} or later, not {version}",
                hint=f"compile with --bytecode {target.min_bytecode}",
            )


def for_its_targets(spec: EntrySpec, target: Target) -> bool:
    """True if an entry is compiled for a target: for those that it names, or for all if it names none."""
    return spec.runs_on(target.name)


def compile_entries(
    entries: Sequence[tuple[str, EntrySpec]],
    targets: Sequence[Target],
    cache: Cache,
    *,
    jobs: int,
    version: str = BYTECODE,
    progress: Progress = silent,
    wanted: Wanted = for_its_targets,
    by_kind: Mapping[artifact.Kind, stages.Stage] | None = None,
) -> Outcome:
    """Compiles entries, each with its source's package, for those of the targets for which they are `wanted`.

    The first target is compiled first. A failure of one cell does not stop the others. Without targets only artifacts
    are made: the CPU interpreter needs nothing but Tile IR bytecode, and exporting it needs no tool. `by_kind`: the
    stages; by default those with the pinned tools.
    """
    check_targets(targets, version)
    by_kind = stages.STAGES if by_kind is None else by_kind
    fingerprints = [load_source(package).fingerprint(spec) for package, spec in entries]
    chosen = [
        [rank for rank, target in enumerate(targets) if spec.runs_on(target.name) and wanted(spec, target)]
        for _, spec in entries
    ]
    run = _Run(cache, jobs, progress, total=len(entries) + sum(map(len, chosen)))
    made: dict[int, artifact.Artifact] = {}
    cubins: dict[tuple[int, int], bytes] = {}
    stages_used: dict[artifact.Kind, str] = {}  # their tools' fingerprints

    def take(i: int, dumped: bytes) -> None:
        made[i] = artifact.load(dumped)
        kind, payload = made[i].form.kind, made[i].payload
        if chosen[i] and kind not in stages_used:
            stages_used[kind] = by_kind[kind].fingerprint
        for rank in chosen[i]:
            name = targets[rank].name
            stage = by_kind[kind]
            cubin = stages.cubin_key(kind, payload, stages_used[kind], name)
            run.add(
                Step(cubin, _cell(entries[i][1], name), stage.run, (payload, name), (rank, 0)),
                functools.partial(cubins.__setitem__, (i, rank)),
            )

    for i, (package, spec) in enumerate(entries):
        name = _export_key(fingerprints[i], spec, version)
        order = (min(chosen[i], default=len(targets)), 1)
        arguments = (package, spec, version, fingerprints[i])
        step = Step(name, _cell(spec, "export"), export_unchanged, arguments, order, in_process=True)
        run.add(step, functools.partial(take, i))
    run.finish()
    compiled = [
        Compiled(spec, made[i], {targets[rank].name: cubins[i, rank] for rank in chosen[i]}, fingerprints[i])
        for i, (_, spec) in enumerate(entries)
        if i in made and all((i, rank) in cubins for rank in chosen[i])
    ]
    return Outcome(compiled, run.failures, run.made, run.cached)


def _cell(spec: EntrySpec, form: str) -> str:
    return f"{spec.cell}-{form} ({spec.symbol})"


@dataclass(frozen=True)
class Step:
    """One result to make: its cache key, its name for people, and the call that makes it. `order`: the lowest comes
    first. `in_process`: it runs in another process, not in a thread."""

    key: str
    cell: str
    function: Callable[..., bytes]
    arguments: tuple[object, ...]
    order: tuple[int, int]
    in_process: bool = False


@dataclass(frozen=True)
class TimedResult:
    """A step's result, and the seconds that it took."""

    content: bytes
    seconds: float


def _timed(function: Callable[..., bytes], *arguments: object) -> TimedResult:
    started = time.perf_counter()
    content = function(*arguments)
    return TimedResult(content, time.perf_counter() - started)


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


class LazyPool:
    """A pool of workers that its first use starts. A compile that finds everything in the cache starts none."""

    def __init__(self, kind: type[ProcessPoolExecutor] | type[ThreadPoolExecutor], jobs: int) -> None:
        self.kind, self.jobs = kind, jobs
        self.started: Executor | None = None

    def __enter__(self) -> LazyPool:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self.started is None:
            return
        if kind is not None and isinstance(self.started, ThreadPoolExecutor):  # interrupted: nobody takes the results
            self.started.shutdown(wait=False, cancel_futures=True)
            stop_all()
        # Once only for processes: a second call does not wait for the pool's thread, and Python's exit meets its end.
        self.started.shutdown(cancel_futures=True)

    def submit(self, function: Callable[..., T], *arguments: object) -> Future[T]:
        if self.started is None:
            if self.kind is ProcessPoolExecutor:
                self.started = ProcessPoolExecutor(self.jobs, Spawn(), initializer=_leave_interrupts_to_the_parent)
            else:
                self.started = ThreadPoolExecutor(self.jobs)
        try:
            return self.started.submit(function, *arguments)
        except BrokenProcessPool as error:  # a worker has died, so this step fails as the steps in it did
            failed: Future[T] = Future()
            failed.set_exception(error)
            return failed


@dataclass
class _Run:
    """One compile: the steps that wait, the results made and found in the cache, and the failures."""

    cache: Cache
    jobs: int
    progress: Progress
    total: int
    failures: list[Failure] = field(default_factory=list[Failure])
    made: int = 0
    cached: int = 0
    _unknown: deque[int] = field(default_factory=deque[int])  # steps that the folder lacks
    _sending: list[Future[None]] = field(default_factory=list[Future[None]])
    _ready: list[tuple[tuple[int, int], int]] = field(default_factory=list[tuple[tuple[int, int], int]])
    _steps: list[tuple[Step, Callable[[bytes], None]]] = field(
        default_factory=list[tuple[Step, Callable[[bytes], None]]]
    )

    def add(self, step: Step, then: Callable[[bytes], None]) -> None:
        """Passes a step's result to `then`: at once if it is in the cache's folder, else during `finish`."""
        found = self.cache.find(step.key)
        if found is not None:
            self._found(step, then, found)
            return
        self._unknown.append(len(self._steps))
        self._steps.append((step, then))

    def finish(self) -> None:
        """Runs all steps, including those that are added meanwhile. Before that it looks for each in the shared cache,
        while others run, and sends what was made there."""
        running: dict[Future[TimedResult], int] = {}
        looking: dict[Future[bytes | None], int] = {}
        with (
            LazyPool(ThreadPoolExecutor, REQUESTS) as requests,
            LazyPool(ProcessPoolExecutor, self.jobs) as processes,
            LazyPool(ThreadPoolExecutor, self.jobs) as threads,
        ):
            while self._unknown or self._ready or running or looking:
                self._look(requests, looking)
                while self._ready and len(running) < self.jobs:
                    _, number = heapq.heappop(self._ready)
                    step, _ = self._steps[number]
                    pool = processes if step.in_process else threads
                    running[pool.submit(_timed, step.function, *step.arguments)] = number
                waiting: list[Future[Any]] = [*running, *looking]
                if not waiting:  # the last steps were found in the folder meanwhile
                    continue
                for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                    if future in running:
                        self._finished(running.pop(future), future, requests)
                    else:
                        self._looked_up(looking.pop(future), future.result())
            for sent in self._sending:
                sent.result()

    def _look(self, requests: LazyPool, looking: dict[Future[bytes | None], int]) -> None:
        """Begins to look for steps in the shared cache. Without one they are ready to run."""
        while self._unknown and len(looking) < REQUESTS:
            number = self._unknown.popleft()
            step, _ = self._steps[number]
            if self.cache.shared:
                looking[requests.submit(self.cache.fetch, step.key)] = number
            else:
                self._looked_up(number, self.cache.fetch(step.key))

    def _looked_up(self, number: int, found: bytes | None) -> None:
        step, then = self._steps[number]
        if found is None:
            heapq.heappush(self._ready, (step.order, number))
        else:
            self._found(step, then, found)

    def _found(self, step: Step, then: Callable[[bytes], None], content: bytes) -> None:
        self.cached += 1
        self._tell(step)
        then(content)

    def _finished(self, number: int, future: Future[TimedResult], requests: LazyPool) -> None:
        step, then = self._steps[number]
        try:
            result = future.result()
        except TilestackError as error:
            self.failures.append(Failure(step.cell, error))
        except BrokenProcessPool as error:
            ended = ToolchainError(f"a compiling process died: {error}", hint="use fewer --jobs if memory is short")
            self.failures.append(Failure(step.cell, ended))
        except Exception as error:
            error.add_note(f"while compiling {step.cell}")
            raise
        else:
            self.cache.put(step.key, result.content, result.seconds)
            if self.cache.shared:
                self._sending.append(requests.submit(self.cache.share, step.key, result.content, result.seconds))
            self.made += 1
            self._tell(step)
            then(result.content)
            return
        self._tell(step)

    def _tell(self, step: Step) -> None:
        self.progress(self.made + self.cached + len(self.failures), self.total, step.cell)
