"""What the doctor says of the GPUs' access to each other's memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from toolchain import runtime
from toolchain.doctor import Check
from toolchain.doctor.peers import peers
from toolchain.doctor.peers import runs as doctor_runs
from toolchain.errors import DeviceError
from toolchain.runtime import GPU
from toolchain.runtime.peers import links, runs
from toolchain.runtime.peers.links import Link, NoNVML
from toolchain.runtime.peers.runs import Run

Say = Callable[[Sequence[Link]], list[Check]]


@pytest.fixture
def say(monkeypatch: pytest.MonkeyPatch) -> Say:
    def checked(pairs: Sequence[Link]) -> list[Check]:
        count = 1 + max((pair.other for pair in pairs), default=0)
        gpus = tuple(GPU(index, "NVIDIA H100", (9, 0), 132, 2**36) for index in range(count))
        monkeypatch.setattr(runtime, "gpus", lambda: gpus)
        monkeypatch.setattr(links, "links", lambda: list(pairs))
        monkeypatch.setattr(links, "nvlinks", lambda: dict.fromkeys(range(count), 18))
        return peers()

    return checked


def both(*, access: bool = True, atomics: bool = True) -> list[Link]:
    return [Link(0, 1, access, atomics), Link(1, 0, access=True, atomics=True)]


def test_gpus_that_reach_each_other(say: Say) -> None:
    (line,) = say(both())
    said = "all 2 GPUs reach each other's memory, with atomics; NVLinks that are up: cuda:0 18, cuda:1 18"
    assert (line.status, line.found) == ("ok", said)


def test_one_gpu_has_no_peers(say: Say) -> None:
    assert say([]) == []


@pytest.mark.parametrize(
    ("pairs", "says"),
    [
        (both(access=False), "no access to the memory from cuda:0 to cuda:1"),
        (both(atomics=False), "access without atomics, which ranks meet by, from cuda:0 to cuda:1"),
    ],
)
def test_pairs_that_cannot_share_a_model(pairs: list[Link], says: str, say: Say) -> None:
    (line,) = say(pairs)
    assert (line.status, line.found) == ("note", says) and "nvidia-smi topo" in line.advice


def test_what_cannot_be_asked(say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> dict[int, int]:
        raise NoNVML("NVML cannot be asked: no library")

    def broken() -> list[Link]:
        raise DeviceError("the driver is gone")

    say(both())
    monkeypatch.setattr(links, "nvlinks", fails)
    assert peers()[0].found.endswith("with atomics; NVML cannot be asked: no library")
    monkeypatch.setattr(links, "links", broken)
    assert peers()[0].found == "cannot be asked: the driver is gone"


def test_a_run_that_waits_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    members = ("rank 0 (process 1, cuda:0)", "rank 1 (process 2, cuda:1)")
    going = Run(members, "", 0.0, "", "block 0 of rank 0 came 5 times, rank 1 5")
    stuck = Run(members, "rank 0 (process 1, cuda:0): a prompt", 12.3, "", "block 0 of rank 0 came 5 times, rank 1 4")
    lost = Run(members, "", 0.0, "rank 1 has ended unexpectedly", "")
    monkeypatch.setattr(runs, "runs", lambda: [going, stuck, lost])
    first, second, third = found = doctor_runs()
    assert [line.status for line in found] == ["ok", "note", "note"]
    assert first.found.endswith("cuda:1); block 0 of rank 0 came 5 times, rank 1 5")
    assert second.found.endswith("rank 1 4; waiting for 12 s: rank 0 (process 1, cuda:0): a prompt")
    assert third.found.endswith("rank 1 has ended unexpectedly")
