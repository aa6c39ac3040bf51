"""Runs jobs on a pool of runners, each with one GPU. A sick GPU goes out of the pool, a lost runner too, and their jobs
are planned anew.

`job.py` runs a job where the GPU is and tells what happens in messages; this module only listens, so that a driver that
hangs holds up nothing here. A message has one key that says what it is: `alive` (true) and `note` (words) while a job
runs, then `end`:

- `done`, with the exit code `code`: the GPU was well before and after. A job that fails is not repeated
- `late`, with `why`: it took too long, on a GPU that is well
- `well`: nothing was to be run, and a job could run
- `busy`, with `why`: another program has the GPU
- `sick`, with `why`, `when` ("before" or "after" the job) and `back`: whatever the job gave is not to be trusted

A runner that ends without an `end`, or says nothing for `silent` seconds, is lost.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from toolchain.errors import UsageError
from toolchain.tables import check_keys, is_number, natural, read_table

TABLE = Path(__file__).with_name("runner.toml")


@dataclass(frozen=True)
class Job:
    """A command for a shell, and how many seconds it may take. `gpu`: the only kind that will do; empty for any."""

    name: str
    command: str
    seconds: float
    gpu: str = ""


class Work(Protocol):
    """A job that runs, or a look at a GPU."""

    def news(self) -> Sequence[Mapping[str, Any]]:
        """The messages that came since the last call."""
        ...

    @property
    def over(self) -> str:
        """How it ended, where no more messages come; empty while they may."""
        ...

    def stop(self) -> None:
        """End it, as far as it can be reached."""
        ...


class Runner(Protocol):
    """One GPU of a machine. `gpu`: its kind, such as NVIDIA H200."""

    @property
    def name(self) -> str: ...
    @property
    def gpu(self) -> str: ...

    def start(self, job: Job | None) -> Work:
        """Begin a job; without one only look whether the GPU is fit for one."""
        ...


@dataclass(frozen=True)
class Rules:
    """runner.toml explains them. Seconds, but for `tries`."""

    listen: float
    silent: float
    again: float
    nobody: float
    tries: int

    @classmethod
    def load(cls, path: Path = TABLE) -> Rules:
        """Raises UsageError."""
        table = read_table(path)["pool"]
        keys = {name: natural if name == "tries" else _seconds for name in cls.__dataclass_fields__}
        check_keys(table, keys, f"{path}: [pool]")
        return cls(**table)


def _seconds(value: Any) -> str | None:
    return None if is_number(value) and value > 0 else "a number of seconds above 0"


@dataclass
class Member:
    """A runner in the pool. `state`: `out` with the reason `why` and how it comes back; looked at again at `look`.
    `heard`: when it last said something."""

    runner: Runner
    state: Literal["free", "busy", "out"] = "free"
    work: Work | None = None
    job: Job | None = None
    began: float = 0.0
    heard: float = 0.0
    look: float = 0.0
    why: str = ""
    back: str = ""
    done: int = 0


@dataclass
class Result:
    """What became of a job. `code`: its exit code; None if there is none, then `why` says why. `lost`: the runners that
    it had before, each with what became of it."""

    job: Job
    runner: str = ""
    code: int | None = None
    why: str = "not run"
    seconds: float = 0.0
    lost: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])


class Clock(Protocol):
    def now(self) -> float: ...
    def sleep(self, seconds: float) -> None: ...


class Pool:
    """Raises UsageError for two runners of one name."""

    def __init__(
        self, runners: Sequence[Runner], rules: Rules, clock: Clock, say: Callable[[str], object] = lambda _: None
    ) -> None:
        names = [runner.name for runner in runners]
        if not names or len({*names}) < len(names):
            raise UsageError(f"a pool needs runners of different names, not {', '.join(names) or 'none'}")
        self.members = [Member(runner) for runner in runners]
        self.moves: list[tuple[float, str]] = []  # who left the pool and came back, in seconds since it was made
        self._rules, self._clock, self._say, self._began = rules, clock, say, clock.now()

    def run(self, jobs: Sequence[Job]) -> list[Result]:
        """All jobs, each until it has a result, or no runner was there for it for `nobody` seconds. Raises UsageError
        for two jobs of one name, or one for a kind of GPU that the pool does not have."""
        results = {job.name: Result(job) for job in jobs}
        if len(results) < len(jobs):
            raise UsageError("two jobs of one name: the name is the name of the log")
        if alone := [job.name for job in jobs if not any(_fits(member, job) for member in self.members)]:
            kinds = ", ".join(sorted({member.runner.gpu for member in self.members}))
            raise UsageError(f"no runner has the GPU of {', '.join(alone)}", hint=f"the pool has {kinds}")
        waiting, since = deque(jobs), self._clock.now()
        try:
            while waiting or any(member.state == "busy" for member in self.members):
                self._hand_out(waiting)
                for member in self.members:
                    self._listen(member, waiting, results)
                if any(member.state == "busy" or _next(member, waiting) for member in self.members):
                    since = self._clock.now()
                elif self._clock.now() - since >= self._rules.nobody:
                    self._give_up(waiting, results)
                    break
                self._clock.sleep(self._rules.listen)
        finally:
            for member in self.members:
                if member.work:
                    member.work.stop()
        return list(results.values())

    def _give_up(self, waiting: Sequence[Job], results: Mapping[str, Result]) -> None:
        for job in waiting:
            out = [member.runner.name for member in self.members if _fits(member, job)]
            results[job.name].why = f"not run: its runners are out, {', '.join(out)}"

    def _hand_out(self, waiting: deque[Job]) -> None:
        """Each free runner gets a job, each that is out a look at whether it is well again."""
        for member in self.members:
            now = self._clock.now()
            if job := _next(member, waiting):
                waiting.remove(job)
                member.state, member.job = "busy", job
                self._tell(member, f"begins {job.name}")
            elif not (member.state == "out" and member.work is None and now >= member.look):
                continue
            member.work, member.began, member.heard = member.runner.start(member.job), now, now

    def _listen(self, member: Member, waiting: deque[Job], results: Mapping[str, Result]) -> None:
        if member.work is None:
            return
        over = member.work.over  # asked first: what was said before the end is still read
        for message in member.work.news():
            member.heard = self._clock.now()
            if "note" in message:
                self._tell(member, str(message["note"]))
            if "end" in message:
                self._ended(member, message, waiting, results)
                return
        silent = self._clock.now() - member.heard
        if over or silent >= self._rules.silent:
            why = f"lost: {over or f'it said nothing for {silent:.0f} s'}"
            self._ended(member, {"end": "lost", "why": why, "back": "it is looked for again"}, waiting, results)

    def _ended(
        self, member: Member, message: Mapping[str, Any], waiting: deque[Job], results: Mapping[str, Result]
    ) -> None:
        assert member.work is not None
        member.work.stop()
        job, member.job, member.work = member.job, None, None
        end, why, now = str(message["end"]), str(message.get("why", "")), self._clock.now()
        if end in ("done", "late", "well"):
            if member.state == "out":
                self._move(member, "is back in the pool")
            member.state, member.why, member.back = "free", "", ""
            if job:
                member.done += 1
                result = results[job.name]
                result.runner, result.code, result.why = member.runner.name, message.get("code"), why
                result.seconds = now - member.began
                self._tell(member, f"{job.name}: {why or f'exit code {result.code}'}")
            return
        reason = f"busy: {why}" if end == "busy" else why
        if not member.why or not reason.endswith(member.why):  # a later look says since when
            self._move(member, f"is out of the pool: {reason}")
        member.state, member.why, member.look = "out", reason, now + self._rules.again
        member.back = str(message.get("back", "it is asked again"))
        if job is None:
            return
        result = results[job.name]
        if end != "busy" and message.get("when") != "before":  # the job had begun
            result.lost.append((member.runner.name, reason))
        if len(result.lost) < self._rules.tries:
            waiting.appendleft(job)
            return
        result.why = f"{len(result.lost)} runners were lost with it: {', '.join(name for name, _ in result.lost)}"

    def _move(self, member: Member, what: str) -> None:
        self.moves.append((self._clock.now() - self._began, f"{member.runner.name} {what}"))
        self._tell(member, what)

    def _tell(self, member: Member, what: str) -> None:
        self._say(f"{member.runner.name}: {what}")


def _fits(member: Member, job: Job) -> bool:
    return job.gpu in ("", member.runner.gpu)


def _next(member: Member, waiting: Sequence[Job]) -> Job | None:
    """The first job that a free runner can take."""
    return next((job for job in waiting if member.state == "free" and _fits(member, job)), None)


def named(text: str, seconds: float) -> Job:
    """`NAME=COMMAND`. Raises UsageError. The name is a file's."""
    name, _, command = text.partition("=")
    if not command or not name.replace("-", "").replace(".", "").isalnum():
        raise UsageError(f"--job {text!r} is not NAME=COMMAND, with a name of letters, digits, - and .")
    return Job(name, command, seconds)


