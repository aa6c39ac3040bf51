"""Measures one case: builds every contender, checks its output, times those that are right in turns, makes the rows.

This module does not know of GPUs or PyTorch: a contender is a few callables.
"""

from __future__ import annotations

import random
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from conformance.jobs.retries import declared
from toolchain.errors import ConformanceError, DeviceError

from ..cases.cases import Case, Group
from ..cases.roofline import Ceilings
from ..report.result import BenchmarkRow, Status, mark_best
from . import stats
from .limit import TimedOut, time_limit
from .our_side import HostTime
from .status import MACHINE

Kind = Literal["ours", "against", "eager", "graph", "compile", "copy"]
WARM_UP_ROUNDS = 3
DETAIL_CHARACTERS = 600
TRACE_CHARACTERS = 20_000  # the end of a traceback, where the error is


class Named(Protocol):
    """What a row says of its case."""

    @property
    def group(self) -> Group: ...
    @property
    def name(self) -> str: ...
    @property
    def dtype(self) -> str: ...
    @property
    def shape(self) -> str: ...
    @property
    def dims(self) -> Mapping[str, int]: ...


class Judged(Protocol):
    """The errors of outputs that were found right."""

    def to_json(self) -> dict[str, float]: ...


@dataclass
class Contender:
    """Something ready to run.

    `check`: runs it once on poisoned outputs and compares; raises ConformanceError if an output is wrong.
    `time_us`: the device time of one sample, which is `calls` calls over `sets` sets of inputs.
    `entry`: the kernel, if it is a single one; of a model, which ops ran with another source's kernels.
    `peak_bytes`: the most device memory that it used, if the check measures that.
    `host`: the host's time to start one call, if the check measures that.
    """

    check: Callable[[], Judged]
    time_us: Callable[[], float]
    calls: int = 1
    sets: int = 1
    entry: str = ""
    peak_bytes: int | None = None
    host: HostTime | None = None


@dataclass(frozen=True)
class Maker:
    """A contender that is not built yet: building may take minutes, or fail.

    `kind`: how it runs. `against` means our kernels of another bundle; `copy` is not a peer, it only moves as many
    bytes.
    `beside`: the contender of ours that it is compared with; by default all of ours.
    """

    name: str
    kind: Kind
    build: Callable[[], Contender]
    beside: str = ""


@dataclass
class Outcome:
    """The result of a contender. `samples`: microseconds of each round. `trace`: the traceback of its exception.
    `machine`: what its error means, if conformance/retries.toml declares it an error of the machine."""

    maker: Maker
    status: Status = "ok"
    detail: str = ""
    trace: str = ""
    machine: str = ""
    contender: Contender | None = None
    verdict: Judged | None = None
    samples: list[float] = field(default_factory=list)

    def fail(self, status: Status, error: BaseException) -> None:
        self.machine = declared(error) if isinstance(error, Exception) else ""
        text = str(error) if status == "wrong" else f"{type(error).__name__}: {error}"
        text = f"{MACHINE}{self.machine}: {text}" if self.machine else text
        self.status, self.detail = status, shorten(text)
        self.trace = "".join(traceback.format_exception(error))[-TRACE_CHARACTERS:] if status == "error" else ""
        self.contender, self.samples = None, []

    @property
    def ms(self) -> stats.Interval | None:
        """Milliseconds of one call."""
        if not self.samples or self.contender is None:
            return None
        return stats.median(self.samples).scaled(1e-3 / self.contender.calls)

    @property
    def rounds_us(self) -> list[float]:
        """Of one call in each round. Six digits: an event's clock does not resolve more."""
        calls = self.contender.calls if self.contender else 1
        return [float(f"{us / calls:.6g}") for us in self.samples]


def shorten(text: str) -> str:
    """The text of an error. The middle of a long one is left out, because compilers quote whole programs."""
    text = text.strip()
    half = DETAIL_CHARACTERS // 2
    return text if len(text) <= DETAIL_CHARACTERS else f"{text[:half]} ... {text[-half:]}"


@dataclass(frozen=True)
class MeasurementPlan:
    """How to run a case: `samples` rounds, at most `limit_s` for building and checking one peer. `healthy` tells if the
    device still works; after some errors nothing can run on it. `say` is called with progress messages."""

    samples: int
    limit_s: float
    healthy: Callable[[], bool]
    say: Callable[[str], object]


def run_contenders(makers: Sequence[Maker], plan: MeasurementPlan) -> list[Outcome]:
    """Check all contenders, then time those that are right. A round takes one sample of each, in a random order,
    because under a power limit the clock depends on what ran before. If a contender raises, only that one fails; if the
    device is lost, all others fail too."""
    outcomes = [Outcome(maker) for maker in makers]
    for outcome in outcomes:
        started = time.perf_counter()
        _check(outcome, plan)
        name, seconds = outcome.maker.name, time.perf_counter() - started
        plan.say(f"  {name}: {outcome.status} in {seconds:.1f} s {outcome.trace or outcome.detail}".rstrip())
        if outcome.status == "error" and not plan.healthy():
            return _lost(outcomes, name)
    draw = random.Random(0)
    for round_ in range(-WARM_UP_ROUNDS, plan.samples):
        running = [(outcome, outcome.contender) for outcome in outcomes if outcome.contender is not None]
        for outcome, contender in draw.sample(running, len(running)):
            try:
                us = contender.time_us()
            except Exception as error:  # noqa: BLE001 - whatever a peer raises is its own failure, not the run's
                outcome.fail("error", error)
                plan.say(f"  {outcome.maker.name}: {outcome.trace}".rstrip())
                if not plan.healthy():
                    return _lost(outcomes, outcome.maker.name)
                continue
            if round_ >= 0:
                outcome.samples.append(us)
    return outcomes


