"""Opening peers: which devices go together, and what is said where they do not."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from toolchain.errors import DeviceError, NoGPU, UsageError
from toolchain.runtime import GPU, DeviceBuffer
from toolchain.runtime.cuda import CudaExecutor
from toolchain.runtime.peers import Peers, group, open_peers

from .conftest import MappingDriver

Executors = Callable[[Sequence[int]], list[CudaExecutor]]


def gpu(index: int, name: str = "NVIDIA H100", sms: int = 132) -> GPU:
    return GPU(index, name, (9, 0), sms, 80 * 2**30)


@pytest.fixture
def two_gpus(fake: MappingDriver, monkeypatch: pytest.MonkeyPatch) -> MappingDriver:
    monkeypatch.setattr(group, "gpus", lambda: (gpu(0), gpu(1)))
    return fake


@pytest.mark.parametrize(
    ("devices", "says"),
    [(1, "1 device: peers are at least 2"), (["cpu", "cuda:0"], "peers on cpu, cuda:0"), (["auto", "auto"], "auto")],
)
def test_devices_that_are_no_peers(devices: int | list[str], says: str, two_gpus: MappingDriver) -> None:
    del two_gpus
    with pytest.raises(UsageError, match=says):
        open_peers(devices)


def test_more_ranks_than_gpus(two_gpus: MappingDriver) -> None:
    del two_gpus
    with pytest.raises(NoGPU, match="there is no cuda:2: 2 of the 3 GPUs asked for"):
        open_peers(3)


def test_without_a_gpu_ranks_are_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group, "gpus", lambda: ())
    with open_peers(2) as peers:
        assert peers.name == "cpu interpreter, rank 0 of 2, cpu interpreter, rank 1 of 2"
        assert peers.ranks == 2


def test_gpus_of_different_kinds(two_gpus: MappingDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    del two_gpus
    monkeypatch.setattr(group, "gpus", lambda: (gpu(0), gpu(1, "NVIDIA H100 PCIe", 114)))
    with pytest.raises(UsageError, match=r"cuda:0 NVIDIA H100 sm_90, 132 SMs, cuda:1 NVIDIA H100 PCIe sm_90, 114 SMs"):
        open_peers(2)


def test_a_pair_without_peer_access_is_named(two_gpus: MappingDriver) -> None:
    two_gpus.apart = {(1, 0)}
    with pytest.raises(DeviceError, match="no peer access from cuda:1 to cuda:0"):
        open_peers(2)
    assert two_gpus.left == {}


def test_close_gives_everything_back(two_gpus: MappingDriver) -> None:
    two_gpus.values["cuMemcpyDtoHAsync"] = 0
    with open_peers(2) as peers:
        peers.heap(100)
        with peers.capture() as graphs:
            pass
        graphs.replay()
        assert two_gpus.names().count("cuGraphLaunch") == 2
    assert two_gpus.left == {}


def test_peers_know_their_number(executors: Executors) -> None:
    for devices, here in (([0, 1], 1), ([0, 0], 2)):
        found = Peers(executors(devices)).executors
        assert {(executor.ranks, executor.ranks_here) for executor in found} == {(2, here)}


def test_ranks_on_one_gpu_are_not_apart(executors: Executors) -> None:
    assert Peers(executors([0, 1])).apart
    assert not Peers(executors([0, 0])).apart
    with open_peers(["cpu", "cpu"]) as peers:
        assert peers.apart


def test_a_second_channel_has_its_own_flags_and_is_checked_too() -> None:
    with open_peers(["cpu", "cpu"]) as peers:
        other = peers.new_channel(3)
        own, more = peers.arguments(1), other.arguments(1)
        flags, state = more["flags"], more["state"]
        assert isinstance(flags, DeviceBuffer) and isinstance(state, DeviceBuffer)
        assert (flags.shape, state.shape, more["rank"]) == ((2, 2, 3), (3, 2), 1)
        assert not flags.numpy()[1, 0].any()
        assert own["flags"] is not flags and own["state"] is not state
        peers.synchronize()
        state.fill(1)  # what a block notes that gives up waiting for rank 0
        with pytest.raises(DeviceError, match=r"rank 1 .* gave up waiting for rank 0"):
            peers.synchronize()
