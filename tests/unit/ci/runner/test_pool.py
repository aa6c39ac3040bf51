"""What the pool makes of each message, on a clock that costs no time. tests/unit/ci/runner/test_simulate.py has ten
runners at once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ci.runner.pool import Job, Pool, Rules, named, planned, text
from ci.runner.simulate import Played, Virtual
from toolchain.errors import UsageError

RULES = Rules(listen=1, silent=20, again=30, nobody=100, tries=2)
DONE = {"end": "done", "code": 0}
WELL = {"end": "well"}
SICK = {"end": "sick", "when": "after", "why": "Xid 79", "back": "repair it"}
COLD = {**SICK, "when": "before"}
BUSY = {"end": "busy", "why": "held by process 7"}
GONE = "its process ended with 255"

Script = list[Mapping[str, Any] | str | None]  # an end, words for a process that ends without one, None for silence


@dataclass
class Scripted:
    """Each start gives the next row of a script, 10 s later; the last one again and again."""

    name: str
    clock: Virtual
    script: Script
    gpu: str = "NVIDIA H200"
    got: list[str] = field(default_factory=list[str])
    works: list[Played] = field(default_factory=list[Played])

    def start(self, job: Job | None) -> Played:
        self.got.append(job.name if job else "look")
        row, at = self.script[0], self.clock.at + 10
        self.script = self.script[1:] or self.script
        messages: list[tuple[float, Mapping[str, Any]]] = [(at, row)] if isinstance(row, Mapping) else []
        self.works.append(Played(self.clock, messages, (at, row) if isinstance(row, str) else None))
        return self.works[-1]


def pool(*scripts: Script, gpus: tuple[str, ...] = ()) -> tuple[Pool, list[Scripted]]:
    clock = Virtual()
    kinds = gpus or ("NVIDIA H200",) * len(scripts)
    runners = [Scripted(f"r{n}", clock, script, kinds[n]) for n, script in enumerate(scripts)]
    return Pool(runners, RULES, clock), runners


def jobs(*names: str, gpu: str = "") -> list[Job]:
    return [Job(name, f"make {name}", 60, gpu) for name in names]


@pytest.mark.parametrize(
    ("row", "why"), [(SICK, "Xid 79"), (GONE, f"lost: {GONE}"), (None, "lost: it said nothing for 20 s")]
)
def test_the_job_of_a_runner_that_fails_is_planned_anew(row: Mapping[str, Any] | str | None, why: str) -> None:
    made, (first, second) = pool([row, COLD], [DONE])
    (a, b) = made.run(jobs("a", "b"))
    assert (a.runner, a.code, a.lost) == ("r1", 0, [("r0", why)]) and (b.runner, b.lost) == ("r1", [])
    assert first.got[0] == "a" and second.got == ["b", "a"]
    assert all(work.stopped for runner in (first, second) for work in runner.works)  # nothing is left running
    assert why in "\n".join(text([a, b], made)) and made.members[0].state == "out"


@pytest.mark.parametrize(("row", "why"), [(COLD, "Xid 79"), (BUSY, "busy: held by process 7")])
def test_a_job_that_had_not_begun_was_not_lost(row: Mapping[str, Any], why: str) -> None:
    made, _ = pool([row], [DONE])
    (a,) = made.run(jobs("a"))
    assert (a.runner, a.code, a.lost) == ("r1", 0, []) and made.members[0].why == why


@pytest.mark.parametrize(
    ("end", "code", "why"),
    [({"end": "done", "code": 3}, 3, ""), ({"end": "late", "why": "ended after 60 s"}, None, "ended after 60 s")],
)
def test_a_job_that_fails_by_itself_is_not_repeated(end: Mapping[str, Any], code: int | None, why: str) -> None:
    made, (runner,) = pool([end, DONE])
    a, b = made.run(jobs("a", "b"))
    assert (a.code, a.why, b.code) == (code, why, 0) and runner.got == ["a", "b"]


@pytest.mark.parametrize("row", [SICK, GONE, None, BUSY])
def test_a_runner_that_is_well_again_comes_back(row: Mapping[str, Any] | str | None) -> None:
    made, (runner,) = pool([row, row, WELL, DONE])
    (a,) = made.run(jobs("a"))
    assert a.code == 0 and runner.got == ["a", "look", "look", "a"] and made.members[0].state == "free"
    assert made.moves[-1][1] == "r0 is back in the pool" and len(made.moves) == 2


def test_a_job_is_given_up_after_as_many_runners_as_the_rules_say() -> None:
    made, runners = pool([GONE], [GONE], [GONE])
    (bad,) = made.run(jobs("bad"))
    assert bad.code is None and bad.why == "2 runners were lost with it: r0, r1"
    assert sum("bad" in runner.got for runner in runners) == RULES.tries


def test_no_runner_is_left() -> None:
    made, _ = pool([DONE, COLD])
    a, b = made.run(jobs("a", "b"))
    assert a.code == 0 and (b.code, b.why) == (None, "not run: its runners are out, r0")


def test_a_job_goes_to_its_kind_of_gpu_alone() -> None:
    made, _ = pool([DONE], [DONE], gpus=("NVIDIA H100", "NVIDIA H200"))
    results = made.run([*jobs("a", "b", gpu="NVIDIA H200"), *jobs("c")])
    assert [result.runner for result in results] == ["r1", "r1", "r0"]
    with pytest.raises(UsageError, match="no runner has the GPU of d\n  next: the pool has NVIDIA H100, NVIDIA H200"):
        made.run(jobs("d", gpu="NVIDIA B200"))


def test_a_kind_of_gpu_whose_runners_are_all_out_holds_up_nothing_else() -> None:
    made, _ = pool([COLD], [DONE], gpus=("NVIDIA H100", "NVIDIA H200"))
    a, b = made.run([*jobs("a", gpu="NVIDIA H100"), *jobs("b")])
    assert (a.why, b.code) == ("not run: its runners are out, r0", 0)


def test_names_that_would_be_mixed_up() -> None:
    with pytest.raises(UsageError, match="two jobs of one name"):
        pool([DONE])[0].run(jobs("a", "a"))
    runner = Scripted("r", Virtual(), [DONE])
    for runners in ([], [runner, runner]):
        with pytest.raises(UsageError, match="runners of different names"):
            Pool(runners, RULES, Virtual())
    for bad in ("a", "=x", "a/b=x", "a="):
        with pytest.raises(UsageError, match="is not NAME=COMMAND"):
            named(bad, 1)
    assert named("a-1=x=y", 5) == Job("a-1", "x=y", 5)


def test_the_jobs_of_a_plan_write_to_folders_of_their_own(tmp_path: Path) -> None:
    local = "python3 -m tilestack matrix run --bundle b && python3 -m ci.gate run --bundle b"
    row = {"name": "h200 1/2", "local": local, "timeout": 20, "gpu": "NVIDIA H200"}
    file = tmp_path / "plan.json"
    file.write_text(json.dumps({"jobs": {"gpu": [row]}}))
    (job,) = planned(file)
    assert (job.name, job.seconds, job.gpu) == ("h200-1-2", 1200, "NVIDIA H200")
    assert job.command == (
        "python3 -m tilestack matrix run --report build/report/h200-1-2 --bundle b && "
        "python3 -m ci.gate run --output build/gate/h200-1-2 --bundle b"
    )
    for broken in ("", "[]", '{"jobs": {"gpu": [{}]}}'):
        file.write_text(broken)
        with pytest.raises(UsageError, match=r"is no plan: .*\n  next: tilestack matrix plan --json"):
            planned(file)


def test_the_rules_are_checked(tmp_path: Path) -> None:
    assert Rules.load().tries == 3
    file = tmp_path / "runner.toml"
    file.write_text("[pool]\nlisten = 0\nsilent = 1\nagain = 1\nnobody = 1\ntries = 1\n")
    with pytest.raises(UsageError, match=r"listen is 0, not a number of seconds above 0"):
        Rules.load(file)


def test_a_runner_that_stays_out_is_told_once() -> None:
    """A later look says the same, and since when."""
    made, _ = pool([SICK, {**COLD, "why": "since 12:00: Xid 79"}], [DONE])
    made.run(jobs(*(f"job-{n}" for n in range(12))))
    assert [what for _, what in made.moves] == ["r0 is out of the pool: Xid 79"]
    assert made.members[0].why == "since 12:00: Xid 79"