def _lost(outcomes: list[Outcome], culprit: str) -> list[Outcome]:
    for outcome in outcomes:
        if outcome.status == "ok":
            outcome.fail("error", DeviceError(f"the device was lost in {culprit}"))
    return outcomes


def _check(outcome: Outcome, plan: MeasurementPlan) -> None:
    maker = outcome.maker
    try:
        with time_limit(0 if maker.kind in ("ours", "against") else plan.limit_s):
            outcome.contender = maker.build()
            outcome.verdict = outcome.contender.check()
    except ConformanceError as error:
        outcome.fail("wrong", error)
    except (Exception, TimedOut) as error:  # noqa: BLE001 - as above
        outcome.fail("error", error)


def rows(case: Named, outcomes: Sequence[Outcome], least: Mapping[str, Any], **also: Any) -> list[BenchmarkRow]:
    """A row for each pair of a contender of ours and a peer; without peers, a row with an empty peer. `least`: the
    result of `floor`. `also`: further fields of the row."""
    ours = [o for o in outcomes if o.maker.kind == "ours"]
    peers = [o for o in outcomes if o.maker.kind not in ("ours", "copy")]
    same: dict[str, Any] = {
        "group": case.group, "case": case.name, "dtype": case.dtype, "shape": case.shape, "dims": dict(case.dims),
        "axis": getattr(case, "axis", ""), **least, **_copy(outcomes), **also,
    }  # fmt: skip
    made = [
        BenchmarkRow(source=our.maker.name, **same, **_ours(our), **_peer(peer), **_both(our, peer))
        for our in ours
        for peer in [p for p in peers if p.maker.beside in ("", our.maker.name)] or [None]
    ]
    return mark_best(made)


def floor(case: Case, ceilings: Ceilings) -> dict[str, Any]:
    """The least time that a case can take, and the rate that limits it."""
    work = case.work()
    return {
        "floor_ms": ceilings.floor_ms(work), "bound": ceilings.bound(work), "nbytes": work.nbytes, "flops": work.flops,
    }  # fmt: skip


def _copy(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """The time of a copy of as many bytes, or the reason why there is none."""
    for outcome in outcomes:
        if outcome.maker.kind == "copy":
            ms = outcome.ms
            if ms is None:
                return {"copy_detail": outcome.detail}
            return {"copy_ms": ms.value, "copy_low": ms.low, "copy_high": ms.high}
    return {}


def _ours(our: Outcome) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if our.verdict:
        found["ours_error"] = our.verdict.to_json()
    if made := our.contender:
        found |= {
            "entry": made.entry, "calls": made.calls, "sets": made.sets, "ours_peak_bytes": made.peak_bytes,
        }  # fmt: skip
        if host := made.host:
            found |= {"host_us": host.us, "launch_us": host.launch_us}
    if ms := our.ms:
        found |= {"ours_ms": ms.value, "ours_low": ms.low, "ours_high": ms.high, "samples": len(our.samples)}
    return found


def _peer(peer: Outcome | None) -> dict[str, Any]:
    if peer is None:
        return {}
    found: dict[str, Any] = {"peer": peer.maker.name, "peer_kind": peer.maker.kind}
    if peer.verdict:
        found["peer_error"] = peer.verdict.to_json()
    if peer.contender:
        found["peer_peak_bytes"] = peer.contender.peak_bytes
    if ms := peer.ms:
        found |= {"peer_ms": ms.value, "peer_low": ms.low, "peer_high": ms.high}
    return found


def _both(our: Outcome, peer: Outcome | None) -> dict[str, Any]:
    """Status and ratio."""
    both = [our] if peer is None else [our, peer]
    failed = [o for o in both if o.status != "ok"]
    if failed:
        status = "wrong" if any(o.status == "wrong" for o in failed) else "error"
        detail = "; ".join(f"{o.maker.name}: {o.detail}" for o in failed)
        return {"status": status, "detail": detail, "traceback": "\n".join(o.trace for o in failed if o.trace)}
    if peer is None or not our.contender or not peer.contender:
        return {"status": "ok"}
    found = stats.ratio(peer.samples, our.samples).scaled(our.contender.calls / peer.contender.calls)
    made = {"status": "ok", "ratio": found.value, "ratio_low": found.low, "ratio_high": found.high}
    if peer.maker.kind != "against":
        return made
    return {**made, "ours_rounds_us": our.rounds_us, "peer_rounds_us": peer.rounds_us}
