"""`python3 -m ci.runner pool --simulate`: ten runners on a clock that costs no time, of which three fail.

`gpu-3` falls off the bus in a job, `gpu-5` vanishes with its machine and comes back, `gpu-8` hangs and says nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .pool import Job, Pool, Result, Rules, Work

JOBS = 40
SECONDS = (120, 240, 90, 300)  # the jobs take these in turn
FELL_OFF = "sick kernel log: Xid 79 of PCI:0000:3b:00, 1 times - the GPU has fallen off the bus; repair it, then boot"
AWAY = 400.0  # seconds that the machine of gpu-5 needs to boot


@dataclass
class Virtual:
    """A clock for a simulation."""

    at: float = 0.0

    def now(self) -> float:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.at += seconds


@dataclass
class Played:
    """Messages at their times. `ends`: when it is over, and how."""

    clock: Virtual
    messages: list[tuple[float, Mapping[str, Any]]]
    ends: tuple[float, str] | None = None
    stopped: bool = False

    def news(self) -> Sequence[Mapping[str, Any]]:
        come = [message for at, message in self.messages if at <= self.clock.at]
        self.messages = self.messages[len(come) :]
        return come

    @property
    def over(self) -> str:
        return self.ends[1] if self.ends and self.ends[0] <= self.clock.at else ""

    def stop(self) -> None:
        self.stopped = True


@dataclass
class Well:
    """A runner on which nothing goes wrong."""

    name: str
    clock: Virtual
    gpu: str = "simulated"

    def start(self, job: Job | None) -> Work:
        if job is None:
            return Played(self.clock, [(self.clock.at + 1, {"end": "well"})])
        seconds = float(job.command.removeprefix("sleep "))
        return Played(self.clock, [*self.beats(seconds), (self.clock.at + seconds, {"end": "done", "code": 0})])

    def beats(self, seconds: float) -> list[tuple[float, Mapping[str, Any]]]:
        return [(self.clock.at + at, {"alive": True}) for at in range(0, int(seconds), 5)]


@dataclass
class Sick(Well):
    """Its second job ends, but the GPU does not look well afterwards. Nobody repairs it."""

    jobs: int = 0

    def start(self, job: Job | None) -> Work:
        self.jobs += job is not None
        if self.jobs < 2:
            return super().start(job)
        end = {"end": "sick", "when": "after" if job else "before", "why": FELL_OFF}
        end["back"] = "repair it, then python3 -m ci.runner back GPU"
        return Played(self.clock, [(self.clock.at + 60, end)])


@dataclass
class Vanishes(Well):
    """Its machine is gone 100 s after the start, for some time."""

    gone: float = 100.0

    def start(self, job: Job | None) -> Work:
        work, until = super().start(job), self.gone + AWAY
        assert isinstance(work, Played)
        if self.gone <= self.clock.at < until:
            return Played(self.clock, [], (self.clock.at + 5, "ssh: connect to host: No route to host"))
        if self.clock.at < self.gone:
            work.messages = [(at, message) for at, message in work.messages if at < self.gone]
            if all("end" not in message for _, message in work.messages):
                work.ends = (self.gone, "its process ended with 255")
        return work


@dataclass
class Hangs(Well):
    """From its third job on it says nothing."""

    jobs: int = 0

    def start(self, job: Job | None) -> Work:
        self.jobs += job is not None
        return super().start(job) if self.jobs < 3 else Played(self.clock, [])


def jobs(count: int = JOBS) -> list[Job]:
    return [Job(f"job-{n + 1}", f"sleep {SECONDS[n % len(SECONDS)]}", 3600) for n in range(count)]


def simulate(rules: Rules) -> tuple[list[Result], Pool, float]:
    """The results, the pool at the end, and the seconds that it took on the clock."""
    clock = Virtual()
    kinds = {3: Sick, 5: Vanishes, 8: Hangs}
    pool = Pool([kinds.get(n, Well)(f"gpu-{n}", clock) for n in range(1, 11)], rules, clock)
    results = pool.run(jobs())
    return results, pool, clock.at