def planned(path: Path) -> list[Job]:
    """The jobs with a GPU of a plan. Each writes its report and verdict to a folder of its own, because several run at
    once. Raises UsageError."""
    jobs: list[Job] = []
    try:
        for row in json.loads(path.read_text())["jobs"]["gpu"]:
            name = row["name"].replace(" ", "-").replace("/", "-")
            command = row["local"].replace("matrix run ", f"matrix run --report build/report/{name} ")
            command = command.replace("ci.gate run ", f"ci.gate run --output build/gate/{name} ")
            jobs.append(Job(name, command, 60 * row["timeout"], row["gpu"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path} is no plan: {error!r}", hint="tilestack matrix plan --json > plan.json") from error
    return jobs


def text(results: Sequence[Result], pool: Pool) -> Iterator[str]:
    """In Markdown: a table of the jobs, who left the pool and came back, a table of the runners."""
    yield "| job | runner | result | seconds | before that |\n|---|---|---|---|---|"
    for result in results:
        before = "; ".join(f"{name}: {why}" for name, why in result.lost)
        said = result.why or ("passed" if result.code == 0 else f"failed, exit code {result.code}")
        yield f"| {result.job.name} | {result.runner} | {said} | {result.seconds:.1f} | {before} |"
    yield "\n| after, s | what happened |\n|---|---|"
    for seconds, what in pool.moves:
        yield f"| {seconds:.0f} | {what} |"
    yield "\n| runner | jobs | state | how it comes back |\n|---|---|---|---|"
    for member in pool.members:
        yield f"| {member.runner.name} | {member.done} | {member.why or 'well'} | {member.back} |"
