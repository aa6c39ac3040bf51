"""The second phase, on a machine with a GPU: checks and times every contest's entries on the contest's shapes.

An entry that is slow, wrong, or crashes its process on one shape is not tried on the other shapes of the contest.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from toolchain.errors import DeviceError, WrongTarget

from .catalogue import Catalogue, Contest
from .measured import OWN, EntryMeasurement, Launched, Measured
from .spaces import Dims, shape_name
from .winners import Unfinished, decide
from .worker import Lost, Outcome, Refused, Shape, Task, Worker


class _Unprepared(Exception):
    """A shape whose arguments or expected results could not be made: none of its entries can be measured."""


@dataclass
class Run:
    """One run over a catalogue. `launched`: the bundles that `worker` launches from. `stop_after_s`: no measurement is
    started after that time."""

    catalogue: Catalogue
    launched: Launched
    measured: Measured
    worker: Worker
    say: Callable[[str], object]
    stop_after_s: float = float("inf")
    _started: float = field(default_factory=time.monotonic)

    def run(self) -> bool:
        """Measure what is not measured yet. Returns True if nothing is left. Raises WrongTarget, DeviceError,
        UsageError."""
        machine = self.worker.describe()
        if machine.kind == "cuda" and machine.target != self.catalogue.target:
            raise WrongTarget(
                f"{machine.gpu} is {machine.target}; the variants were compiled for {self.catalogue.target}",
                hint=f"compile them with --target {machine.target}",
            )
        if old := self.launched.forget_old(self.measured):
            self.say(f"{old} earlier measurements are of other code: they count no more")
        self.measured.on(machine, time.strftime("%Y-%m-%d", time.gmtime()))
        for contest in self.catalogue.contests:
            for dims in contest.shapes:
                if not self._shape(contest, dims):
                    return False
        return self._is_finished()

    def _shape(self, contest: Contest, dims: Dims) -> bool:
        """Measure all entries of a contest on one shape. Returns False if the time is up."""
        shape = Shape(contest.op, contest.dtype, dims, contest.cold)
        problem = ""
        for source, symbol in self._due(contest, dims):
            if time.monotonic() - self._started > self.stop_after_s:
                self.say(f"stopped after {self.stop_after_s:g} s: run it again to go on")
                return False
            best = None if symbol == OWN else self._best(contest, source, dims)
            task = Task(source, None if symbol == OWN else symbol, best.us if best else None)
            try:
                outcome = Outcome("unprepared", problem) if problem else self._attempt(shape, task)
            except _Unprepared as error:
                problem = f"preparing {shape_name(dims)}: {error}"
                outcome = Outcome("unprepared", problem)
            file = self.launched.file(source, contest.op, contest.dtype, symbol)
            self.measured.add(EntryMeasurement.of(source, contest, symbol, dims, file, outcome))
            if outcome.status in ("crashed", "hung", "wrong", "error"):
                self.say(f"  {source} {symbol} {outcome.status}: {outcome.why}")
        if problem:
            self.say(f"  {problem}")
        self._summarise(contest, dims)
        return True

    def _is_finished(self) -> bool:
        """True if all contests can be decided; tells the user which cannot."""
        found = [
            decide(self.catalogue, self.measured, contest, source)
            for contest in self.catalogue.contests
            for source in self.catalogue.sources
        ]
        unfinished = [result for result in found if isinstance(result, Unfinished)]
        for left in unfinished:
            self.say(f"{left.contest.title} ({left.source}): {left.missing} measurements are missing: run it again")
        return not unfinished

    def _due(self, contest: Contest, dims: Dims) -> Iterator[tuple[str, str]]:
        """Source and symbol of the entries to measure on a shape. The source's own entry comes first, because variants
        have to beat it. Entries that raised an error are tried again."""
        for source in self.catalogue.sources:
            rows = {(row.symbol, row.shape): row for row in self.measured.of(contest, source)}
            symbols = [candidate.spec.symbol for candidate in self.catalogue.entrants(contest, source)]
            for symbol in (OWN, *symbols) if symbols else ():
                here = rows.get((symbol, shape_name(dims)))
                if here is not None and here.status not in ("error", "unprepared"):
                    continue
                elsewhere = [row.status for (name, _), row in rows.items() if name == symbol and row is not here]
                if symbol == OWN or all(status in ("ok", "unprepared") for status in elsewhere):
                    yield source, symbol

    def _attempt(self, shape: Shape, task: Task) -> Outcome:
        try:
            if said := self.worker.prepare(shape):
                self.say(f"{shape.op} {shape.dtype} {shape_name(shape.dims)}: {said}")
        except DeviceError as error:
            raise _Unprepared(str(error)) from error
        try:
            return self.worker.measure(task)
        except Lost as error:
            return Outcome("hung" if error.hung else "crashed", str(error))
        except Refused as error:
            return Outcome("error", str(error))

    def _best(self, contest: Contest, source: str, dims: Dims) -> EntryMeasurement | None:
        """The fastest so far on a shape."""
        rows = [r for r in self.measured.of(contest, source) if r.shape == shape_name(dims) and r.status == "ok"]
        return min(rows, key=lambda row: row.us or 0.0, default=None)

    def _summarise(self, contest: Contest, dims: Dims) -> None:
        for source in self.catalogue.sources:
            rows = [row for row in self.measured.of(contest, source) if row.shape == shape_name(dims)]
            if not rows:
                continue
            best = self._best(contest, source, dims)
            own = next((row.us for row in rows if row.symbol == OWN), None)
            counts = Counter(row.status for row in rows)
            self.say(
                f"{contest.title} {shape_name(dims)} ({source}): "
                + (f"{best.us:.4g} us {best.entry}" if best and best.us else "nothing right")
                + (f", own {own:.4g} us" if own else "")
                + "; "
                + ", ".join(f"{number} {status}" for status, number in counts.items())
            )
