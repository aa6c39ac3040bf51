"""What the process that launches is asked for, and what it answers. All of it passes between processes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from .shapes import Dims

# ok: right and timed. dropped: right, and timed until it was clear that it is no winner. wrong: not right. error: the
# launch raised. crashed: its process ended. hung: its process did not answer in time. unprepared: not launched, as
# there were no arguments or nothing to compare results with.
Status = Literal["ok", "dropped", "wrong", "error", "crashed", "hung", "unprepared"]


@dataclass(frozen=True)
class Shape:
    """What to make arguments for. `cold`: so many that a launch finds none of its own in the L2 cache."""

    op: str
    dtype: str
    dims: Dims
    cold: bool = True


@dataclass(frozen=True)
class Task:
    """One entry on the shape that was prepared last. `symbol`: a variant's; none means what a launch by name would take
    of the source's own. `best_us`: the fastest so far, where there is one."""

    source: str
    symbol: str | None
    best_us: float | None


@dataclass(frozen=True)
class Outcome:
    """`us`: the median of a launch's device time over `samples`, from `low` to `high`. `share`: its error by its bound.
    `entry`: the symbol of what was launched. `lost`: this process can launch nothing any more."""

    status: Status
    why: str = ""
    us: float | None = None
    low: float | None = None
    high: float | None = None
    samples: int = 0
    share: float | None = None
    entry: str = ""
    lost: bool = False


@dataclass(frozen=True)
class Machine:
    """Where it was measured. `kind`: cuda or cpu; `target`: what the device is, "sm_90"."""

    kind: str
    gpu: str
    target: str
    driver: str


class Bench(Protocol):
    """What runs in the other process."""

    def describe(self) -> Machine: ...

    def prepare(self, shape: Shape) -> str:
        """Makes arguments of a shape and what results are compared with; returns that in words."""
        ...

    def measure(self, task: Task) -> Outcome: ...
