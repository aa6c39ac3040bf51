"""Runs a bench in a separate process with a watchdog, so that a crash or a hang costs one variant and not the search.

The first classes here are the requests to that process and its answers; all of them must be picklable.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, Literal, Protocol, cast

from toolchain.errors import DeviceError, TilestackError

from .spaces import Dims

# ok: right and timed. dropped: right, and timed until it was clear that it cannot win. wrong: the result is not right.
# error: the launch raised. crashed: its process ended. hung: its process did not answer in time. unprepared: not
# launched, because its arguments or expected results could not be made.
Status = Literal["ok", "dropped", "wrong", "error", "crashed", "hung", "unprepared"]


@dataclass(frozen=True)
class Shape:
    """The shape to make arguments for. `cold`: make so many sets that a launch finds none of its own in the L2
    cache."""

    op: str
    dtype: str
    dims: Dims
    cold: bool = True


@dataclass(frozen=True)
class Task:
    """Measure one entry on the shape that was prepared last. `symbol`: that of a variant; None means the entry that a
    normal launch would choose among the source's own. `best_us`: the fastest time so far, if any."""

    source: str
    symbol: str | None
    best_us: float | None


@dataclass(frozen=True)
class Outcome:
    """`us`: the median of a launch's device time over `samples`, which range from `low` to `high`. `share`: the error
    divided by its bound. `entry`: the symbol that was launched. `lost`: this process cannot launch any more."""

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
    """The machine that measures. `kind`: cuda or cpu. `target`: the device's, such as "sm_90"."""

    kind: str
    gpu: str
    target: str
    driver: str


class Bench(Protocol):
    """The object that runs in the other process."""

    def describe(self) -> Machine: ...

    def prepare(self, shape: Shape) -> str:
        """Make the arguments and the expected results of a shape. Returns a description of them."""
        ...

    def measure(self, task: Task) -> Outcome: ...


START_S = 120.0  # for a process to open its device
PREPARE_S = 300.0  # to make arguments and expected results
END_S = 30.0  # to end; a process that waits in the driver may take longer, and is not waited for


def told(error: Exception) -> str:
    """The text of an error for the user, with the place where it was raised unless the error is one of ours."""
    what = f"{type(error).__name__}: {error}"
    return (
        what if isinstance(error, TilestackError) else f"{what}\n{''.join(traceback.format_exception(error))}".rstrip()
    )


class Lost(DeviceError):
    """The process is gone: it `crashed`, or `hung` and was ended."""

    def __init__(self, message: str, *, hung: bool) -> None:
        super().__init__(message)
        self.hung = hung


class Refused(DeviceError):
    """The process answered that it cannot do the request, and why."""


class Worker:
    """Sends requests to a bench in another process, where `open_bench` (which must be picklable) makes it. The process
    is started at the first request, and again after it was lost. `timeout_s`: for measuring one entry on one shape."""

    def __init__(self, open_bench: Callable[[], Bench], timeout_s: float) -> None:
        self.open_bench, self.timeout_s = open_bench, timeout_s
        self._process: Any = None
        self._connection: Connection[Any, Any] | None = None
        self._shape: Shape | None = None  # the shape that the running process has prepared

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def describe(self) -> Machine:
        """Raises Lost or Refused."""
        return cast("Machine", self._ask("describe", START_S))

    def prepare(self, shape: Shape) -> str | None:
        """Make the process prepare this shape unless it has. Returns its description if it was prepared now. Raises
        Lost or Refused."""
        if self._process is not None and self._shape == shape:
            return None
        said = cast("str", self._ask("prepare", PREPARE_S, shape))
        self._shape = shape
        return said

    def measure(self, task: Task) -> Outcome:
        """Raises Lost or Refused."""
        outcome = cast("Outcome", self._ask("measure", self.timeout_s, task))
        if outcome.lost:
            self.stop()
        return outcome

    def stop(self) -> None:
        """End the process, if there is one. It is killed, because a process that waits for a GPU ignores other
        signals."""
        if self._process is not None:
            self._process.kill()
            self._process.join(END_S)
        if self._connection is not None:
            self._connection.close()
        self._process = self._connection = self._shape = None

    def _ask(self, method: str, limit_s: float, *arguments: object) -> object:
        connection = self._start()
        try:
            connection.send((method, arguments))
            if not connection.poll(limit_s):
                self.stop()
                raise Lost(f"no answer within {limit_s:g} s: its process was ended", hung=True)
            answer, refused = connection.recv()
        except (EOFError, OSError) as error:
            raise self._crashed() from error
        except BaseException:
            self.stop()
            raise
        if refused:
            self.stop()
            raise Refused(refused)
        return answer

    def _start(self) -> Connection[Any, Any]:
        if self._connection is None:
            # Not fork: an initialised driver does not work in a forked process.
            context = multiprocessing.get_context("spawn")
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs, self.open_bench), daemon=True)
            process.start()
            theirs.close()
            self._connection, self._process = ours, process
        return self._connection

    def _crashed(self) -> Lost:
        self._process.join(START_S)
        code: int | None = self._process.exitcode
        self.stop()
        if code is not None and code < 0:
            return Lost(f"its process was ended by {signal.Signals(-code).name}", hung=False)
        return Lost(f"its process ended with exit code {code}", hung=False)


def _serve(connection: Connection[Any, Any], open_bench: Callable[[], Bench]) -> None:
    """Runs in the other process: answers one request after another with (answer, "") or (None, the reason)."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends us
    bench: Bench | None = None
    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            method, arguments = connection.recv()
            try:
                bench = bench or open_bench()
                answer = getattr(bench, method)(*arguments)
            except Exception as error:  # noqa: BLE001 - a bug for one variant's sizes must not end the search
                connection.send((None, told(error)))
            else:
                connection.send((answer, ""))
